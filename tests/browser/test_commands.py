"""Open, close, suspend, resume in the browser: from the click to the final state, with a second
browser watching.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from playwright.sync_api import Locator, Page, expect

from scheduler import notify
from scheduler.models import Command, PlannedDeletion, PodGroup, Queue
from scheduler.services.queues.planned_deletion import carry_out_deletions
from scheduler.services.queues.states import refresh_states
from tests.dashboard.sample import add_gang, add_queue, add_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
Acts = Callable[..., Any]


def badge(page: Page, name: str) -> Locator:
    return page.locator(f'tr[data-key="{name}"] .state')


def note(page: Page, name: str) -> Locator:
    return page.locator(f'tr[data-key="{name}"] [data-f="stateNote"]')


def dialog(page: Page) -> Locator:
    return page.locator("#dialog")


def finish(name: str) -> None:
    """The cluster reports that a gang is done."""
    with transaction.atomic():
        PodGroup.objects.filter(name=name).update(phase="Completed")
        refresh_states()
        notify.jobs_changed([f"default/{name}"])


def test_the_change_window_of_a_safe_edit(signed_in: Opens, act: Acts):
    """The suspension design: suspend, change the quota in peace while jobs may still be submitted,
    resume.
    """
    admin = signed_in("/queues/research/")
    watcher = signed_in("/queues/", name="reader")
    expect(watcher.locator("#pill")).to_have_text("Live")

    admin.get_by_role("link", name="Suspend…").click()
    expect(dialog(admin).get_by_role("heading", name="Suspend research?")).to_be_visible()
    for name in ("research", "vision", "language"):
        expect(dialog(admin).locator(".effects")).to_contain_text(name)
    dialog(admin).get_by_label("Reason").fill("quota change")
    dialog(admin).get_by_role("button", name="Suspend research").click()
    expect(dialog(admin).get_by_role("heading", name="Done")).to_be_visible()
    dialog(admin).get_by_role("link", name="Done").click()

    for name in ("research", "vision", "language"):
        expect(badge(watcher, name)).to_have_text("Suspended")
    expect(note(watcher, "vision")).to_have_text("suspended by research")
    expect(admin.get_by_text("quota change")).to_be_visible()

    admin.goto("/queues/research/edit/")
    admin.get_by_label("Weight").fill("9")
    admin.get_by_role("button", name="Save").click()
    expect(admin.get_by_text("Changed weight from 3 to 9.")).to_be_visible()
    expect(watcher.locator('tr[data-key="research"] [data-f="weight"]')).to_have_text("9")

    admin.get_by_role("link", name="Resume…").click()
    dialog(admin).get_by_role("button", name="Resume research").click()
    for name in ("research", "vision", "language"):
        expect(badge(watcher, name)).to_have_text("Open")
    assert act(
        lambda: list(
            Command.objects.order_by("id").values_list("action", "actor", "door", "reason")
        )
    ) == [
        ("SuspendQueue", "admin", "UI", "quota change"),
        ("ResumeQueue", "admin", "UI", ""),
    ]


def test_close_drain_delete(signed_in: Opens, act: Acts):
    """The queue state design: close, wait until what runs is done, delete.

    The page says at each step how far it is.
    """
    admin = signed_in("/queues/vision/")
    watcher = signed_in("/queues/", name="reader")
    expect(watcher.locator("#pill")).to_have_text("Live")
    act(add_gang, "vision", "label-2")

    admin.get_by_role("link", name="Close…").click()
    dialog(admin).get_by_role("button", name="Close vision").click()
    expect(dialog(admin).get_by_role("heading", name="Done")).to_be_visible()
    dialog(admin).get_by_role("link", name="Done", exact=True).click()
    expect(badge(watcher, "vision")).to_have_text("Closing")
    expect(note(watcher, "vision")).to_have_text("2 of 2 gangs left")
    expect(admin.get_by_text("2 of 2 gangs left")).to_be_visible()

    act(finish, "label")
    expect(note(watcher, "vision")).to_have_text("1 of 2 gangs left")
    expect(admin.get_by_text("1 of 2 gangs left")).to_be_visible()
    admin.get_by_role("link", name="More actions").click()
    dialog(admin).get_by_role("link", name="Delete…").click()
    expect(dialog(admin).get_by_role("heading", name="Delete vision: not yet")).to_be_visible()
    dialog(admin).get_by_role("link", name="Back").click()

    act(finish, "label-2")
    expect(badge(watcher, "vision")).to_have_text("Closed")
    admin.get_by_role("link", name="Delete it").click()
    dialog(admin).get_by_role("button", name="Delete vision").click()

    admin.wait_for_url("**/queues/")
    expect(admin.get_by_text("Deleted vision")).to_be_visible()
    expect(watcher.locator('tr[data-key="vision"]')).to_have_count(0)


def test_close_and_delete_in_one_step(signed_in: Opens, act: Acts):
    """The queue is closed at once, says what will become of it, and is gone when the last gang is
    done.
    """
    admin = signed_in("/queues/vision/delete/")
    watcher = signed_in("/queues/", name="reader")
    expect(watcher.locator("#pill")).to_have_text("Live")

    admin.get_by_role("link", name="Close it, and delete it when drained…").click()
    expect(dialog(admin).locator(".effects")).to_have_text("vision")
    dialog(admin).get_by_label("Reason").fill("merged into language")
    dialog(admin).get_by_role("button", name="Close vision and delete it when drained").click()

    admin.wait_for_url("**/queues/vision/")
    expect(admin.get_by_text("To be deleted when drained:")).to_be_visible()
    expect(admin.get_by_text("“merged into language”").first).to_be_visible()
    expect(note(watcher, "vision")).to_have_text("1 of 1 gangs left, then deleted")
    act(finish, "label")
    act(carry_out_deletions)
    expect(watcher.locator('tr[data-key="vision"]')).to_have_count(0)
    expect(admin.get_by_role("alert")).to_contain_text("was deleted by admin")


def test_a_queue_that_was_to_be_deleted_can_be_kept(signed_in: Opens, act: Acts):
    page = signed_in("/queues/vision/farewell/", java_script_enabled=False)
    page.get_by_role("button", name="Close vision and delete it when drained").click()

    page.get_by_role("button", name="Keep vision").click()

    expect(page.get_by_text("vision is kept")).to_be_visible()
    expect(page.get_by_text("To be deleted when drained:")).to_have_count(0)
    assert not act(PlannedDeletion.objects.exists)


def test_the_two_traps_are_said_before_the_act(signed_in: Opens):
    page = signed_in("/queues/batch/")

    page.get_by_role("link", name="Suspend…").click()

    expect(dialog(page).locator('[data-code="drain_cancelled"]')).to_contain_text(
        "cancels the close"
    )


def test_only_what_is_legal_is_enabled_and_the_rest_says_why(signed_in: Opens):
    page = signed_in("/queues/vision/")

    expect(page.get_by_role("link", name="Close…")).to_be_visible()
    resume = page.locator('.buttons [aria-disabled="true"]', has_text="Resume")
    assert (
        resume.get_attribute("title")
        == "vision is Open, not Suspended, so there is nothing to resume."
    )


def test_an_order_that_the_parent_forbids_names_the_parent(signed_in: Opens, act: Acts):
    page = signed_in("/queues/vision/")
    act(lambda: (Queue.objects.filter(name="research").update(wish="Suspended"), refresh_states()))

    page.goto("/queues/vision/resume/")

    expect(page.get_by_role("alert")).to_contain_text("resume research first")
    expect(page.get_by_role("link", name="Go to research")).to_be_visible()


def test_an_undo_is_offered_and_works(signed_in: Opens):
    page = signed_in("/queues/vision/")
    page.get_by_role("link", name="Suspend…").click()
    dialog(page).get_by_role("button", name="Suspend vision").click()

    dialog(page).get_by_role("link", name="Undo").click()
    dialog(page).get_by_role("button", name="Resume vision").click()
    expect(dialog(page).get_by_role("heading", name="Done")).to_be_visible()
    dialog(page).get_by_role("link", name="Done", exact=True).click()

    expect(page.locator(".queue-head .state")).to_have_text("Open")


def test_several_queues_at_once_each_with_its_own_result(signed_in: Opens):
    page = signed_in("/queues/")
    expect(page.locator("#pill")).to_have_text("Live")
    for name in ("vision", "language", "serving"):
        page.get_by_label(f"Select {name}").check()
    expect(page.get_by_text("3 selected")).to_be_visible()

    page.locator("#bulk").get_by_role("button", name="Suspend…").click()
    expect(dialog(page)).to_contain_text("3 selected, 2 can be changed")
    dialog(page).get_by_role("button", name="Suspend 2 queues").click()

    expect(dialog(page)).to_contain_text("2 of 3 changed")
    expect(dialog(page).locator('li[data-key="serving"]')).to_contain_text("already Suspended")
    for name in ("vision", "language"):
        expect(badge(page, name)).to_have_text("Suspended")
    dialog(page).get_by_role("button", name="Undo: resume 2 again…").click()
    dialog(page).get_by_role("button", name="Resume 2 queues").click()
    expect(dialog(page)).to_contain_text("2 of 2 changed")
    for name in ("vision", "language"):
        expect(badge(page, name)).to_have_text("Open")
    expect(badge(page, "serving")).to_have_text("Suspended")


def test_several_queues_without_javascript(signed_in: Opens):
    page = signed_in("/queues/", java_script_enabled=False)
    for name in ("vision", "language"):
        page.get_by_label(f"Select {name}").check()

    page.get_by_role("button", name="Suspend…").click()
    expect(page.get_by_role("heading", name="Suspend 2 queues?")).to_be_visible()
    page.get_by_role("button", name="Suspend 2 queues").click()

    expect(page.get_by_text("2 of 2 changed")).to_be_visible()
    page.get_by_role("button", name="Undo: resume 2 again…").click()
    expect(page.get_by_role("button", name="Resume 2 queues")).to_be_visible()


def test_the_same_without_javascript(signed_in: Opens):
    page = signed_in("/queues/vision/", java_script_enabled=False)

    page.get_by_role("link", name="Suspend…").click()
    page.get_by_label("Reason").fill("by hand")
    page.get_by_role("button", name="Suspend vision").click()

    page.wait_for_url("**/queues/vision/")
    expect(page.locator(".queue-head .state")).to_have_text("Suspended")
    expect(page.get_by_text("“by hand”")).to_be_visible()


def test_who_may_only_look_has_no_buttons_and_is_told_what_is_missing(signed_in: Opens):
    page = signed_in("/queues/vision/", name="reader")

    expect(page.get_by_text("You can view this queue.")).to_be_visible()
    expect(page.get_by_role("link", name="Suspend…")).to_have_count(0)
    answer = page.goto("/queues/vision/suspend/")
    assert answer
    assert answer.status == 403
    expect(
        page.get_by_text("You need the permission “operate” on the queue vision")
    ).to_be_visible()


def test_an_admin_of_a_subtree_commands_that_subtree_only(signed_in: Opens, act: Acts):
    act(add_user, "lead", role="admin", queue="research")
    page = signed_in("/queues/vision/", name="lead")

    expect(page.get_by_role("link", name="Suspend…")).to_be_visible()
    answer = page.goto("/queues/serving/")
    assert answer
    assert answer.status == 404


def test_a_queue_that_is_deleted_while_its_page_is_open(signed_in: Opens, act: Acts):
    act(add_queue, "shortlived", wish="Closed", state="Closed")
    admin = signed_in("/queues/shortlived/delete/")
    watcher = signed_in("/queues/shortlived/", name="reader")
    expect(watcher.locator("#pill")).to_have_text("Live")

    admin.get_by_role("button", name="Delete shortlived").click()

    expect(watcher.get_by_role("alert")).to_contain_text(
        "The queue “shortlived” was deleted by admin at"
    )


def test_a_deletion_seen_by_an_admin_leads_to_the_record(signed_in: Opens, act: Acts):
    act(add_queue, "shortlived", wish="Closed", state="Closed")
    admin = signed_in("/queues/shortlived/delete/")
    other = signed_in("/queues/shortlived/")
    expect(other.locator("#pill")).to_have_text("Live")

    admin.get_by_role("button", name="Delete shortlived").click()
    other.get_by_role("alert").get_by_role("link", name="Show the audit log entry").click()

    other.wait_for_url("**/audit/*/")
    expect(other.get_by_role("heading", level=1)).to_contain_text("DeleteQueue")


def test_the_order_can_be_copied_for_a_terminal(signed_in: Opens):
    page = signed_in("/queues/vision/")
    page.get_by_role("link", name="Close…").click()
    dialog(page).get_by_text("The same in a terminal").click()

    expect(dialog(page).locator("#copy-cli")).to_have_text("vcctl queue close vision")
    expect(dialog(page).locator("#copy-curl")).to_contain_text("/api/v1/queues/vision/close/")
