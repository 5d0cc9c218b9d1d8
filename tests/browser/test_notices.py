"""Notices in the browser: rules, the inbox behind the bell, and a test of a channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from scheduler.services.notices.fan_out import write_notices
from scheduler.services.notices.publish import publish
from tests.browser.test_forecasts import take_pictures
from tests.services.notices.people import started
from tests.services.notices.receiver import receiver

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
Acts = Callable[..., Any]


def two_jobs_start() -> None:
    publish([started(1, queue="vision"), started(2, queue="vision")])
    write_notices()


def test_a_rule_a_channel_its_test_and_the_inbox(signed_in: Opens, act: Acts):
    page = signed_in("/account/notices/settings/")
    with receiver() as hook:
        page.get_by_label("Name", exact=True).fill("room")
        page.get_by_label("Address").fill(hook.url)
        page.get_by_role("button", name="Add channel").click()
        expect(page.locator("#new-secret")).to_contain_text("whsec_")
        page.get_by_role("button", name="Send a test to room").click()
        expect(
            page.get_by_text("The test reached room: The receiver answered 204.")
        ).to_be_visible()
    assert hook.got[0].value["type"] == "notices.test"

    page.get_by_label("New rule").select_option("JobStarted")
    page.get_by_label("Only in this queue and below").fill("vision")
    page.get_by_role("checkbox", name="room").check()
    page.get_by_role("button", name="Add rule").click()
    expect(page.get_by_text("in vision and below · inbox, room")).to_be_visible()
    take_pictures(page, "notifications")

    act(two_jobs_start)
    page.goto(page.url)
    page.get_by_role("link", name="Notices 2 unread").click()
    expect(page.get_by_role("link", name="Job default/train-1 has started")).to_be_visible()
    take_pictures(page, "inbox")
    page.get_by_role("button", name="Mark as read: Job default/train-1 has started").click()
    expect(page.locator("#bell")).to_contain_text("1")
    page.get_by_role("button", name="Mark all as read").click()
    expect(page.locator(".bell-count")).to_have_count(0)


def many_jobs_start() -> None:
    publish([started(number, queue="vision") for number in range(100)])
    write_notices()


def test_a_large_count_lies_over_nothing_beside_the_bell(signed_in: Opens, act: Acts):
    page = signed_in("/account/notices/settings/")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_label("New rule").select_option("JobStarted")
    page.get_by_label("Only in this queue and below").fill("vision")
    page.get_by_role("button", name="Add rule").click()
    expect(page.get_by_text("in vision and below · inbox")).to_be_visible()
    act(many_jobs_start)
    page.goto(page.url)

    expect(page.locator(".bell-count")).to_contain_text("99+")
    count = page.locator(".bell-count").bounding_box()
    switch = page.locator(".theme-switch").bounding_box()
    assert count is not None
    assert switch is not None
    assert count["x"] + count["width"] <= switch["x"]
