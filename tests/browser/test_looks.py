"""What only a drawn page shows: words that are cut off, buttons that break, what lies out of sight,
what paper shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.sample import add_queue

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
PHONE = {"width": 360, "height": 780}
CUT_OFF = (
    "nodes => nodes.filter(node => node.scrollWidth > node.clientWidth + 1).map(node => "
    "node.textContent)"
)
IN_SIGHT = (
    "node => node.getBoundingClientRect().left >= 0 && node.getBoundingClientRect().right <= "
    "innerWidth"
)
SEVERAL_LINES = """rows => rows.filter(row => {
    const first = row.firstElementChild.getBoundingClientRect();
    const last = row.lastElementChild.getBoundingClientRect();
    return last.top > first.bottom || last.right > row.getBoundingClientRect().right + 1;
}).map(row => row.textContent)"""
BROKEN = "nodes => nodes.filter(node => node.offsetHeight > 45).map(node => node.textContent)"


def test_no_figure_of_the_tree_is_cut_off_on_a_desk(signed_in: Opens):
    page = signed_in("/queues/", viewport={"width": 1440, "height": 900})
    expect(page.locator("#pill")).to_have_text("Live")

    assert page.locator(".c-res small, .live-table th").evaluate_all(CUT_OFF) == []


@pytest.mark.parametrize("width", [1440, 1345])
def test_a_queue_is_one_line_where_its_figures_have_columns(signed_in: Opens, width: int):
    page = signed_in("/queues/?resource=cpu", viewport={"width": width, "height": 900})
    expect(page.locator("#pill")).to_have_text("Live")

    assert page.locator(".live-table tbody tr:visible").evaluate_all(SEVERAL_LINES) == []
    if width == 1440:
        assert page.locator(".live-table th").evaluate_all(CUT_OFF) == []


@pytest.mark.parametrize("path", ["/queues/vision/", "/account/", "/users/"])
def test_buttons_keep_their_words_whole_on_a_phone(signed_in: Opens, path: str):
    page = signed_in(path, viewport=PHONE)

    assert page.locator("main .btn:visible").evaluate_all(BROKEN) == []


def test_the_tab_that_is_open_is_in_sight_on_a_phone(signed_in: Opens):
    page = signed_in("/queues/vision/yaml/", viewport=PHONE)

    expect(page.locator("#pill")).to_have_text("Live")
    assert page.locator(".tabs [aria-current]").evaluate(IN_SIGHT)
    page.goto("/users/")
    expect(page.locator("#pill")).to_have_text("Live")
    assert page.locator(".rail [aria-current]").evaluate(IN_SIGHT)


def test_a_queue_with_a_very_long_name_pushes_nothing_off_the_page(
    signed_in: Opens, act: Callable[..., Any]
):
    name = "team-" + "x" * 248
    page = signed_in("/account/", viewport=PHONE)
    act(add_queue, name)
    for path in (f"/queues/{name}/", f"/queues/{name}/suspend/", f"/users/-/grants/?queue={name}"):
        page.goto(path)

        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


def test_paper_is_light_whatever_the_theme(signed_in: Opens):
    page = signed_in("/queues/", color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    page.emulate_media(media="print", color_scheme="dark")

    expect(page.locator("html")).to_have_attribute("data-bs-theme", "light")
    expect(page.locator(".row-act").first).to_be_hidden()


def test_enter_in_a_field_of_a_new_job_checks_it(signed_in: Opens):
    page = signed_in("/jobs/-/new/")
    page.get_by_label("Name", exact=True).fill("by-keys")
    page.get_by_label("Name", exact=True).press("Enter")

    expect(page.locator("#verdict h2")).not_to_have_text("Check before you send")
    expect(page.get_by_label("Name", exact=True)).to_have_value("by-keys")


def test_a_selection_says_what_will_change_not_that_it_has(signed_in: Opens):
    page = signed_in("/queues/-/commands/?command=suspend&queue=vision")

    expect(page.locator('.results [data-key="vision"]')).to_contain_text("Open → Suspended")
    expect(page.locator(".results")).not_to_contain_text("is now")


def test_the_description_of_the_api_is_dark_where_the_console_is(signed_in: Opens):
    page = signed_in("/api/docs/", color_scheme="dark")

    expect(page.locator("html")).to_have_class("dark-mode")
    expect(page.locator(".swagger-ui .info .title")).to_be_visible()


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("connecting", "Connecting"),
        ("reconnecting", "Reconnecting"),
        ("stale", "Stale since 12:03"),
    ],
)
def test_the_pill_lies_on_nothing_on_a_phone(signed_in: Opens, state: str, words: str):
    page = signed_in("/queues/", viewport=PHONE)
    expect(page.locator("#pill")).to_have_text("Live")

    page.locator("#pill").evaluate(
        """(pill, [state, words]) => {
          pill.dataset.state = state;
          pill.querySelector(".pill-text").textContent = words;
        }""",
        [state, words],
    )
    ends, begins = page.evaluate("""() => {
      const shown = (of) => [...document.querySelectorAll(of)].find((node) => node.offsetWidth);
      const pill = shown("#pill");
      const next = shown(".theme-switch, .topbar .menu");
      return [pill.getBoundingClientRect().right, next.getBoundingClientRect().left];
    }""")

    assert ends <= begins
    assert page.locator(".topbar .menu").evaluate(IN_SIGHT)
