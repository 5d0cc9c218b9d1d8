"""The way of a browser to the provider and back, with Django's test client."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import requests
from django.test import Client


def sign_on(client: Client, wanted: str = "") -> Any:
    """The answer to the browser that comes back from the provider."""
    there = client.get("/accounts/sign-on/", {"next": wanted})
    assert there.status_code == 302, there.content.decode()
    return come_back(client, there["Location"])


def come_back(client: Client, address: str) -> Any:
    answer = requests.get(address, allow_redirects=False, timeout=5)
    assert answer.status_code == 302, answer.text
    back = urlsplit(answer.headers["Location"])
    return client.get(f"{back.path}?{back.query}")
