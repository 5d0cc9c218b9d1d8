"""Picking one of many queues: searched, by keys too, in the form of a queue, of a job and of a
role.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from scheduler.models import Queue

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]


@pytest.fixture(autouse=True)
def many(act: Callable[..., Any], console: Any) -> None:
    def grow() -> None:
        root = Queue.objects.get(name="root")
        Queue.objects.bulk_create(
            Queue(name=f"team-{number:03}-north", parent=root) for number in range(300)
        )

    act(grow)


def test_the_parent_of_a_queue_is_searched_and_taken_by_keys(signed_in: Opens):
    page = signed_in("/queues/-/new/")
    search = page.get_by_label("Search Parent")
    search.fill("north 217")
    expect(page.locator(".pick-search [role=status]")).to_have_text("1 of 308")

    with page.expect_request("**/queues/-/check/"):
        search.press("Enter")

    expect(page.get_by_label("Parent", exact=True)).to_have_value("team-217-north")
    expect(page.get_by_label("Parent", exact=True)).to_be_focused()
    expect(page).to_have_url("/queues/-/new/")  # the form was not sent


def test_escape_ends_the_search_and_not_the_drawer(signed_in: Opens):
    page = signed_in("/queues/vision/")
    expect(page.locator("#pill")).to_have_text("Live")
    page.get_by_role("link", name="Edit", exact=True).click()
    search = page.locator("#drawer").get_by_label("Search Parent")
    search.fill("team-2")
    search.press("Escape")

    expect(search).to_have_value("")
    expect(page.locator("#drawer")).to_be_visible()
    expect(page.locator("#drawer").get_by_label("Parent", exact=True)).to_have_value("research")


def test_the_queue_of_a_job_is_searched(signed_in: Opens):
    page = signed_in("/jobs/-/new/")
    search = page.get_by_label("Search queues")
    search.fill("299")
    expect(page.locator("fieldset.picker .choice:visible")).to_have_count(1)

    search.press("Enter")

    expect(page.get_by_role("radio", name="team-299-north")).to_be_checked()


def test_the_queue_of_a_role_is_searched_and_records_offer_the_names(signed_in: Opens):
    page = signed_in("/users/-/grants/")
    page.get_by_label("Search Queue").fill("team-042")
    page.get_by_label("Search Queue").press("Enter")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Roles on team-042-north")

    page.goto("/audit/")
    page.locator("input[name=queue]").focus()
    expect(page.locator("datalist option")).to_have_count(308)


def test_few_queues_need_no_search(signed_in: Opens, act: Callable[..., Any]):
    act(lambda: Queue.objects.filter(name__startswith="team-").delete())
    page = signed_in("/users/-/grants/")

    expect(page.locator("select[name=queue]")).to_be_visible()
    expect(page.locator(".pick-search")).to_have_count(0)
