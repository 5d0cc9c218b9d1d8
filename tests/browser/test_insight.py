"""The map of nodes and the timeline of the cluster in the browser: keys, a small screen, axe."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import Eviction, Node
from scheduler.services.queues.commands import command_queue
from tests.browser.test_forecasts import take_pictures
from tests.browser.test_manners import violations
from tests.worlds import job, node, run_session

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
Acts = Callable[..., Any]


def machines() -> None:
    for number in range(1, 9):
        node(f"n{number}", cpu="8", gpu="8")
        rack = "ab"[number % 2]
        Node.objects.filter(name=f"n{number}").update(labels={"rack": rack})
    Node.objects.filter(name="n3").update(unschedulable=True)
    job("first", "vision", replicas=4, cpu="3")
    job("second", "vision", replicas=90)
    run_session()


def history() -> None:
    machines()
    command_queue("vision", QueueCommand.SUSPEND)
    now = timezone.now()
    rows = []
    for number in range(40):
        rows.append(
            Eviction(
                session_number=1,
                pod_name=f"default/pod-{number}",
                podgroup_name="default/pod",
                queue_name="vision",
                action="reclaim",
                created_at=now - timedelta(hours=1, seconds=number),
            )
        )
    Eviction.objects.bulk_create(rows)


def test_the_map_is_walked_by_arrow_keys_and_fits_a_small_screen(signed_in: Opens, act: Acts):
    act(machines)
    page = signed_in("/nodes/?view=map&resource=cpu", reduced_motion="reduce")
    cells = page.locator("[data-node-map] .heat")
    expect(cells).to_have_count(8)
    expect(page.locator('[data-node-map] .heat[tabindex="0"]')).to_have_count(1)
    take_pictures(page, "node-map")
    assert violations(page) == []

    cells.first.focus()
    page.keyboard.press("ArrowRight")
    expect(cells.nth(1)).to_be_focused()
    page.keyboard.press("End")
    expect(cells.last).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"n\d"))

    page.get_by_role("link", name="Who could start here").click()
    expect(page.get_by_role("row", name=re.compile("second"))).to_contain_text("fits now")
    take_pictures(page, "node-waiting")
    assert violations(page) == []
    page.goto(page.url.partition("/nodes/")[0] + "/nodes/-/room/?queue=vision")
    expect(page.get_by_role("row", name=re.compile("1 GPU")).first).to_be_visible()
    take_pictures(page, "room")
    assert violations(page) == []
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_timeline_is_zoomed_by_keys_and_opens_a_moment(signed_in: Opens, act: Acts):
    act(history)
    page = signed_in("/insights/timeline/?span=24h", reduced_motion="reduce")
    expect(page.get_by_role("link", name=re.compile("^40 evictions")).first).to_be_visible()
    take_pictures(page, "timeline")
    assert violations(page) == []

    page.locator("#cluster-timeline").focus()
    page.keyboard.press("+")
    page.wait_for_url(re.compile("start="))
    expect(page.locator("#cluster-timeline")).to_be_focused()
    nearer = page.url
    page.keyboard.press("-")
    page.wait_for_url(lambda url: url != nearer)
    expect(page.locator("#cluster-timeline")).to_be_focused()
    page.locator('[data-lane="policy"]').click(position={"x": 200, "y": 20})
    page.wait_for_url(re.compile("at="))
    expect(page.locator("#moment")).to_contain_text("session")
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
