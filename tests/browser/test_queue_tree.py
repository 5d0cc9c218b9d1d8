"""The queue tree in a real browser: seen, alive, honest about its connection, usable with the
keyboard.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from playwright.sync_api import Locator, Page, expect

from scheduler import notify
from scheduler.models import Queue, QueueFigures
from tests.browser.conftest import sign_in
from tests.browser.server import ConsoleServer
from tests.dashboard.sample import GPU, add_queue, amounts

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
Acts = Callable[..., Any]


def row(page: Page, name: str) -> Locator:
    return page.locator(f'tr[data-key="{name}"]')


def figure(page: Page, name: str, resource: str = GPU) -> Locator:
    return row(page, name).locator(f'td[data-r="{resource}"] .figure')


def allocate(name: str, gpus: int) -> None:
    with transaction.atomic():
        QueueFigures.objects.filter(queue__name=name).update(allocated=amounts(gpus, 53, "300Gi"))
        notify.queues_changed([name])


def test_after_signing_in_the_tree_is_there_and_a_number_changes_by_itself(
    console: ConsoleServer,
    page: Page,
    act: Acts,
):
    page.goto(f"{console.url}/")
    sign_in(page)
    page.goto(f"{console.url}/queues/")

    expect(page.get_by_role("treegrid")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(8)
    expect(figure(page, "vision")).to_have_text("8 of 32 GPU")
    expect(page.locator("#pill")).to_have_text("Live")

    act(allocate, "vision", 13)

    expect(figure(page, "vision")).to_have_text("13 of 32 GPU")


def test_a_wrong_password_is_answered_on_the_page(console: ConsoleServer, page: Page):
    page.goto(f"{console.url}/queues/")
    sign_in(page, password="something else")

    expect(page.get_by_role("alert")).to_contain_text("do not belong together")
    expect(page.get_by_label("Name")).to_have_value("admin")


def test_the_pill_tells_the_truth_when_the_server_goes_and_comes_back(
    signed_in: Opens,
    console: ConsoleServer,
    act: Acts,
):
    page = signed_in("/queues/")
    expect(page.locator("#pill")).to_have_text("Live")

    console.stop()
    try:
        expect(page.locator("#pill")).to_have_text("Reconnecting")
        expect(page.locator("#pill")).to_have_text(re.compile(r"Stale since \d\d:\d\d:\d\d"))
        expect(page.locator("body")).to_have_class(re.compile("is-stale"))
        expect(page.locator("#as-of")).to_contain_text(
            re.compile(r"As of \d\d:\d\d:\d\d\. The server cannot be reached")
        )
        act(allocate, "vision", 21)
    finally:
        console.start()

    expect(page.locator("#pill")).to_have_text("Live", timeout=30_000)
    expect(page.locator("body")).not_to_have_class(re.compile("is-stale"))
    expect(page.locator("#as-of")).to_be_hidden()
    expect(figure(page, "vision")).to_have_text("21 of 32 GPU")


def test_two_browsers_see_the_same_change(signed_in: Opens, act: Acts):
    one = signed_in("/queues/")
    other = signed_in("/queues/", name="reader")
    for page in (one, other):
        expect(page.locator("#pill")).to_have_text("Live")

    act(allocate, "vision", 15)

    for page in (one, other):
        expect(figure(page, "vision")).to_have_text("15 of 32 GPU")


def test_queues_come_and_go_in_their_places_while_others_stay(signed_in: Opens, act: Acts):
    def change() -> None:
        with transaction.atomic():
            add_queue("speech", "research", weight=7)
            Queue.objects.filter(name="default").delete()
            notify.queues_changed(["speech", "default"])

    page = signed_in("/queues/")
    expect(page.locator("#pill")).to_have_text("Live")
    page.evaluate("document.querySelector('tr[data-key=vision]').dataset.mark = 'same element'")
    act(change)

    expect(row(page, "speech")).to_be_visible()
    expect(row(page, "default")).to_have_count(0)
    names = page.locator("tbody tr").evaluate_all("rows => rows.map(row => row.dataset.key)")
    assert names == [
        "root",
        "production",
        "batch",
        "serving",
        "research",
        "language",
        "speech",
        "vision",
    ]
    assert (
        page.evaluate("document.querySelector('tr[data-key=vision]').dataset.mark")
        == "same element"
    )
    expect(figure(page, "speech")).to_have_text("not evaluated yet")
    assert row(page, "speech").locator(".c-name a").get_attribute("href") == "/queues/speech/"


def test_what_the_script_patches_is_what_the_server_draws(signed_in: Opens, act: Acts):
    """The one rule of the live tables: after an update the page is the same as after a reload."""
    page = signed_in("/queues/")
    expect(page.locator("#pill")).to_have_text("Live")
    act(allocate, "vision", 31)
    act(allocate, "batch", 50)
    expect(figure(page, "batch")).to_have_text("50 of 48 GPU")
    expect(figure(page, "vision")).to_have_text("31 of 32 GPU")
    drawn = (
        "() => [...document.querySelectorAll('tbody tr')].map(row => row.outerHTML.replace(/ "
        '(tabindex="0"|class="flash"|hidden="")/g, \'\').replace(/ flash/g, \'\'))'
    )
    patched = page.evaluate(drawn)

    page.reload()

    fresh = page.evaluate(drawn)
    assert [re.sub(r' class="[^"]*"', "", one) for one in patched] == [
        re.sub(r' class="[^"]*"', "", one) for one in fresh
    ]


def test_a_branch_that_was_folded_stays_folded(signed_in: Opens, act: Acts):
    page = signed_in("/queues/")
    expect(page.locator("#pill")).to_have_text("Live")
    with page.expect_response("**/queues/-/folded/") as kept:
        row(page, "research").locator(".twisty").click()
    assert kept.value.status == 204

    expect(row(page, "vision")).to_be_hidden()
    act(allocate, "vision", 14)
    act(allocate, "serving", 7)
    expect(figure(page, "serving")).to_have_text("7 of 48 GPU")
    expect(row(page, "vision")).to_be_hidden()

    page.reload()
    expect(row(page, "vision")).to_be_hidden()
    expect(row(page, "research")).to_have_attribute("aria-expanded", "false")
    elsewhere = signed_in("/queues/", java_script_enabled=False)
    expect(row(elsewhere, "vision")).to_be_hidden()
    others = signed_in("/queues/", name="reader")
    expect(row(others, "vision")).to_be_visible()


def test_all_bars_to_one_scale_are_as_long_as_their_limits(signed_in: Opens, act: Acts):
    page = signed_in("/queues/")
    expect(page.locator("#pill")).to_have_text("Live")
    page.get_by_role("link", name="Absolute").click()
    expect(page.locator("#pill")).to_have_text("Live")
    act(allocate, "vision", 16)
    expect(figure(page, "vision")).to_have_text("16 of 32 GPU")

    bar = row(page, "vision").locator(f'td[data-r="{GPU}"] svg')
    column = bar.bounding_box()
    use = bar.locator(".use").bounding_box()

    assert column
    assert use
    assert use["width"] / column["width"] == pytest.approx(16 / 64, abs=0.02)


def test_queues_that_lack_something_are_found(signed_in: Opens):
    page = signed_in("/queues/")
    expect(page.locator("#pill")).to_have_text("Live")
    page.get_by_label("Search queues").fill("is:starved")

    expect(row(page, "vision")).to_be_hidden()
    expect(row(page, "batch")).to_be_visible()
    page.reload()
    expect(row(page, "vision")).to_be_hidden()
    expect(row(page, "batch")).to_be_visible()


def test_the_bars_figures_are_a_table_under_the_pointer(signed_in: Opens):
    page = signed_in("/queues/")
    row(page, "language").locator(f'td[data-r="{GPU}"] svg').hover()

    figures = page.locator(".tip tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    assert figures == [
        ["allocated", "30 of 64 GPU"],
        ["deserved", "20"],
        ["guarantee", "8"],
        ["capability", "64: all that the cluster has"],
        ["pending", "20"],
    ]
    expect(page.locator(".tip")).to_contain_text("10 borrowed")


def test_the_tree_is_walked_with_the_arrows(signed_in: Opens):
    page = signed_in("/queues/")
    expect(page.locator("#pill")).to_have_text("Live")
    row(page, "root").focus()

    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(row(page, "production")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(row(page, "batch")).to_be_hidden()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(row(page, "batch")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(row(page, "production")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/queues/production/")


def test_ticked_queues_are_compared_on_a_page_of_their_own(signed_in: Opens):
    page = signed_in("/queues/")
    expect(page.locator("#pill")).to_have_text("Live")
    for name in ("batch", "serving"):
        page.get_by_label(f"Select {name}").check()

    page.locator("#bulk").get_by_role("button", name="Compare").click()

    page.wait_for_url("**/queues/-/compare/?q=batch&q=serving")


def test_the_theme_is_kept(signed_in: Opens):
    page = signed_in("/queues/", color_scheme="light")
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "light")

    page.get_by_role("button", name="Dark theme").click()
    page.reload()

    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    expect(page.get_by_role("button", name="Dark theme")).to_have_attribute("aria-pressed", "true")


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_nothing_sticks_out_sideways(signed_in: Opens, width: int):
    page = signed_in("/queues/", viewport={"width": width, "height": 800})

    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect(page.get_by_role("navigation", name="Main")).to_be_visible()


def test_without_javascript_the_tree_is_there(signed_in: Opens):
    page = signed_in("/queues/", java_script_enabled=False)

    expect(figure(page, "vision")).to_have_text("8 of 32 GPU")
    row(page, "vision").get_by_role("link", name="vision", exact=True).click()
    expect(page.get_by_role("heading", name="vision")).to_be_visible()
