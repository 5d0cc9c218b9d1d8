"""A planned change in the browser: planned, seen in the calendar, begun, in conflict, ended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from scheduler.models import Occurrence, Queue
from scheduler.services.change_sets.calendar import keep_calendar
from scheduler.services.change_sets.drafts import create_change_set
from scheduler.services.queues.create_update import update_queue

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
Acts = Callable[..., Any]


def weight() -> int:
    return Queue.objects.get(name="vision").weight


def make_draft() -> int:
    document = {"kind": "Queue", "metadata": {"name": "vision"}, "spec": {"weight": 7}}
    return create_change_set("Night shift", [document]).pk


def move(**times: datetime) -> None:
    """As if the time had come."""
    Occurrence.objects.filter(state__in=("Planned", "Holding")).update(**times)
    keep_calendar()


def fill_times(page: Page) -> None:
    begin = datetime.now(UTC) + timedelta(days=1)
    page.get_by_label("Begins", exact=True).fill(f"{begin:%Y-%m-%dT%H:%M}")
    end = begin + timedelta(hours=2)
    page.get_by_label("Ends (empty: it only begins)").fill(f"{end:%Y-%m-%dT%H:%M}")


def test_a_set_is_planned_begins_ends_and_a_conflict_is_resolved(signed_in: Opens, act: Acts):
    number = act(make_draft)
    before = act(weight)
    page = signed_in(f"/changes/{number}/")
    page.get_by_text("Plan it for set times").click()
    fill_times(page)
    page.get_by_role("button", name="Plan the change set").click()
    expect(page.get_by_text("Planned “Night shift”:")).to_be_visible()

    page.get_by_role("link", name="Calendar").click()
    expect(page.get_by_role("link", name="Night shift").first).to_be_visible()
    page.get_by_role("link", name="Night shift").first.click()

    now = datetime.now(UTC)
    act(move, begins_at=now - timedelta(minutes=1))
    page.reload()
    expect(page.locator("#plan").get_by_text("in force", exact=True)).to_be_visible()
    assert act(weight) == 7

    act(update_queue, "vision", {"spec": {"weight": 8}}, merge=True)
    act(move, ends_at=now)
    page.reload()
    expect(page.get_by_text("It could not end")).to_be_visible()
    assert act(weight) == 8
    page.get_by_role("button", name="Bring up to date and apply now").click()
    expect(page.get_by_text("Brought up to date and applied.")).to_be_visible()
    expect(page.locator("#plan").get_by_text("ended", exact=True)).to_be_visible()
    assert act(weight) == before


def test_a_plan_that_makes_no_sense_is_refused_and_what_was_typed_stays(
    signed_in: Opens, act: Acts
):
    act(make_draft)
    page = signed_in("/changes/calendar/")
    page.get_by_text("Plan a change set").click()
    fill_times(page)
    page.get_by_role("checkbox", name="Every week").check()
    page.get_by_label("Last day on which it begins").fill("2020-01-01")
    page.get_by_role("button", name="Plan the change set").click()

    expect(page.get_by_text("The last date is before the first begin.")).to_be_visible()
    expect(page.get_by_role("checkbox", name="Every week")).to_be_checked()
