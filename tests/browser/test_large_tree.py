"""A tree of many queues in a real browser: folded as far as it fits, searched by words, with the
way there in sight and names to be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from playwright.sync_api import Locator, Page, expect

from scheduler import notify
from scheduler.models import PodGroup, Preference, Queue
from tests.dashboard.sample import add_gang

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
Acts = Callable[..., Any]
LONG = "large-language-model-evaluation-of-the-northern-region"


@pytest.fixture(autouse=True)
def grown(act: Acts, console: Any) -> None:
    act(_grow)


def _grow() -> None:
    """Ten divisions of five teams of four projects: 260 queues and those of the sample."""
    root = Queue.objects.get(name="root")
    divisions = Queue.objects.bulk_create(
        Queue(name=f"division-{one}", parent=root) for one in range(10)
    )
    teams = Queue.objects.bulk_create(
        Queue(name=f"{above.name}-team-{one}", parent=above)
        for above in divisions
        for one in range(5)
    )
    Queue.objects.bulk_create(
        Queue(name=f"{above.name}-{LONG}-{one}", parent=above)
        for above in teams
        for one in range(4)
    )
    add_gang(f"division-3-team-1-{LONG}-2", "train", phase="Pending")


def row(page: Page, name: str) -> Locator:
    return page.locator(f'tr[data-key="{name}"]')


def shown(page: Page) -> Locator:
    return page.locator("#queue-tree tbody tr:visible")


def live(page: Page) -> Page:
    expect(page.locator("#pill")).to_have_text("Live")
    return page


def test_it_opens_as_far_as_it_fits_and_to_the_level_that_is_chosen(signed_in: Opens, act: Acts):
    page = live(signed_in("/queues/"))
    expect(shown(page)).to_have_count(14)  # root and what hangs below it

    with page.expect_response("**/queues/-/folded/"):
        page.get_by_role("link", name="Expand all").click()
    expect(shown(page)).to_have_count(268)
    with page.expect_response("**/queues/-/folded/"):
        page.get_by_role("link", name="3 levels").click()
    expect(shown(page)).to_have_count(68)
    expect(page.get_by_role("link", name="3 levels")).to_have_attribute("aria-current", "true")
    with page.expect_response("**/queues/-/folded/"):
        row(page, "division-0").locator(".twisty").click()
    expect(row(page, "division-0-team-0")).to_be_hidden()

    page.reload()

    expect(shown(page)).to_have_count(63)
    assert act(lambda: Preference.objects.get().tree_levels) == 3
    live(page).get_by_role("link", name="Collapse all").click()
    expect(shown(page)).to_have_count(14)


def test_a_page_is_as_large_as_what_it_shows(signed_in: Opens, act: Acts):
    page = live(signed_in("/queues/"))
    in_page = page.locator("#queue-tree tbody tr")
    expect(in_page).to_have_count(14)
    expect(page.locator("[data-live-count]").first).to_have_text("268")

    row(page, "division-0").locator(".twisty").click()

    expect(in_page).to_have_count(19)
    names = in_page.evaluate_all("rows => rows.map((row) => row.dataset.key)")
    at = names.index("division-0")
    assert names[at + 1 : at + 7] == [
        *(f"division-0-team-{team}" for team in range(5)),
        "division-1",
    ]


def test_what_changed_below_a_fold_is_true_when_it_is_unfolded(signed_in: Opens, act: Acts):
    def change() -> None:
        with transaction.atomic():
            Queue.objects.filter(name="division-0-team-1").update(weight=77)
            Queue.objects.filter(name="division-0-team-2").delete()
            notify.queues_changed()

    def leave_only_the_third() -> None:
        Queue.objects.filter(name__startswith="division-0-team-2-").delete()

    page = signed_in("/queues/")
    act(leave_only_the_third)
    live(page)
    act(change)
    expect(page.locator("[data-live-count]").first).to_have_text("263")

    row(page, "division-0").locator(".twisty").click()

    expect(row(page, "division-0-team-1").locator("[data-f=weight]")).to_have_text("77")
    expect(row(page, "division-0-team-2")).to_have_count(0)


def test_a_queue_that_moves_below_a_fold_is_found_there(signed_in: Opens, act: Acts):
    def move(name: str, below: str) -> None:
        with transaction.atomic():
            Queue.objects.filter(name=name).update(parent=Queue.objects.get(name=below))
            notify.queues_changed()

    page = live(signed_in("/queues/"))
    act(move, "default", "division-0-team-1")
    expect(row(page, "default")).to_be_hidden()

    row(page, "division-0").locator(".twisty").click()
    row(page, "division-0-team-1").locator(".twisty").click()

    expect(row(page, "default")).to_be_visible()
    expect(row(page, "default")).to_have_attribute("aria-level", "4")
    assert row(page, "default").get_attribute("data-parent") == "division-0-team-1"


def test_without_the_live_connection_a_branch_unfolds_and_a_search_finds(
    signed_in: Opens, console: Any
):
    page = signed_in("/accounts/login/")
    page.route_web_socket("**/ws/**", lambda socket: socket.close())
    page.goto("/queues/")

    row(page, "division-0").locator(".twisty").click()

    expect(row(page, "division-0-team-0")).to_be_visible()
    page.get_by_label("Search queues").fill("division-7-team-3")
    expect(page.locator("[data-found]").first).to_have_text("5")


def test_a_search_that_finds_a_ring_of_parents_ends(signed_in: Opens, act: Acts):
    def close_a_ring() -> None:
        below = Queue.objects.get(name="division-0-team-0")
        Queue.objects.filter(name="division-0").update(parent=below)

    act(close_a_ring)
    page = live(signed_in("/queues/?q=division-1"))

    page.get_by_label("Search queues").fill("division-0")

    expect(page.locator("[data-found]").first).to_have_text("26")


def test_without_javascript_the_levels_are_links(signed_in: Opens):
    page = signed_in("/queues/", java_script_enabled=False)
    expect(shown(page)).to_have_count(14)

    page.get_by_role("link", name="Expand all").click()

    expect(shown(page)).to_have_count(268)


def test_a_branch_is_folded_and_unfolded_by_keys(signed_in: Opens):
    page = live(signed_in("/queues/"))
    row(page, "root").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")

    page.keyboard.press("ArrowRight")
    expect(row(page, "division-0-team-0")).to_be_visible()
    expect(row(page, "division-0-team-0")).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("ArrowLeft")
    expect(row(page, "division-0-team-0")).to_be_hidden()


def test_a_row_in_sight_is_in_the_tab_order_whatever_was_searched_for(signed_in: Opens):
    page = live(signed_in("/queues/?q=nothing-has-this-name"))
    expect(shown(page)).to_have_count(0)

    page.get_by_label("Search queues").fill("")

    expect(row(page, "root")).to_have_attribute("tabindex", "0")
    page.get_by_label("Search queues").fill("division-3-team-1")
    row(page, "division-3-team-1").click(position={"x": 300, "y": 5})
    page.get_by_label("Search queues").fill("division-2")
    expect(row(page, "division-3-team-1")).to_be_hidden()
    expect(row(page, "root")).to_have_attribute("tabindex", "0")


def test_the_ancestors_of_the_first_row_in_sight_stay_in_sight(signed_in: Opens):
    page = live(signed_in("/queues/", viewport={"width": 1280, "height": 700}))
    path = page.get_by_role("navigation", name="Queues above the first visible row")
    expect(path.locator("ol")).to_be_hidden()
    page.get_by_role("link", name="Expand all").click()

    row(page, f"division-4-team-2-{LONG}-3").scroll_into_view_if_needed()
    page.mouse.wheel(0, 40)

    expect(path.locator("ol")).to_be_visible()
    expect(path.get_by_role("button").first).to_have_text("root")
    expect(path.get_by_role("button").nth(1)).to_have_text(re.compile(r"^division-\d$"))
    head, strip = (
        page.locator("#queue-tree thead").bounding_box(),
        path.locator("ol").bounding_box(),
    )
    assert head
    assert strip
    assert strip["y"] == pytest.approx(head["y"] + head["height"], abs=2)
    division = path.get_by_role("button").nth(1)
    name = division.inner_text()
    division.click()
    expect(row(page, name)).to_be_focused()
    expect(row(page, name)).to_be_in_viewport()


def test_names_are_whole_and_their_column_takes_the_width_it_is_given(signed_in: Opens):
    page = live(signed_in("/queues/?levels=0", viewport={"width": 1440, "height": 900}))
    name = row(page, f"division-0-team-0-{LONG}-0").locator(".c-name")
    assert name.locator("a").evaluate(
        "link => link.scrollWidth <= link.clientWidth || getComputedStyle(link).overflow "
        "=== 'visible'"
    )
    before = name.bounding_box()

    edge = page.get_by_role("separator", name="Width of the name column")
    edge.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    wider = name.bounding_box()
    page.reload()
    again = row(page, f"division-0-team-0-{LONG}-0").locator(".c-name").bounding_box()

    assert before
    assert wider
    assert again
    assert wider["width"] == pytest.approx(before["width"] + 64, abs=3)
    assert wider["height"] <= before["height"]
    assert again["width"] == pytest.approx(wider["width"], abs=3)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_dragging_the_edge_never_pushes_a_column_out_of_sight(signed_in: Opens):
    page = live(signed_in("/queues/", viewport={"width": 1280, "height": 900}))
    edge = page.get_by_role("separator", name="Width of the name column").bounding_box()
    assert edge

    page.mouse.move(edge["x"] + 10, edge["y"] + 10)
    page.mouse.down()
    page.mouse.move(edge["x"] + 900, edge["y"] + 10)
    page.mouse.up()

    act = row(page, "root").locator(".row-act").bounding_box()
    assert act
    assert act["x"] + act["width"] <= 1280


def test_a_search_by_words_stays_right_while_things_change(signed_in: Opens, act: Acts):
    def end() -> None:
        with transaction.atomic():
            PodGroup.objects.filter(name="train").update(phase="Completed")
            notify.queues_changed()

    page = live(signed_in("/queues/"))
    page.keyboard.press("/")
    page.keyboard.type("is:waiting is:leaf below:division-3")

    expect(shown(page)).to_have_count(4)
    expect(page.locator("#found-note")).to_have_text(", 1 found")
    page.get_by_role("button", name="Select all 1 that match").click()
    expect(page.locator("#bulk")).to_contain_text("1 selected")

    act(end)

    expect(shown(page)).to_have_count(0)
    expect(page.locator("#found-note")).to_have_text(", 0 found")
    expect(page.locator("#no-match")).to_be_visible()
    expect(page.locator("#bulk")).to_contain_text("1 of them not in this search")


def test_a_queue_that_is_deleted_takes_its_tick_with_it(signed_in: Opens, act: Acts):
    def remove() -> None:
        with transaction.atomic():
            Queue.objects.filter(name="serving").delete()
            notify.queues_changed(["serving"])

    page = live(signed_in("/queues/?levels=0"))
    for name in ("serving", "language"):
        page.get_by_label(f"Select {name}", exact=True).check()
    act(remove)

    expect(page.locator("#bulk")).to_contain_text("1 selected")


def test_a_word_that_is_not_known_is_told_while_typing_and_refused_when_sent(signed_in: Opens):
    page = live(signed_in("/queues/"))
    page.keyboard.press("/")
    page.keyboard.type("is:bor")
    expect(page.locator("#search-problems")).to_contain_text("There are is:borrowing.")
    expect(shown(page)).to_have_count(14)

    with page.expect_navigation() as sent:
        page.keyboard.press("Enter")

    assert sent.value.status == 400
    expect(page.get_by_role("alert")).to_contain_text("There is no “is:bor”")
    expect(shown(page)).to_have_count(0)
    live(page).get_by_label("Search queues").fill("vision")
    expect(row(page, "vision")).to_be_visible()
    expect(page.locator("#search-problems")).to_be_empty()
