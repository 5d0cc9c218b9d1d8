"""The group of insights in the navigation, and its pages: axe, both themes, both widths."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_manners import AXE

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
PAGES = ("", "usage/", "fairness/", "usage/prices/")
CHECK = f"""() => {{ {AXE};
  return axe.run(document).then((found) => found.violations.map((one) => one.id));
}}"""
WIDER = "document.documentElement.scrollWidth > innerWidth"


def test_the_group_is_opened_by_keys_and_stays_open(signed_in: Opens):
    page = signed_in("/queues/", viewport={"width": 1440, "height": 900})
    rail = page.get_by_role("navigation", name="Main")
    expect(page.locator("#pill")).to_have_text("Live")
    expect(rail.get_by_role("link", name="Fairness")).to_be_hidden()

    rail.locator("summary").focus()
    page.keyboard.press("Enter")
    rail.get_by_role("link", name="Nodes").click()
    rail.get_by_role("link", name="Fairness").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Fairness")
    expect(rail.locator('[aria-current="page"]')).to_have_text("Fairness")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 360])
def test_axe_finds_nothing_and_nothing_is_off_the_side(signed_in: Opens, width: int, theme: str):
    viewport = {"width": width, "height": 800}
    page = signed_in("/insights/", viewport=viewport, color_scheme=theme, reduced_motion="reduce")
    found = {}
    for name in PAGES:
        page.goto(f"/insights/{name}")
        expect(page.locator("#pill")).to_have_text("Live")
        found[name] = [page.evaluate(CHECK), page.evaluate(WIDER)]

    assert found == {name: [[], False] for name in PAGES}
