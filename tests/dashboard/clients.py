"""Clients that are signed in."""

from __future__ import annotations

from typing import Any

from django.test import Client


def signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client
