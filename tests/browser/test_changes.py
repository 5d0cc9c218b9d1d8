"""A change set in the browser: collected from two forms, looked at, applied, reverted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from scheduler.models import Job, Queue
from scheduler.services.change_sets.preview_runs import work_out_previews
from scheduler.services.queues.create_update import update_queue
from tests.dashboard.sample import GPU

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
Acts = Callable[..., Any]


def deserved(*names: str) -> list[str]:
    rows = {queue.name: queue.deserved.to_quantities() for queue in Queue.objects.all()}
    return [rows[name].get(GPU, "") for name in names]


def collect(page: Page, queue: str, gpus: str) -> None:
    page.goto(f"{page.url.split('/queues')[0].split('/changes')[0]}/queues/{queue}/edit/")
    page.get_by_label("Deserved of GPU").fill(gpus)
    page.get_by_role("button", name="Add to change set").click()
    page.wait_for_url("**/changes/*/")


def test_two_queues_exchange_gpus_by_a_change_set_and_back(signed_in: Opens, act: Acts):
    page = signed_in("/queues/")
    before = act(deserved, "vision", "language")
    assert before == ["20", "20"]

    collect(page, "vision", "26")
    expect(page.get_by_text("It cannot be applied: it breaks")).to_be_visible()
    expect(page.get_by_role("button", name="Apply the change set")).to_be_disabled()
    collect(page, "language", "14")
    expect(page.get_by_text("Taken together, these changes break no rule.")).to_be_visible()
    assert act(deserved, "vision", "language") == before
    page.get_by_role("button", name="Apply the change set").click()

    expect(page.get_by_text("2 queues changed.")).to_be_visible()
    assert act(deserved, "vision", "language") == ["26", "14"]
    page.get_by_role("button", name="Revert").click()
    expect(page.get_by_text("Nothing is reverted yet.")).to_be_visible()
    page.get_by_role("button", name="Apply the change set").click()
    expect(page.get_by_role("button", name="Revert")).to_be_visible()
    assert act(deserved, "vision", "language") == before


def test_who_comes_second_sees_what_changed_and_brings_it_up_to_date(signed_in: Opens, act: Acts):
    page = signed_in("/queues/")
    collect(page, "vision", "16")
    act(update_queue, "vision", {"spec": {"weight": 9}}, merge=True)

    page.get_by_role("button", name="Apply the change set").click()

    expect(
        page.get_by_text("Nothing was applied: others have changed vision since you added it.")
    ).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("to 9")
    page.get_by_role("button", name="Bring up to date").click()
    page.get_by_role("button", name="Apply the change set").click()
    expect(page.get_by_text("1 queue changed.")).to_be_visible()
    assert act(deserved, "vision") == ["16"]


def test_the_effect_is_seen_before_it_is_applied(signed_in: Opens, act: Acts):
    page = signed_in("/queues/")
    collect(page, "vision", "10")

    page.get_by_role("button", name="Preview the effect").click()
    expect(page.get_by_role("button", name="Cancel the preview")).to_be_visible()
    act(work_out_previews)

    expect(page.get_by_text("Pods placed in the first session")).to_be_visible()
    assert act(deserved, "vision") == ["20"]


def test_a_job_is_tried_out_before_it_is_submitted(signed_in: Opens, act: Acts):
    page = signed_in("/jobs/-/new/?queue=vision")
    page.get_by_label("Name", exact=True).fill("tried-out")

    page.get_by_role("button", name="Preview").click()
    page.wait_for_url("**/previews/*/")
    expect(page.get_by_role("button", name="Cancel the preview")).to_be_visible()
    act(work_out_previews)

    expect(page.get_by_text("default/tried-out")).to_be_visible()
    expect(page.get_by_text("Gangs that start at another time")).to_be_visible()
    assert not act(Job.objects.filter(name="tried-out").exists)
