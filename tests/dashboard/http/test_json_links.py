"""“View as JSON” on every page.

Found by walking all routes, so that a new page without it fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.exceptions import NoReverseMatch

from dashboard.http.json_links import START
from scheduler.models import AuditEntry, PolicyVersion, SchedulingSession
from tests.dashboard.work import signed_in, small_cluster

pytestmark = pytest.mark.django_db

_NOT_OURS = ("admin/", "api/", "^api/")
_CHOICES = re.compile(r"\?P<(?:tab|verb)>([a-z|]+)\)")


def routes(patterns: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Name and pattern of every route of the site itself."""
    for pattern in patterns:
        where = prefix + str(pattern.pattern)
        if where.startswith(_NOT_OURS):
            continue
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, where)
        elif isinstance(pattern, URLPattern) and pattern.name:
            yield pattern.name, where


ROUTES = list(routes(get_resolver().url_patterns))


def addresses(name: str, pattern: str) -> Iterator[str]:
    """The route's address with something that is there; one for each tab and verb."""
    from django.urls import reverse

    number = {
        "session": SchedulingSession,
        "session-scenario": SchedulingSession,
        "audit-entry": AuditEntry,
        "policy-version": PolicyVersion,
    }
    last = number[name].objects.order_by("-pk").first() if name in number else None
    known: dict[str, Any] = {
        "namespace": "default",
        "name": {"job": "train-1", "node": "n1", "user": "sam"}.get(
            name.split("-", maxsplit=1)[0], "vision"
        ),
        "number": getattr(last, "number", None) or getattr(last, "pk", 1),
    }
    choices = _CHOICES.search(pattern)
    for choice in choices[1].split("|") if choices else [""]:
        wanted = {
            key: value
            for key, value in {**known, "tab": choice, "verb": choice}.items()
            if f"{key}>" in pattern
        }
        try:
            yield reverse(name, kwargs=wanted)
        except NoReverseMatch:
            return


def test_every_page_links_to_the_same_thing_in_the_api():
    small_cluster()
    admin = signed_in("admin")
    missing = []
    dead = []
    pages = 0
    for name, pattern in ROUTES:
        for address in addresses(name, pattern):
            answer = admin.get(address)
            text = (
                answer.content.decode()
                if "html" in answer.get("Content-Type", "") and not answer.streaming
                else ""
            )
            if '<nav class="rail"' not in text:
                continue
            pages += 1
            link = re.search(r'<a href="([^"]+)">View as JSON</a>', text)
            if link is None or (
                answer.status_code == 200 and link[1] == START and name != "components"
            ):
                missing.append(address)
            elif (
                admin.get(
                    link[1].replace("&amp;", "&"), headers={"Accept": "application/json"}
                ).status_code
                != 200
            ):
                dead.append(f"{address} -> {link[1]}")

    assert pages > 40
    assert (missing, dead) == ([], [])


def test_names_with_dots_and_slashes_stay_one_part_of_the_address(client: Client):
    from django.test import RequestFactory
    from django.urls import resolve

    from dashboard.http.json_links import json_address

    request = RequestFactory().get("/queues/team.a/")
    request.resolver_match = resolve("/queues/team.a/")
    assert json_address(request) == "/api/v1/queues/team.a/"
    request.resolver_match.kwargs["name"] = "a/b?c"
    assert json_address(request) == "/api/v1/queues/a%2Fb%3Fc/"
