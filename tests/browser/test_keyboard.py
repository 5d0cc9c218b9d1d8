"""A walk without a mouse: sign in, the tree, a queue closed and opened, a job, a queue made and
deleted. The focus is always to be seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from scheduler.domain.lifecycle import QueueCommand
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.queues.commands import command_queue
from tests.browser.server import ConsoleServer
from tests.dashboard.sample import PASSWORD

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

FOCUS = """() => {
  const here = document.activeElement;
  if (!here || here === document.body) return {name: "", problem: "the focus is lost"};
  const label = here.getAttribute("aria-label") || here.labels?.[0]?.textContent;
  const words = label || here.dataset.key || here.textContent || "";
  const name = words.trim().replace(/\\s+/g, " ");
  const shown = (element) => {
    const style = element && getComputedStyle(element);
    if (!style) return false;
    const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
    return outlined || style.boxShadow !== "none";
  };
  const box = here.getBoundingClientRect();
  const problem = !box.width || !box.height ? "it is not on the page"
    : box.bottom < 0 || box.top > innerHeight ? "it is out of sight"
    : shown(here) || shown(here.closest(".search")) ? "" : "nothing shows that it has the focus";
  return {name, problem};
}"""
MOST_TABS = 60


class Walker:
    """Only keys. Each step looks whether the focus can be seen."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, *keys: str) -> None:
        self.page.wait_for_load_state()  # until then the page's scripts hear no keys
        for key in keys:
            self.page.keyboard.press(key)

    def write(self, text: str) -> None:
        self.page.keyboard.type(text)

    def here(self) -> str:
        found = self.page.evaluate(FOCUS)
        assert not found["problem"], f"{found['problem']}: {found['name']}"
        return str(found["name"])

    def tab_to(self, name: str) -> None:
        """Not further than once round: between the last and the first thing of a page lies the
        browser's own frame.
        """
        passed: list[str] = []
        while not passed or not re.fullmatch(name, passed[-1]):
            assert len(passed) < MOST_TABS, f"{name} is not reached; on the way were {passed}"
            self.press("Tab")
            passed.append("" if self.is_outside() and "" not in passed else self.here())

    def is_outside(self) -> bool:
        return bool(self.page.evaluate("document.activeElement === document.body"))

    def stands_on(self, row: str) -> None:
        expect(self.page.locator(f'tr[data-key="{row}"]')).to_be_focused()
        self.here()


@pytest.fixture
def walker(console: ConsoleServer, browser: Browser) -> Walker:
    page = browser.new_context(base_url=console.url, reduced_motion="reduce").new_page()
    page.goto("/accounts/login/")
    return Walker(page)


@pytest.fixture
def at_work(signed_in: Callable[..., Page]) -> Callable[[str], Walker]:
    def open_page(path: str) -> Walker:
        page = signed_in(path, reduced_motion="reduce")  # pages scroll at once
        expect(page.locator("#pill")).to_have_attribute("data-state", "live")
        return Walker(page)

    return open_page


def test_signing_in_and_finding_a_queue(walker: Walker):
    walker.tab_to("Name") if walker.page.evaluate(
        "document.activeElement === document.body"
    ) else None
    walker.write("admin")
    walker.press("Tab")
    walker.write(PASSWORD)
    walker.press("Enter")
    expect(walker.page.get_by_role("heading", level=1)).to_have_text("Overview")
    expect(walker.page.locator("#pill")).to_have_attribute("data-state", "live")
    walker.press("Tab")
    assert walker.here() == "Skip to content"
    walker.press("?")
    expect(walker.page.locator("#shortcuts")).to_be_visible()
    walker.press("Escape", "g", "q")
    expect(walker.page.get_by_role("heading", level=1)).to_have_text("Queues")
    walker.press("/")
    walker.write("vis")
    expect(walker.page.locator('tr[data-key="serving"]')).to_be_hidden()
    walker.tab_to("root")
    walker.press("ArrowDown", "ArrowDown", "Enter")
    expect(walker.page.get_by_role("heading", level=1)).to_have_text("vision")
    walker.press("Control+k")
    walker.write("lang")
    expect(walker.page.locator("#palette-list li").first).to_contain_text("language")
    walker.press("Enter")
    expect(walker.page.get_by_role("heading", level=1)).to_have_text("language")


def test_a_dialog_keeps_the_focus_and_gives_it_back(at_work: Callable[[str], Walker]):
    walker = at_work("/queues/")
    walker.tab_to("root")
    walker.press("ArrowDown", ".")
    expect(walker.page.locator("#dialog")).to_be_visible()
    for _ in range(20):
        walker.press("Tab")
        assert walker.page.evaluate(
            "document.activeElement === document.body || "
            "document.getElementById('dialog').contains(document.activeElement)"
        )
    walker.press("Escape")

    expect(walker.page.locator("#dialog")).to_be_hidden()
    walker.stands_on("default")
    walker.press("ArrowDown")
    walker.stands_on("production")


def test_a_queue_is_closed_with_a_reason_and_opened_again(at_work: Callable[[str], Walker]):
    walker = at_work("/queues/language/")
    for verb, after in (("Close", "Clos(ed|ing)"), ("Open", "Open")):
        walker.tab_to(f"{verb}…")
        walker.press("Enter")
        expect(walker.page.locator("#reason")).to_be_focused()
        walker.write("by hand")
        walker.press("Enter")
        expect(walker.page.locator("#dialog-title")).to_have_text(f"{verb} language: done")
        assert walker.here() == "Done"
        walker.press("Enter")
        expect(walker.page.locator("#dialog")).to_be_hidden()
        expect(walker.page.locator("#queue-head .state")).to_have_text(re.compile(after))
        expect(
            walker.page.locator("#queue-head .verb", has_text=re.compile(f"^{verb}$"))
        ).to_be_visible()  # drawn anew below the focus
        walker.here()


def test_a_job_is_submitted_found_and_cancelled(at_work: Callable[[str], Walker]):
    walker = at_work("/jobs/")
    walker.tab_to("Submit a job")
    walker.press("Enter")
    expect(walker.page.get_by_role("heading", level=1)).to_have_text("Submit a job")
    walker.tab_to("Name")
    walker.write("by-hand")
    walker.tab_to("Submit")
    walker.press("Enter")
    expect(walker.page.get_by_role("heading", level=1)).to_have_text("by-hand")
    walker.press("g", "j")
    expect(walker.page.get_by_role("heading", level=1)).to_have_text("Jobs")
    walker.press("/")
    walker.write("by-hand")
    walker.press("Enter")
    expect(walker.page.locator(".job-table tbody tr")).to_have_count(1)
    walker.tab_to("by-hand")
    walker.press("Enter")
    expect(walker.page.get_by_role("heading", level=1)).to_have_text("by-hand")
    walker.tab_to("Cancel…")
    walker.press("Enter")
    expect(walker.page.locator("#reason")).to_be_focused()
    walker.write("enough")
    walker.press("Enter")

    expect(walker.page.locator(".page-head .phase")).to_have_text("Terminated")


def test_a_queue_is_made_changed_and_deleted(at_work: Callable[[str], Walker]):
    walker = at_work("/queues/")
    walker.tab_to("New queue")
    walker.press("Enter")
    expect(walker.page.locator("#name")).to_be_focused()
    walker.write("by-hand")
    walker.tab_to("Begins as")
    walker.press("End")
    walker.tab_to("Create queue")
    walker.press("Enter")
    expect(walker.page.get_by_role("heading", level=1)).to_have_text("by-hand")
    walker.tab_to("Edit")
    walker.press("Enter")
    expect(walker.page.get_by_role("dialog", name="Edit by-hand")).to_be_visible()
    walker.tab_to("Weight")
    walker.press("Control+a")
    walker.write("7")
    walker.tab_to("Save")
    walker.press("Enter")
    expect(walker.page.locator(".page-note").first).to_contain_text("weight 7")
    walker.tab_to("More actions")
    walker.press("Enter")
    expect(walker.page.locator("#dialog")).to_be_visible()
    walker.tab_to("Delete….*")
    walker.press("Enter")
    expect(walker.page.get_by_role("button", name="Delete by-hand")).to_be_visible()
    walker.tab_to("Delete by-hand")
    walker.press("Enter")

    expect(walker.page.get_by_role("heading", level=1)).to_have_text("Queues")
    expect(walker.page.locator('tr[data-key="by-hand"]')).to_have_count(0)


def test_news_take_no_focus_that_was_not_there(
    at_work: Callable[[str], Walker], act: Callable[..., object]
):
    walker = at_work("/queues/language/")
    act(command_queue, "language", QueueCommand.SUSPEND, by=Actor("somebody", Door.API))

    expect(walker.page.locator("#queue-head .state")).to_have_text("Suspended")
    assert walker.is_outside()
