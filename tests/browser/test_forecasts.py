"""When jobs start, in the browser: on a job's page, in the list, and how good forecasts were."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from scheduler.models import ExpectedStart, StartForecast
from tests.worlds import job, node, run_session

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
Acts = Callable[..., Any]
PICTURES = os.environ.get("FUMAROLE_PICTURES", "")
"""A folder for pictures of both pages, if one wants to look at them."""


def arrange() -> None:
    node("n1", cpu="4")
    job("first", "vision", replicas=4)
    run_session()
    gang = job("second", "vision", replicas=4).podgroup
    run_session()
    now = timezone.now()
    ExpectedStart.objects.create(
        podgroup_number=gang.pk,
        made_at=now,
        earliest_at=now + timedelta(minutes=10, seconds=30),
        latest_at=now + timedelta(minutes=40, seconds=30),
        cases=64,
    )
    for number in range(60):
        foretold(number, "vision", "gpu-8", actual=100.0 if number % 5 else 900.0)
    for number in range(4):
        foretold(number, "language", "cpu-8", actual=100.0)


def foretold(number: int, queue: str, size: str, actual: float) -> None:
    StartForecast.objects.create(
        podgroup_number=number,
        podgroup_name=f"default/old-{number}",
        queue_name=queue,
        size=size,
        made_at=timezone.now() - timedelta(hours=1),
        low=50.0,
        median=90.0,
        high=150.0,
        earliest=60.0,
        latest=180.0,
        actual=actual,
        ended_at=timezone.now(),
    )


def take_pictures(page: Page, name: str) -> None:
    if not PICTURES:
        return
    for theme in ("light", "dark"):
        page.evaluate("theme => document.documentElement.dataset.bsTheme = theme", theme)
        page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
        for width in (1440, 360):
            page.set_viewport_size({"width": width, "height": 900})
            page.screenshot(path=f"{PICTURES}/{name}-{theme}-{width}.png", full_page=True)
    page.set_viewport_size({"width": 1440, "height": 900})


def test_a_waiting_job_says_when_it_starts_and_how_good_that_is(signed_in: Opens, act: Acts):
    act(arrange)
    page = signed_in("/jobs/?q=state:waiting")
    expect(page.get_by_text("in 10 min to 40 min")).to_be_visible()
    take_pictures(page, "jobs")

    page.get_by_role("link", name="second").first.click()
    expect(page.locator("[data-expected-start]")).to_contain_text("Expected to start between")
    take_pictures(page, "job")
    page.get_by_role("link", name="How good are forecasts?").click()

    expect(page.get_by_role("heading", name="Forecasts")).to_be_visible()
    row = page.get_by_role("row", name="vision")
    expect(row).to_contain_text("80 %")
    expect(page.get_by_role("row", name="language")).to_contain_text("too few: 4 of 20")
    take_pictures(page, "forecasts")
