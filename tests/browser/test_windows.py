"""A safe window in the browser, which is closed in the middle of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from scheduler.models import Queue
from scheduler.services.change_sets.preview_runs import work_out_previews
from tests.dashboard.sample import GPU

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
Acts = Callable[..., Any]


def standing(name: str) -> tuple[str, str]:
    row = Queue.objects.get(name=name)
    return row.state, row.deserved.to_quantities().get(GPU, "")


def test_a_window_goes_on_after_the_browser_was_closed(signed_in: Opens, act: Acts):
    page = signed_in("/queues/research/")
    page.get_by_role("link", name="Safe window…").click()
    expect(page.get_by_label("Queues that change")).to_contain_text("vision")
    page.get_by_role("button", name="Suspend research and begin").click()
    expect(page.locator("[aria-current=step]")).to_contain_text("2. Edit")
    assert act(standing, "vision") == ("Suspended", "20")
    page.get_by_role("link", name="Edit vision").click()
    page.get_by_label("Deserved of GPU").fill("16")
    page.get_by_role("button", name="Add to change set").click()
    page.wait_for_url("**/changes/windows/*/")
    page.context.close()

    page = signed_in("/changes/")
    page.get_by_label("Open safe windows").get_by_role("link", name="research").click()
    expect(page.locator("[aria-current=step]")).to_contain_text("3. Preview")
    page.get_by_role("button", name="Preview the effect").click()
    expect(page.get_by_role("button", name="Cancel the preview")).to_be_visible()
    act(work_out_previews)
    expect(page.get_by_text("Both sides show research resumed")).to_be_visible()
    page.get_by_role("button", name="Apply the change set").click()
    expect(page.locator("[aria-current=step]")).to_contain_text("5. Resume")
    assert act(standing, "vision") == ("Suspended", "16")
    page.get_by_role("button", name="Undo: revert").click()
    expect(page.get_by_role("button", name="Apply the change set")).to_be_enabled()
    assert act(standing, "vision") == ("Suspended", "20")
    page.get_by_role("button", name="Apply the change set").click()
    page.get_by_role("button", name="Resume research and finish").click()
    expect(page.get_by_role("button", name="Undo: suspend research again")).to_be_visible()

    assert act(standing, "vision") == ("Open", "16")
