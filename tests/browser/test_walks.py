"""Both walks of docs/how-to/first-ten-minutes-*.md, click by click, as somebody new would go them,
on a whole installation.

WALK_PICTURES=docs/images python -m pytest tests/browser/test_walks.py takes the pictures of the
documents on the way
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import sign_in
from tests.running import BASE, PATIENCE_SECONDS, Running, clean_environment

pytestmark = pytest.mark.browser
PATIENCE = PATIENCE_SECONDS * 1000
NEW_PASSWORD = "a long first password"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("walk") / "var", demo=True) as running:
        running.wait_until_sessions_run()
        yield running


@pytest.fixture(autouse=True)
def patient() -> Iterator[None]:
    """Everything runs here at once, on a machine that may have other work to do."""
    expect.set_options(timeout=PATIENCE)
    yield
    expect.set_options(timeout=30_000)


def opened(browser: Browser, site: Running, name: str) -> Page:
    """Signed in by the form, in a browser of its own."""
    password = (
        (site.var / "admin-password").read_text().strip() if name == "admin" else NEW_PASSWORD
    )
    context = browser.new_context(base_url=site.address, viewport={"width": 1280, "height": 860})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto("/")
    sign_in(page, name, password)
    expect(page.locator("#pill")).to_have_text("Live", timeout=PATIENCE)
    return page


def picture(page: Page, name: str, part: str = "") -> None:
    folder = os.environ.get("WALK_PICTURES")
    if folder:
        page.evaluate("scrollTo(0, 0)")
        page.wait_for_timeout(500)
        (page.locator(part) if part else page).screenshot(path=Path(folder) / f"walk-{name}.png")


def heading(page: Page) -> Any:
    return page.get_by_role("heading", level=1)


def go(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Main").get_by_role("link", name=name).click()


def test_the_first_ten_minutes_of_an_admin(site: Running, browser: Browser, tmp_path: Path):
    page = opened(browser, site, "admin")
    expect(heading(page)).to_have_text("Overview")
    _look_at_nodes(page)
    _give_rights(page)
    _find_what_waits(page)
    _take_a_node_out(page)
    _change_the_rules(page)
    _see_who_used_what(page)
    _stop_everything(page, site, tmp_path)
    page.context.close()


def _look_at_nodes(page: Page) -> None:
    go(page, "Nodes")
    page.get_by_role("link", name="Map", exact=True).click()
    expect(page.locator(".free-rooms, #nodes").first).to_contain_text("free")
    picture(page, "nodes")


def _see_who_used_what(page: Page) -> None:
    """What is used is booked after some three minutes: until then the page says so."""
    go(page, "Insights")
    page.get_by_role("main").get_by_role("link", name=re.compile("^Usage")).click()
    expect(heading(page)).to_have_text("Usage")
    _wait_for_usage(page)
    picture(page, "usage")
    page.get_by_role("link", name="language", exact=True).click()
    expect(page.get_by_role("region", name="Usage by user")).to_be_visible()
    go(page, "Fairness")
    expect(page.get_by_role("region", name="Where the room went")).to_contain_text("Used")
    picture(page, "fairness")
    go(page, "Timeline")
    expect(page.locator('[data-lane="policy"] a').first).to_be_visible()


def _wait_for_usage(page: Page) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS + 200
    while not page.get_by_role("link", name="language", exact=True).count():
        assert time.monotonic() < deadline, "nothing was booked"
        page.wait_for_timeout(5000)
        page.reload()


def _give_rights(page: Page) -> None:
    for name, role, queue in (("ruth", "admin", "research"), ("sam", "submitter", "vision")):
        _make_account(page, name)
        page.get_by_role("radio", name=re.compile(f"^{role}")).check()
        page.get_by_label("On", exact=True).select_option(queue)
        page.get_by_role("button", name="Grant").click()
        expect(page.get_by_text(f"{name} is {role} on {queue} and below.")).to_be_visible()
    go(page, "Users")
    page.get_by_role("link", name="Roles by queue").click()
    page.locator("select[name=queue]").first.select_option("vision")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("row", name=re.compile("ruth"))).to_contain_text(
        "inherited from research"
    )
    picture(page, "roles")


def _make_account(page: Page, name: str) -> None:
    """Or open it, where a first try of this test has made it."""
    go(page, "Users")
    expect(heading(page)).to_have_text("Users and roles")
    if page.get_by_role("link", name=name, exact=True).count():
        return page.get_by_role("link", name=name, exact=True).first.click()
    page.get_by_role("link", name="New account").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("First password").fill(NEW_PASSWORD)
    page.get_by_role("button", name="Create account").click()
    return None


def _find_what_waits(page: Page) -> None:
    go(page, "Jobs")
    page.get_by_role("link", name="Waiting", exact=True).click()
    expect(page.locator(".job-table tbody tr").first).to_be_visible(timeout=PATIENCE)
    page.get_by_role("searchbox", name="Filter jobs").fill("state:waiting queue:research/* gpu>=8")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Remove gpu>=8")).to_be_visible()
    picture(page, "jobs")
    page.get_by_text("Views").click()
    page.get_by_label("Save this view as").fill("research waits")
    page.get_by_label("share it with everybody").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("The view “research waits” is kept")).to_be_visible()
    page.goto("/jobs/?q=state:running+queue:sandbox")
    page.locator('input[name="job"]:enabled').first.check(timeout=PATIENCE)
    page.get_by_role("button", name="Suspend…").click()
    page.get_by_role("button", name="Suspend 1 job").click()
    expect(heading(page)).to_have_text("Suspend: 1 of 1 done", timeout=PATIENCE)


def _take_a_node_out(page: Page) -> None:
    go(page, "Nodes")
    page.get_by_role("link", name="gpu-small-01").click()
    expect(page.get_by_role("link", name=re.compile("^(Unc|C)ordon…$"))).to_be_visible()
    if page.get_by_role(
        "link", name="Uncordon…"
    ).count():  # a first try of this test has left it so
        _give_back(page)
    page.get_by_role("link", name="Drain…").click()
    expect(page.locator("#dialog")).to_contain_text("pods evicted")
    page.locator("#dialog").get_by_role("button", name="Drain gpu-small-01").click()
    _give_back(page)


def _give_back(page: Page) -> None:
    page.get_by_role("link", name="Uncordon…").click()
    page.locator("#dialog").get_by_role("button", name="Uncordon gpu-small-01").click()
    expect(page.get_by_role("link", name="Cordon…", exact=True)).to_be_visible()


def _change_the_rules(page: Page) -> None:
    go(page, "Policy")
    text = page.locator("#text").input_value()
    page.locator("#text").fill(text.replace("allocate", "allocate, dance", 1))
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#verdict")).to_contain_text("dance")
    page.locator("#text").fill(
        text.replace(", backfill", "", 1)
        if ", backfill" in text
        else text.replace("allocate", "allocate, backfill", 1)
    )
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#verdict")).to_contain_text("This policy can be used")
    picture(page, "policy")
    page.get_by_role("button", name="Apply policy").click()
    expect(page.get_by_text(re.compile(r"Policy \d+ applied"))).to_be_visible()
    the_one_before = page.locator(".history-list").get_by_role("link").nth(1)
    the_one_before.click()
    page.get_by_role("button", name="Go back to this policy").click()
    expect(page.locator("#text")).to_have_value(text)


def _stop_everything(page: Page, site: Running, folder: Path) -> None:
    go(page, "Sessions")
    page.get_by_role("link", name="Pause scheduling…").click()
    page.locator("#dialog").get_by_label("Reason").fill("a walk")
    page.locator("#dialog").get_by_role("button", name="Pause scheduling").click()
    expect(page.get_by_text("Scheduling is paused by admin: “a walk”")).to_be_visible()
    picture(page, "paused")
    page.get_by_role("link", name="Resume scheduling…").click()
    page.locator("#dialog").get_by_role("button", name="Resume scheduling").click()
    page.get_by_role("link", name="Decided something").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="save").first.click()
    download.value.save_as(folder / "session.json")
    run = subprocess.run(
        [sys.executable, "manage.py", "simulate", str(folder / "session.json")],
        cwd=BASE,
        env=clean_environment(site.var, site.port),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    go(page, "Activity")
    page.get_by_role("link", name="Audit log").click()
    page.get_by_role("textbox", name="Who").fill("admin")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator(".audit-table")).to_contain_text("a walk")


def test_the_first_ten_minutes_of_a_submitter(site: Running, browser: Browser):
    """After the walk of the admin, who made the account."""
    page = opened(browser, site, "sam")
    expect(page).to_have_url(re.compile(r"/jobs/\?q=user(:|%3A)me"))
    _submit(page)
    _see_why_it_waits(page)
    _see_own_usage(page)
    _stop_and_clone(page)
    _use_a_token(page, site)
    page.context.close()


def _see_own_usage(page: Page) -> None:
    where = page.url
    page.goto("/insights/usage/?queue=vision&by=user&window=24h")
    expect(heading(page)).to_have_text("Usage")
    expect(page.get_by_role("region", name="Usage by user")).to_be_visible()
    page.goto("/nodes/-/room/?queue=vision")
    expect(page.get_by_role("row", name=re.compile("^8 GPU"))).to_be_visible()
    page.goto(where)
    page.locator(".tabs").get_by_role("link").first.click()


def _submit(page: Page) -> None:
    page.get_by_role("link", name="Submit a job").first.click()
    expect(page.locator(".choice")).to_have_count(1)
    page.get_by_label("Name", exact=True).fill("first")
    page.get_by_label("Command").fill("sleep 600")
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#verdict h2")).to_have_text(re.compile("Starts now|Waits|Starts when"))
    picture(page, "submit")
    page.get_by_role("button", name="Submit").click()
    expect(heading(page)).to_have_text("first")


def _see_why_it_waits(page: Page) -> None:
    page.goto("/jobs/-/new/")
    page.get_by_label("Name", exact=True).fill("large")
    page.get_by_label("Pods").fill("5")
    page.get_by_label("Needed to start").fill("5")
    page.locator("#gpu").fill("8")
    page.get_by_role("button", name="Submit").click()
    card = page.get_by_role("region", name="Why it waits")
    expect(card).to_contain_text("in session", timeout=PATIENCE)
    expect(card).to_contain_text(re.compile(r"\d+(st|nd|rd|th) of \d+ in"))
    picture(page, "job")
    card.get_by_text(re.compile(r"All \d+ checks")).click()
    expect(page.get_by_role("region", name="Checks")).to_contain_text("short")
    page.locator(".tabs").get_by_role("link", name="Timeline").click()
    expect(page.locator(".timeline")).to_contain_text("waiting")


def _stop_and_clone(page: Page) -> None:
    for verb, state in (
        ("Suspend", "Aborted"),
        ("Resume", "Pending|Inqueue|Running"),
        ("Cancel", "Terminated"),
    ):
        page.get_by_role("link", name=f"{verb}…").click()
        page.locator("#dialog").get_by_role("button", name=f"{verb} large").click()
        expect(page.locator(".queue-head .phase")).to_have_text(re.compile(state), timeout=PATIENCE)
    page.get_by_role("link", name="Clone").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("large-2")


def _use_a_token(page: Page, site: Running) -> None:
    page.goto("/account/")
    page.get_by_label("New token for").fill("laptop")
    page.get_by_label("and submit jobs, and stop your own").check()
    page.get_by_role("button", name="Create token").click()
    token = re.search(r"fum_\S+", page.locator("#new-token").inner_text())
    assert token is not None
    environment = {
        **clean_environment(site.var, site.port),
        "VCCTL_SERVER": site.address,
        "VCCTL_TOKEN": token[0],
    }
    command = [sys.executable, "-m", "dashboard.cli", "job", "list"]
    listed = subprocess.run(
        command,
        cwd=BASE,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert listed.returncode == 0, listed.stderr
    assert "first" in listed.stdout
