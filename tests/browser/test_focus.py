"""Whoever walks by keys sees where he is: every kind of control on every page shows the focus, with
contrast, light and dark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
LEAST_CONTRAST = 3  # of a ring against what is around it, by WCAG's 1.4.11
PAGES = [
    "/",
    "/queues/",
    "/queues/?view=table",
    "/queues/?view=map",
    "/queues/vision/",
    "/queues/vision/history/",
    "/queues/vision/edit/",
    "/queues/-/new/?as=yaml",
    "/jobs/",
    "/jobs/-/new/",
    "/nodes/",
    "/sessions/",
    "/activity/",
    "/audit/",
    "/policy/",
    "/account/",
    "/users/",
    "/users/-/grants/?queue=vision",
]
# One control of each kind gets the focus. The answer lists those whose ring is missing or too
# faint, with the contrast that was found.
UNSEEN = """(least) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const over = ([r, g, b, a], [r0, g0, b0]) => {
    const mixed = ([top, below]) => (top * a + below * (255 - a)) / 255;
    return [[r, r0], [g, g0], [b, b0]].map(mixed);
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const weights = [0.2126, 0.7152, 0.0722];
  const light = (rgb) => rgb.slice(0, 3)
    .map((part) => linear(part / 255))
    .reduce((sum, part, at) => sum + part * weights[at], 0);
  const contrast = (one, other) => {
    const [dark, bright] = [light(one), light(other)].sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
  };
  const rings = (element) => {
    const style = getComputedStyle(element);
    const found = [];
    const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
    if (outlined) found.push(style.outlineColor);
    if (element.matches(".search") && style.boxShadow !== "none") found.push(style.borderTopColor);
    if (element.matches(".cell") && parseFloat(style.strokeWidth) >= 2) found.push(style.stroke);
    const below = ground(element.parentElement);
    return found.map((colour) => contrast(over(rgba(colour), below), below));
  };
  const kinds = new Map();
  const controls = "a[href], button, input, select, textarea, summary, [tabindex='0']";
  for (const element of document.querySelectorAll(controls)) {
    const box = element.getBoundingClientRect();
    const invisible = getComputedStyle(element).visibility === "hidden";
    const unreachable = element.disabled || element.tabIndex < 0;
    const hidden = !box.width || !box.height || unreachable || invisible;
    const classes = element.getAttribute("class") ?? "";
    const inside = element.parentElement.tagName;
    const kind = [element.tagName, element.type ?? "", classes, inside].join(" ");
    if (!hidden && !kinds.has(kind)) kinds.set(kind, element);
  }
  const unseen = [];
  for (const [kind, element] of kinds) {
    element.focus();
    if (document.activeElement !== element) continue;
    const ringed = [element, element.closest(".search"), element.querySelector(".cell")];
    const best = Math.max(0, ...ringed.filter(Boolean).flatMap(rings));
    if (best < least) unseen.push(`${kind}: ${best.toFixed(2)}`);
  }
  return { unseen, looked: kinds.size };
}"""


def unseen_in_both_schemes(page: Page, at_least: int) -> list[str]:
    """The kinds of controls without a ring, of at least so many."""
    unseen: list[str] = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        expect(page.locator("html")).to_have_attribute("data-bs-theme", scheme)
        answer: dict[str, Any] = page.evaluate(UNSEEN, LEAST_CONTRAST)
        assert answer["looked"] >= at_least
        unseen += [f"{scheme}: {kind}" for kind in answer["unseen"]]
    return unseen


def test_every_kind_of_control_shows_that_it_has_the_focus(signed_in: Opens):
    page = signed_in(
        "/components/",
        reduced_motion="reduce",
        viewport={"width": 1440, "height": 900},
    )
    found: dict[str, list[str]] = {}
    for path in PAGES:
        page.goto(path)
        expect(page.locator("#pill")).to_have_text("Live")
        page.keyboard.press(
            "Tab"
        )  # from here on the browser takes the reader for one who uses keys
        if unseen := unseen_in_both_schemes(page, at_least=6):
            found[path] = unseen

    assert found == {}


def test_so_do_those_of_drawers_and_dialogs(signed_in: Opens):
    page = signed_in(
        "/queues/vision/",
        reduced_motion="reduce",
        viewport={"width": 1440, "height": 900},
    )
    for link, there in (
        ("Edit", "#drawer #weight"),
        ("Suspend…", "#dialog #reason"),
        ("More actions", "#dialog .action"),
    ):
        page.get_by_role("link", name=link, exact=True).click()
        expect(page.locator(there).first).to_be_visible()
        page.keyboard.press("Tab")
        assert unseen_in_both_schemes(page, at_least=1) == [], link
        page.keyboard.press("Escape")
        expect(page.locator(there).first).to_be_hidden()


def test_a_date_shows_it_in_each_of_its_parts(signed_in: Opens):
    page = signed_in("/audit/", reduced_motion="reduce")
    page.locator('input[type="date"], input[type="datetime-local"]').first.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    for _ in range(3):
        shown = page.evaluate(
            "getComputedStyle(document.activeElement).outlineStyle + ' ' + "
            "document.activeElement.type"
        )
        assert shown.startswith("solid date")
        page.keyboard.press("Tab")
