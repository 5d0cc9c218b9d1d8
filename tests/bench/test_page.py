"""The tree of 1,000 queues in Chromium: first paint, the time to apply a session's update, bytes
per update. Reported, not asserted.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.db import connections, transaction
from playwright.sync_api import Browser, Page, sync_playwright

from scheduler import notify
from scheduler.models import QueueFigures
from tests.bench.console_site import a_console
from tests.bench.noted import note, note_times
from tests.bench.test_console import grow
from tests.conftest import chromium
from tests.dashboard.sample import amounts

CHANGED = 100
ROUNDS = 7
PAINTS = 5


def in_thread(work: Callable[..., Any], *arguments: Any) -> Any:
    """Playwright keeps an event loop in this thread, which Django would take for an asynchronous
    program.
    """

    def inside() -> Any:
        try:
            return work(*arguments)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(inside).result()


def change(number: int, turn: int) -> None:
    with transaction.atomic():
        chosen = list(
            QueueFigures.objects.filter(queue__name__startswith="team-")
            .order_by("pk")
            .values_list("pk", flat=True)[:number]
        )
        QueueFigures.objects.filter(pk__in=chosen).update(
            allocated=amounts(turn % 30 + 1, turn + 5, f"{turn + 7}Gi")
        )
        notify.session_finished()


class Updates(NamedTuple):
    milliseconds: list[float]  # that the page took for each
    rows_bytes: int  # of all rows, which the page gets first
    bytes: int  # of the last update


def measure(page: Page, number: int) -> Updates:
    """So many queues change, again and again."""
    sizes: list[int] = []
    page.on(
        "websocket",
        lambda socket: socket.on("framereceived", lambda frame: sizes.append(len(frame))),
    )
    page.reload()
    page.wait_for_function(
        "document.getElementById('pill').dataset.state === 'live'", timeout=60_000
    )
    rows_bytes = sum(sizes)
    taken = []
    for turn in range(ROUNDS):
        page.evaluate("globalThis.fumaroleLive.lastApplied = null")
        before = len(sizes)
        in_thread(change, number, turn)
        page.wait_for_function(
            f"globalThis.fumaroleLive.lastApplied?.rows >= {number}", timeout=60_000
        )
        taken.append(page.evaluate("globalThis.fumaroleLive.lastApplied.ms"))
        size = max(sizes[before:], default=0)
    return Updates(taken, rows_bytes, size)


def new_page(browser: Browser, address: str, cookie: str) -> Page:
    """Of somebody whose browser has nothing of the site yet."""
    context = browser.new_context(
        base_url=address, bypass_csp=True
    )  # Playwright waits by evaluating text
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": address}])
    return context.new_page()


def first_paint(browser: Browser, address: str, cookie: str) -> float:
    page = new_page(browser, address, cookie)
    page.goto("/queues/")
    found: float = page.evaluate(
        "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    )
    page.context.close()
    return found


@pytest.mark.django_db(transaction=True)
def test_a_thousand_queues_in_the_browser(tmp_path: Path, settings: Any):
    with a_console(tmp_path, settings, grow) as (server, cookie), sync_playwright() as playwright:
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        paints = [first_paint(browser, server.url, cookie) for _ in range(PAINTS)]
        page = new_page(browser, server.url, cookie)
        whole = page.goto("/queues/")
        page_bytes = len(whole.body()) if whole else 0
        many = measure(page, CHANGED)
        one = measure(page, 1)
        browser.close()

    note_times("first paint of 1,048 queues", paints)
    sent = page_bytes + one.rows_bytes  # folded rows come after the page
    share = one.bytes / sent
    note_times(f"{CHANGED} changed rows applied", many.milliseconds)
    note("bytes of one changed queue", percent=round(100 * share, 3))
    print(f"\n1,048 queues: first paint after {statistics.median(paints):.0f} ms")
    print(
        f"  {CHANGED} changed rows are applied in {statistics.median(many.milliseconds):.1f} ms "
        f"({min(many.milliseconds):.1f} to {max(many.milliseconds):.1f}), {many.bytes:,} bytes"
    )
    print(
        f"  one changed queue sends {one.bytes:,} bytes, {share:.3%} of the {page_bytes:,} of the "
        f"page and {one.rows_bytes:,} of its rows"
    )
