"""One action on many jobs, with the real worker: it goes on while nobody looks, is found again, and
what was refused is tried once more.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
import yaml
from playwright.sync_api import Page, expect

from tests.browser.conftest import sign_in
from tests.running import PATIENCE_SECONDS, Running, descendants_of
from tests.worlds import manifest

pytestmark = pytest.mark.browser
PATIENCE = PATIENCE_SECONDS * 1000
JOBS = 60  # more than a slice: the worker asks for another one on the way


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Without nodes, so that every job waits and stays as it is."""
    with Running(tmp_path_factory.mktemp("many") / "var", demo=False) as running:
        running.wait_until_sessions_run()
        api(
            running,
            "apply/",
            yaml.safe_dump_all(manifest(f"many-{number}", "default") for number in range(JOBS)),
        )
        yield running


def api(site: Running, path: str, text: str = "") -> None:
    token = (site.var / "cli-token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/yaml"}
    httpx.post(
        f"{site.address}/api/v1/{path}", content=text, headers=headers, timeout=PATIENCE_SECONDS
    ).raise_for_status()


def command(site: Running, job: str, action: str) -> None:
    target = {"kind": "Job", "namespace": "default", "name": job}
    api(site, "commands/", yaml.safe_dump({"action": action, "target": target}))


@contextmanager
def worker_asleep(site: Running) -> Iterator[None]:
    worker = site.children()["worker"]
    processes = [worker, *descendants_of(worker)]
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


def test_an_action_on_many_goes_on_by_itself_and_the_refused_are_tried_again(
    site: Running, page: Page
):
    page.goto(f"{site.address}/jobs/")
    sign_in(page, password=(site.var / "admin-password").read_text().strip())
    page.wait_for_url("**/jobs/")
    with worker_asleep(site):
        page.get_by_label("all that match").check()
        page.get_by_role("button", name="Suspend…").click()
        page.get_by_role("button", name=f"Suspend {JOBS} jobs").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(f"Suspend: 0 of {JOBS} done")
        command(
            site, "many-7", "TerminateJob"
        )  # so that it cannot be suspended when its turn comes
        page.goto(f"{site.address}/nodes/")

    page.goto(f"{site.address}/jobs/")
    page.locator("#bulk-runs").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(
        f"Suspend: {JOBS} of {JOBS} done", timeout=PATIENCE
    )
    expect(page.locator('tr[data-key="default/many-7"]')).to_contain_text("refused")
    expect(page.locator('.result[data-result="Done"]')).to_have_count(JOBS - 1)

    command(site, "many-7", "RestartJob")
    page.get_by_role("button", name="Try the 1 refused again").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "Suspend: 1 of 1 done", timeout=PATIENCE
    )
    expect(page.locator('tr[data-key="default/many-7"]')).to_contain_text("suspended")
