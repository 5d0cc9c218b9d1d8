"""Create, change and delete a queue in the browser, with the rules speaking while one types."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from scheduler.models import Node, PodGroup, Queue
from scheduler.services.queues.create_update import update_queue
from scheduler.services.queues.warnings import refresh_warnings
from tests.dashboard.sample import GPU, amounts

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
Acts = Callable[..., Any]


EMPTIED = ("vision", "language", "serving", "batch", "research", "production")  # children first


def stored(name: str) -> dict[str, Any]:
    queue = Queue.objects.get(name=name)
    return {
        "weight": queue.weight,
        "deserved": queue.deserved.to_quantities(),
        "capability": queue.capability.to_quantities(),
    }


def test_a_queue_is_created_by_form_and_appears_for_the_others(signed_in: Opens, act: Acts):
    admin = signed_in("/queues/-/new/?parent=production")
    watcher = signed_in("/queues/", name="reader")
    expect(watcher.locator("#pill")).to_have_text("Live")

    admin.get_by_label("Name").fill("nightly")
    admin.get_by_label("Weight").fill("5")
    admin.get_by_label("Capability of GPU").fill("4")
    expect(admin.get_by_text("No rule is broken.")).to_be_visible()
    admin.get_by_role("button", name="Create queue").click()

    admin.wait_for_url("**/queues/nightly/")
    expect(admin.get_by_text("nightly was created below production")).to_be_visible()
    expect(watcher.locator('tr[data-key="nightly"]')).to_be_visible()
    assert act(stored, "nightly") == {"weight": 5, "deserved": {}, "capability": {GPU: "4"}}


def test_while_typing_the_rules_name_the_siblings_and_mark_the_input(signed_in: Opens):
    page = signed_in("/queues/vision/edit/")

    page.get_by_label("Deserved of GPU").fill("26")

    expect(page.locator("#findings")).to_contain_text("6 too many")
    expect(page.locator("#findings .family").first).to_contain_text("children 46 of 40 in research")
    expect(page.locator("#findings")).to_contain_text("language 20")
    expect(page.get_by_label("Deserved of GPU")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Deserved of GPU").fill("20")
    expect(page.get_by_text("No rule is broken.")).to_be_visible()
    expect(page.get_by_label("Deserved of GPU")).to_have_attribute("aria-invalid", "false")


def test_verdict_and_warnings_are_one_line_beside_the_button_which_says_when_it_is_being_checked(
    signed_in: Opens, act: Acts
):
    act(Node.objects.create, name="n1", allocatable=amounts(64, 1024, "4Ti"))
    page = signed_in("/queues/-/new/?parent=root")
    page.get_by_label("Name").fill("greedy")
    verdict = page.locator("#verdict-line")
    expect(verdict).to_have_text("No rule is broken.")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/queues/-/check/", hold)

    page.get_by_label("Deserved of GPU").fill("64")
    expect(verdict).to_have_text("Checking…")
    page.wait_for_timeout(600)
    expect(verdict).to_have_text("Checking…")
    held[-1].continue_()

    expect(verdict).to_contain_text(
        "Can be saved, 1 warning: The children's deserved nvidia.com/gpu is"
    )
    expect(verdict).to_contain_text("too many")
    expect(page.get_by_text("No rule is broken.")).to_have_count(0)


def test_a_check_that_fails_is_not_taken_for_a_good_one(signed_in: Opens):
    page = signed_in("/queues/-/new/?parent=root")
    page.route("**/queues/-/check/", lambda route: route.abort())

    page.get_by_label("Name").fill("greedy")

    expect(page.locator("#verdict-line")).to_have_text(
        "Could not be checked just now. Saving checks it again."
    )


def test_one_click_takes_the_rules_advice(signed_in: Opens):
    page = signed_in("/queues/vision/edit/")
    page.get_by_label("Deserved of GPU").fill("26")

    page.get_by_role("button", name="Set deserved GPU to 20").click()

    expect(page.get_by_label("Deserved of GPU")).to_have_value("20")
    expect(page.get_by_text("No rule is broken.")).to_be_visible()


def test_what_is_typed_can_be_copied_for_a_terminal(signed_in: Opens):
    page = signed_in("/queues/vision/edit/")
    page.get_by_text("The same in a terminal").click()
    page.get_by_label("Weight").fill("7")

    expect(page.locator("#copy-cli")).to_contain_text("weight: 7")
    expect(page.locator("#copy-curl")).to_contain_text("weight: 7")
    expect(page.get_by_role("button", name="Copy as CLI")).to_be_visible()


def test_an_empty_cluster_says_what_to_do_and_takes_the_sample(signed_in: Opens, act: Acts):
    act(
        lambda: (
            PodGroup.objects.all().delete(),
            [Queue.objects.filter(name=name).delete() for name in EMPTIED],
        )
    )
    page = signed_in("/queues/")
    expect(page.get_by_text("No queues yet.")).to_be_visible()
    expect(page.get_by_text("root has 64 GPU, 1 024 CPU, 4 Ti.")).to_be_visible()

    page.get_by_role("button", name="Load sample tree").click()

    expect(page.get_by_text("11 queues were created")).to_be_visible()
    expect(page.locator('tr[data-key="serving"]')).to_be_visible()


def test_a_quantity_that_can_not_be_read_is_said_with_its_fix(signed_in: Opens):
    page = signed_in("/queues/vision/edit/")

    page.get_by_label("Capability of CPU").fill("2c")

    expect(page.locator("#findings")).to_contain_text("write 2 or 2000m")


def test_unset_and_zero_are_told_apart(signed_in: Opens, act: Acts):
    page = signed_in("/queues/vision/edit/")
    page.get_by_label("Deserved of GPU").fill("0")
    page.get_by_label("Capability of CPU").fill("")
    page.get_by_role("button", name="Save").click()

    page.wait_for_url("**/queues/vision/")
    assert act(stored, "vision") == {
        "weight": 1,
        "deserved": {GPU: "0", "cpu": "300", "memory": "1Ti"},
        "capability": {GPU: "32", "memory": "1536Gi"},
    }


def test_what_is_refused_on_save_stays_in_the_form(signed_in: Opens):
    page = signed_in("/queues/vision/edit/", java_script_enabled=False)
    page.get_by_label("Deserved of GPU").fill("400")
    page.get_by_role("button", name="Save").click()

    expect(page.get_by_label("Deserved of GPU")).to_have_value("400")
    expect(page.locator("#findings")).to_contain_text("too many")


def test_a_conflict_shows_both_versions_and_keeps_what_was_typed(signed_in: Opens, act: Acts):
    page = signed_in("/queues/vision/edit/")
    act(update_queue, "vision", {"spec": {"weight": 7}}, merge=True)

    page.get_by_label("Weight").fill("3")
    page.get_by_role("button", name="Save").click()
    conflict = page.get_by_role("alert")
    expect(conflict).to_contain_text("Not saved yet")
    expect(conflict.get_by_role("row", name="Weight")).to_have_text(
        re.compile(r"Weight\s*1\s*3\s*7")
    )
    expect(page.get_by_label("Weight")).to_have_value("3")
    page.get_by_role("button", name="Save mine over theirs").click()

    page.wait_for_url("**/queues/vision/")
    assert act(stored, "vision")["weight"] == 3


def test_a_queue_is_changed_as_yaml_in_the_same_place(signed_in: Opens, act: Acts):
    page = signed_in("/queues/vision/edit/")
    page.get_by_role("button", name="YAML").click()
    text = page.get_by_label("Queue manifest").input_value()

    page.get_by_label("Queue manifest").fill(text.replace("weight: 1", "weight: [1"))
    expect(page.locator("#findings")).to_contain_text("This is not YAML")
    page.get_by_label("Queue manifest").fill(text.replace("weight: 1", "weight: 12"))
    expect(page.get_by_text("No rule is broken.")).to_be_visible()
    page.get_by_role("button", name="Save").click()

    page.wait_for_url("**/queues/vision/")
    assert act(stored, "vision")["weight"] == 12


def test_delete_lists_every_blocker_and_offers_to_close_first(signed_in: Opens):
    page = signed_in("/queues/research/delete/")

    for words in (
        "research",
        "vision",
        "Only close it…",
        "Close it, and delete it when drained…",
        "everything below it",
    ):
        expect(page.get_by_text(words).first).to_be_visible()


def test_a_tree_that_became_invalid_is_told_on_every_page(signed_in: Opens, act: Acts):
    def break_it() -> None:
        Queue.objects.filter(name="research").update(deserved={GPU: 1000})
        refresh_warnings()

    page = signed_in("/queues/production/", name="reader")
    expect(page.locator("#pill")).to_have_text("Live")
    act(break_it)

    expect(page.locator("#site-banner")).to_contain_text("The queue tree is not valid")
    page.goto("/queues/")
    page.locator("#site-banner").get_by_role("link").click()
    expect(page.get_by_text("The tree is not valid here")).to_be_visible()
