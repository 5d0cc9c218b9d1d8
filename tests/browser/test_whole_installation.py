"""What somebody sees who has just typed `make run`: all processes, the sample cluster, and a page
that lives through their deaths.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import sign_in
from tests.running import PATIENCE_SECONDS, Running

pytestmark = pytest.mark.browser
PATIENCE = PATIENCE_SECONDS * 1000  # Playwright counts in milliseconds


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("site") / "var", demo=True) as running:
        yield running


@pytest.fixture
def tree(site: Running, page: Page) -> Page:
    page.goto(f"{site.address}/queues/")
    sign_in(page, password=(site.var / "admin-password").read_text().strip())
    page.wait_for_url("**/queues/")
    return page


def expect_live(page: Page) -> None:
    expect(page.locator("#pill")).to_have_attribute("data-state", "live", timeout=PATIENCE)


def wait_for_change(page: Page) -> None:
    """Until the table of queues reads otherwise than now, with nobody touching the page."""
    before = page.locator("table").first.inner_text()
    page.wait_for_function(
        "before => document.querySelector('table').innerText !== before",
        arg=before,
        timeout=PATIENCE,
    )


def test_the_sample_cluster_shows_its_queues_and_numbers_that_change_by_themselves(tree: Page):
    expect_live(tree)

    assert tree.locator("table tbody tr").count() >= 12
    wait_for_change(tree)


@pytest.mark.parametrize("name", ["web", "redis", "scheduler"])
def test_the_page_is_live_again_after_a_process_was_killed(site: Running, tree: Page, name: str):
    expect_live(tree)

    site.kill(name)
    site.wait_until_sessions_run()

    expect_live(tree)
    wait_for_change(tree)
