"""Clients that are signed in."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.test import Client

from scheduler.models import Grant, Queue


def signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def reader_of(queue: str) -> Client:
    """Somebody who may see this queue and what is below it, and nothing else."""
    user = get_user_model().objects.create_user("rita", password="x" * 12)
    Grant.objects.create(user=user, queue=Queue.objects.get(name=queue), role="viewer")
    return signed_in(user)
