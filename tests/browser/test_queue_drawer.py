"""Edit opens in a drawer over the living page, on a desk.

It has an address, is left on purpose only, and loses nothing that was typed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import Locator, Page, expect

from scheduler.models import Grant, PodGroup, Queue
from scheduler.services.queues.create_update import update_queue
from tests.browser.conftest import session_cookie
from tests.browser.server import ConsoleServer
from tests.browser.test_keyboard import Walker
from tests.browser.test_manners import violations
from tests.dashboard.sample import add_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
Acts = Callable[..., Any]
DESK = {"width": 1440, "height": 900}
EDIT = re.compile(r"/queues/vision/edit/$")
QUEUE = re.compile(r"/queues/vision/$")


def weight(name: str = "vision") -> int:
    return Queue.objects.get(name=name).weight


@pytest.fixture
def editing(signed_in: Opens) -> Callable[..., Page]:
    def open_drawer(path: str = "/queues/vision/", **options: Any) -> Page:
        page = signed_in(path, viewport=DESK, **options)
        expect(page.locator("#pill")).to_have_text("Live")
        page.get_by_role("link", name="Edit", exact=True).click()
        expect(page.locator("#drawer #weight")).to_be_visible()
        return page

    return open_drawer


def drawer(page: Page) -> Locator:
    return page.locator("#drawer")


def is_closed(page: Page) -> None:
    expect(drawer(page)).to_be_hidden()
    expect(page).to_have_url(QUEUE)


def test_it_lies_over_the_page_and_has_the_forms_address(editing: Opens):
    page = editing()

    expect(page).to_have_url(EDIT)
    expect(page.get_by_role("dialog", name="Edit vision")).to_be_visible()
    expect(page.locator("#queue-head h1")).to_be_visible()
    box = drawer(page).bounding_box()
    assert box
    assert (box["x"] > 500, box["x"] + box["width"], box["height"]) == (True, 1440, 900)
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Edit vision")
    expect(drawer(page)).to_be_hidden()
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("vision")


def test_what_is_saved_is_seen_on_the_page_below_and_by_others(
    editing: Opens,
    signed_in: Opens,
    act: Acts,
):
    watcher = signed_in("/queues/vision/", name="reader")
    page = editing()
    page.get_by_label("Weight").fill("6")
    page.get_by_label("Weight").press("Enter")

    is_closed(page)
    expect(page.get_by_text("Saved vision. Changed weight from 1 to 6.")).to_be_visible()
    for seen in (page, watcher):
        expect(seen.locator("#queue-head .page-note")).to_contain_text("weight 6")
    expect(page.get_by_role("link", name="Edit", exact=True)).to_be_focused()
    page.get_by_role("button", name="Dismiss").click()
    expect(page.get_by_text("Saved vision.")).to_be_hidden()
    assert act(weight) == 6


def test_from_a_row_of_the_tree_the_tree_stays_where_it_was(signed_in: Opens, act: Acts):
    page = signed_in("/queues/?resource=gpu", viewport=DESK)
    expect(page.locator("#pill")).to_have_text("Live")
    page.get_by_role("link", name="Actions for vision").click()
    page.locator("#dialog").get_by_role("link", name="Edit").click()
    expect(page.locator("#dialog")).to_be_hidden()
    page.locator("#drawer").get_by_label("Weight").fill("4")
    page.get_by_role("button", name="Save").click()

    expect(drawer(page)).to_be_hidden()
    expect(page).to_have_url(re.compile(r"/queues/\?resource=gpu$"))
    expect(page.locator('tr[data-key="vision"] .c-weight')).to_contain_text("4")
    expect(page.get_by_role("link", name="Actions for vision")).to_be_focused()


def test_the_page_below_goes_on_living(editing: Opens, act: Acts):
    page = editing()

    act(update_queue, "vision", {"spec": {"priority": 42}}, merge=True)

    expect(page.locator("#queue-head .page-note")).to_contain_text("priority 42")
    expect(page.locator("#queue-head h1")).to_have_text("vision")
    expect(drawer(page)).to_be_visible()


@pytest.mark.parametrize("way", ["Escape", "back", "beside", "close"])
def test_it_is_left_at_once_when_nothing_is_typed(editing: Opens, way: str):
    page = editing()

    leave(page, way)

    is_closed(page)
    expect(page.get_by_role("link", name="Edit", exact=True)).to_be_focused()


def leave(page: Page, way: str) -> None:
    if way == "Escape":
        page.keyboard.press("Escape")
    elif way == "back":
        page.go_back()
    elif way == "beside":
        page.mouse.click(300, 450)
    else:
        drawer(page).get_by_role("button", name="Close").click()


@pytest.mark.parametrize("way", ["Escape", "back", "beside", "close"])
def test_what_is_typed_is_not_dropped_unasked(editing: Opens, act: Acts, way: str):
    page = editing()
    page.get_by_label("Weight").fill("9")

    leave(page, way)
    page.get_by_role("button", name="Keep editing").click()
    expect(page).to_have_url(EDIT)
    expect(page.get_by_label("Weight")).to_have_value("9")
    leave(page, way)
    page.get_by_role("button", name="Drop my changes").click()

    is_closed(page)
    assert act(weight) == 1


def test_cancel_is_a_word_and_is_taken_at_it(editing: Opens):
    page = editing()
    page.get_by_label("Weight").fill("9")

    drawer(page).get_by_role("link", name="Cancel").click()

    is_closed(page)
    page.go_forward()
    expect(drawer(page).get_by_label("Weight")).to_have_value("1")
    page.go_back()
    is_closed(page)


def test_a_reload_with_changes_is_asked_about_by_the_browser(editing: Opens):
    page = editing()
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.reload()
    assert asked == []
    page.get_by_label("Weight").fill("9")

    page.reload()

    assert asked == ["beforeunload"]


def test_the_rules_speak_in_it_at_the_input_and_above_the_buttons(editing: Opens, act: Acts):
    page = editing()
    page.get_by_label("Deserved of GPU").fill("26")

    expect(page.locator("tr.breach")).to_contain_text("6 too many")
    expect(page.locator("#verdict-line")).to_contain_text(
        "Cannot be saved, 1 rule broken: The children's deserved"
    )
    page.locator("#verdict-line").get_by_role("link", name="Show").click()
    expect(page.locator("#findings")).to_be_focused()
    page.get_by_role("button", name="Save").click()
    expect(drawer(page).get_by_role("alert")).to_contain_text("Not saved.")
    expect(drawer(page).get_by_role("alert")).to_be_focused()
    expect(page.get_by_label("Deserved of GPU")).to_have_value("26")
    page.get_by_role("button", name="Set deserved GPU to 20").click()
    expect(page.get_by_text("No rule is broken.")).to_be_visible()
    expect(page.locator("#verdict-line").get_by_role("link")).to_have_count(0)
    page.get_by_role("button", name="Save").click()

    is_closed(page)


def test_it_turns_to_yaml_and_back_with_what_is_typed(editing: Opens, act: Acts):
    page = editing()
    page.get_by_label("Weight").fill("8")
    drawer(page).get_by_role("button", name="YAML").click()
    manifest = page.get_by_label("Queue manifest")
    expect(manifest).to_have_value(re.compile("weight: 8"))
    manifest.fill(manifest.input_value().replace("weight: 8", "weight: 11"))
    drawer(page).get_by_role("button", name="Form").click()
    expect(page.get_by_label("Weight")).to_have_value("11")
    page.get_by_role("button", name="Save").click()

    is_closed(page)
    assert act(weight) == 11


def test_a_conflict_shows_both_versions_in_it(editing: Opens, act: Acts):
    page = editing()
    act(update_queue, "vision", {"spec": {"weight": 7}}, merge=True)
    page.get_by_label("Weight").fill("3")
    page.get_by_role("button", name="Save").click()

    conflict = drawer(page).get_by_role("alert")
    expect(conflict).to_contain_text("Not saved yet")
    expect(conflict.get_by_role("row", name="Weight")).to_contain_text("7")
    expect(page.get_by_label("Weight")).to_have_value("3")
    conflict.get_by_role("link", name="take theirs").click()
    expect(page.get_by_label("Weight")).to_have_value("7")
    page.get_by_label("Weight").fill("5")
    act(update_queue, "vision", {"spec": {"weight": 2}}, merge=True)
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Save mine over theirs").click()

    is_closed(page)
    assert act(weight) == 5


def test_rights_that_are_gone_are_said_and_what_is_typed_stays(signed_in: Opens, act: Acts):
    act(add_user, "keeper", "admin", "research")
    page = signed_in("/queues/vision/", name="keeper", viewport=DESK)
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("Weight").fill("3")
    act(lambda: Grant.objects.filter(user__username="keeper").update(role="viewer"))
    page.get_by_role("button", name="Save").click()

    expect(drawer(page).get_by_role("alert")).to_contain_text("You are not allowed to do this.")
    expect(page.get_by_label("Weight")).to_have_value("3")
    expect(page.get_by_role("button", name="Save")).to_be_enabled()
    assert act(weight) == 1


def test_a_queue_that_was_deleted_meanwhile_is_told(editing: Opens, act: Acts):
    page = editing()
    page.get_by_label("Weight").fill("3")
    act(
        lambda: (
            PodGroup.objects.filter(queue__name="vision").delete(),
            Queue.objects.filter(name="vision").delete(),
        )
    )
    page.get_by_role("button", name="Save").click()

    expect(drawer(page).get_by_role("alert")).to_contain_text("There is no queue named “vision”.")
    expect(page.get_by_label("Weight")).to_have_value("3")


def test_who_was_signed_out_signs_in_elsewhere_and_saves(
    editing: Opens,
    act: Acts,
    console: ConsoleServer,
):
    page = editing()
    page.get_by_label("Weight").fill("3")
    act(lambda: Session.objects.all().delete())
    page.get_by_role("button", name="Save").click()
    expect(drawer(page).get_by_role("alert")).to_contain_text("You are signed out.")
    page.context.clear_cookies(name="csrftoken")
    page.context.add_cookies(
        [{"name": "sessionid", "value": act(session_cookie, "admin"), "url": console.url}]
    )
    page.get_by_role("button", name="Save").click()

    expect(drawer(page)).to_be_hidden()
    assert act(weight) == 3


def test_a_server_that_is_away_loses_nothing(editing: Opens, act: Acts):
    page = editing()
    page.get_by_label("Weight").fill("3")
    page.route("**/edit/", lambda route: route.abort())
    page.get_by_role("button", name="Save").click()
    expect(drawer(page).get_by_role("alert")).to_contain_text("The server cannot be reached.")
    page.unroute("**/edit/")
    page.get_by_role("button", name="Save").click()

    is_closed(page)
    assert act(weight) == 3


def test_a_drawer_that_can_not_be_had_says_why(signed_in: Opens):
    page = signed_in("/queues/vision/", viewport=DESK)
    page.route(
        "**/edit/",
        lambda route: route.fulfill(status=503, body="<main><h1>Not now</h1><p>Later.</p></main>"),
    )
    page.get_by_role("link", name="Edit", exact=True).click()

    expect(drawer(page).get_by_role("alert")).to_have_text("Not now. Later.")
    page.keyboard.press("Escape")
    is_closed(page)


@pytest.mark.parametrize("path", ["/queues/vision/", "/queues/"])
def test_on_a_phone_it_is_a_page(signed_in: Opens, path: str):
    page = signed_in(path, viewport={"width": 360, "height": 780})
    expect(page.locator("#pill")).to_have_text("Live")
    if path == "/queues/":
        page.get_by_role("link", name="Actions for vision").click()
    page.get_by_role("link", name="Edit", exact=path != "/queues/").first.click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Edit vision")
    expect(drawer(page)).to_be_hidden()
    page.get_by_label("Deserved of GPU").fill("26")
    said = page.locator("tr.breach")
    expect(said).to_contain_text("6 too many")
    expect(said).to_be_in_viewport()
    expect(page.locator("#verdict-line")).to_be_in_viewport()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Not saved.")
    expect(page.get_by_role("alert")).to_be_in_viewport()


def test_a_link_opened_in_a_new_tab_is_a_page(signed_in: Opens):
    page = signed_in("/queues/vision/", viewport=DESK)
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Edit", exact=True).click(modifiers=["ControlOrMeta"])

    expect(opened.value.get_by_role("heading", level=1)).to_have_text("Edit vision")
    expect(drawer(page)).to_be_hidden()


def test_by_keyboard_alone(signed_in: Opens, act: Acts):
    page = signed_in("/queues/vision/", viewport=DESK, reduced_motion="reduce")
    expect(page.locator("#pill")).to_have_text("Live")
    walker = Walker(page)
    walker.tab_to("Edit")
    walker.press("Enter")
    expect(page.locator("#drawer #parent")).to_be_focused()
    walker.tab_to("Weight")
    walker.press("Control+a")
    walker.write("12")
    for _ in range(50):
        walker.press("Tab")
        assert page.evaluate(
            "document.activeElement === document.body || "
            "document.getElementById('drawer').contains(document.activeElement)"
        )
    walker.press("Escape")
    assert walker.here() == "Keep editing"
    walker.press("Escape")
    expect(page.locator("#dialog")).to_be_hidden()
    expect(page.locator("#drawer #weight")).to_have_value("12")
    walker.tab_to("Save")
    walker.press("Enter")

    is_closed(page)
    assert walker.here() == "Edit"
    assert act(weight) == 12


def test_axe_finds_nothing_in_it(editing: Opens, act: Acts):
    page = editing(reduced_motion="reduce")
    assert violations(page) == []
    page.get_by_label("Deserved of GPU").fill("26")
    expect(page.locator("#findings .remedies").first).to_be_visible()
    page.get_by_text("The same in a terminal").click()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Keep editing")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="Keep editing").click()
    act(update_queue, "vision", {"spec": {"weight": 7, "priority": 3}}, merge=True)
    page.get_by_label("Deserved of GPU").fill("19")
    page.get_by_label("Weight").fill("3")
    page.get_by_role("button", name="Save").click()
    expect(drawer(page).get_by_role("alert")).to_contain_text("Not saved yet")
    assert violations(page) == []
    page.get_by_role("button", name="Save mine over theirs").click()
    expect(page.get_by_role("button", name="Dismiss")).to_be_visible()
    assert violations(page) == []
