"""Pages that stay open all day: rows that move away, changes nobody sees, answers that fail, charts
that go on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from django.db.models import F
from playwright.sync_api import Page, Route, expect

from scheduler import notify
from scheduler.models import ClusterState, Queue
from scheduler.services.records.change_log import ensure_own_change_log
from tests.browser.test_queue_tree import allocate, figure, row

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
Acts = Callable[..., Any]


def move(name: str, parent: str) -> None:
    with transaction.atomic():
        Queue.objects.filter(name=name).update(parent=Queue.objects.get(name=parent))
        notify.queues_changed([name])


def end_session() -> None:
    with transaction.atomic():
        ClusterState.objects.update(last_session=F("last_session") + 1)
        notify.session_finished()


def test_a_child_that_moves_to_another_queue_leaves_the_table(signed_in: Opens, act: Acts):
    page = signed_in("/queues/research/children/")
    expect(page.locator("#pill")).to_have_text("Live")
    expect(row(page, "vision")).to_have_count(1)

    act(move, "vision", "production")

    expect(row(page, "vision")).to_have_count(0)
    expect(row(page, "language")).to_have_count(1)


def test_what_changes_out_of_sight_does_not_flash(signed_in: Opens, act: Acts):
    page = signed_in("/queues/")
    expect(page.locator("#pill")).to_have_text("Live")
    row(page, "research").locator(".twisty").click()
    expect(row(page, "vision")).to_be_hidden()

    for gpus in (3, 4, 5):
        act(allocate, "vision", gpus)
        expect(figure(page, "vision")).to_have_text(f"{gpus} of 32 GPU")

    assert page.locator("tr[hidden] .flash, tr[hidden].flash").count() == 0


@pytest.mark.parametrize("path", ["/api/v1/queues/", "/queues/vision/yaml/"])
def test_a_copy_button_says_so_and_is_itself_again(signed_in: Opens, path: str):
    page = signed_in(path, permissions=["clipboard-read", "clipboard-write"])
    button = page.locator("button[data-copy]").first
    words = button.inner_text()

    button.click()
    expect(button).to_have_text("Copied")
    button.click()

    expect(button).to_have_text(words)


def test_a_server_that_stumbles_does_not_rename_the_page(signed_in: Opens, act: Acts):
    page = signed_in("/queues/vision/")
    expect(page.locator("#pill")).to_have_text("Live")
    title = page.title()
    answered = []

    def stumble(route: Route) -> None:
        answered.append(route.request.url)
        route.fulfill(
            status=503,
            content_type="text/html",
            body="<title>Out of order</title><main><h1>Out of order</h1></main>",
        )

    page.route(re.compile("/queues/vision/$"), stumble)
    with page.expect_response(lambda answer: answer.status == 503):
        act(allocate, "vision", 7)
    page.wait_for_timeout(200)

    assert answered
    assert page.title() == title


def test_a_page_that_is_new_is_not_loaded_twice(signed_in: Opens, act: Acts):
    act(ensure_own_change_log)
    page = signed_in("/queues/")
    statuses: list[int] = []
    page.on(
        "response",
        lambda answer: statuses.append(answer.status) if answer.url.endswith("/nodes/") else None,
    )

    with page.expect_response(lambda answer: answer.status == 204):
        page.goto("/nodes/")
    expect(page.locator("#pill")).to_have_text("Live")

    assert statuses == [200, 204]


def test_the_chart_of_sessions_tells_the_newest_values(signed_in: Opens, act: Acts):
    asked: list[int] = []

    def tell(route: Route) -> None:
        asked.append(len(asked))
        number = 10 * len(asked)
        parts = [
            {"key": key, "title": key, "ms": [1, number + place]}
            for place, key in enumerate(("claim", "read", "think", "write"))
        ]
        route.fulfill(
            content_type="application/json",
            body=json.dumps({"times": [100, 101], "numbers": [number, number + 1], "parts": parts}),
        )

    page = signed_in("/queues/")
    page.route("**/durations.json", tell)
    page.goto("/sessions/")

    expect(page.locator(".u-legend")).to_contain_text("12.0 ms")
    act(end_session)

    expect(page.locator(".u-legend")).to_contain_text("22.0 ms")
