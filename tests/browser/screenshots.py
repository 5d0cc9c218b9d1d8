"""`make screenshots`: starts everything on an empty folder, waits until it lives, and takes every
page in light and dark, wide and narrow.

All pictures go to build/screenshots/; those that README and docs show are copied to docs/images/.
With names of pages as arguments only those are taken: `python -m tests.browser.screenshots queues
queue`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.browser.server import ROOT
from tests.conftest import chromium
from tests.dashboard.conftest import free_port

OUT = ROOT / "build" / "screenshots"
KEPT = {
    "queues-light-1440": "queue-tree.png",
    "queues-dark-1440": "queue-tree-dark.png",
    "overview-light-1440": "overview.png",
    "queue-light-1440": "queue-page.png",
    "queue-history-dark-1440": "queue-history.png",
    "suspend-dialog-light-1440": "suspend.png",
    "edit-drawer-light-1440": "queue-form.png",
    "queues-light-360": "phone.png",
}
PAGES = {
    "overview": "/",
    "queues": "/queues/",
    "queues-gpu": "/queues/?resource=gpu",
    "queues-absolute": "/queues/?scale=absolute",
    "queues-starved": "/queues/?q=is:starved",
    "queues-nothing-found": "/queues/?q=no-such-queue",
    "queues-table": "/queues/?view=table&sort=-weight",
    "queues-map": "/queues/?view=map",
    "queue": "/queues/language/",
    "queue-gpu": "/queues/language/?resource=gpu",
    "queue-parent": "/queues/research/",
    "queue-suspended": "/queues/sandbox/",
    "queue-closing": "/queues/adhoc/",
    "queue-history": "/queues/language/history/?resource=gpu",
    "queue-activity": "/queues/sandbox/activity/",
    "queue-access": "/queues/language/access/",
    "queue-yaml": "/queues/language/yaml/",
    "actions": "/queues/language/actions/",
    "edit": "/queues/vision/edit/",
    "edit-yaml": "/queues/vision/edit/?as=yaml",
    "new": "/queues/-/new/?parent=research",
    "suspend": "/queues/research/suspend/",
    "delete": "/queues/research/delete/",
    "close-first": "/queues/research/farewell/",
    "bulk": "/queues/-/commands/?command=suspend&queue=vision&queue=sandbox&queue=etl",
    "components": "/components/",
    "jobs": "/jobs/",
    "jobs-waiting": "/jobs/?q=state:pending",
    "job-new": "/jobs/-/new/",
    "nodes": "/nodes/",
    "sessions": "/sessions/",
    "activity": "/activity/",
    "audit": "/audit/",
    "policy": "/policy/",
    "account": "/account/",
    "users": "/users/",
    "user-new": "/users/-/new/",
    "grants": "/users/-/grants/?queue=language",
    "pause": "/sessions/-/pause/",
    "api-docs": "/api/docs/",
    "api-browsable": "/api/v1/queues/language/",
    "not-found": "/queues/nothing/",
}
JOB = 'main a[href^="/jobs/"][href$="/"]:not([href="/jobs/"]):not([href*="/-/"])'
NODE = 'main a[href^="/nodes/"]:not([href="/nodes/"]):not([href*="?"])'
# Pages whose address is not known before: where to look for a link to one, and what to add to it.
LINKED = {
    "job": ("/jobs/?q=state:pending", JOB, ""),
    "job-running": ("/jobs/?q=state:running", JOB, ""),
    **{
        f"job-{tab}": ("/jobs/?q=state:running", JOB, f"{tab}/")
        for tab in ("members", "timeline", "events", "evictions", "yaml")
    },
    "job-cancel": ("/jobs/?q=state:running", JOB, "cancel/"),
    "node": ("/nodes/", NODE, ""),
    **{f"node-{verb}": ("/nodes/", NODE, f"{verb}/") for verb in ("drain", "lose")},
    "session": (
        "/sessions/",
        'main a[href^="/sessions/"]:not([href="/sessions/"]):not([href*="/-/"])',
        "",
    ),
    "audit-entry": (
        "/audit/",
        'main a[href^="/audit/"]:not([href="/audit/"]):not([href*="?"])',
        "",
    ),
    "policy-version": (
        "/policy/",
        'main a[href^="/policy/"]:not([href="/policy/"]):not([href*="?"])',
        "",
    ),
    "user": ("/users/", 'main a[href^="/users/"]:not([href="/users/"]):not([href*="/-/"])', ""),
}
SIZES = {1440: 900, 360: 780}
SECONDS_OF_LIFE = int(
    os.environ.get("SCREENSHOT_SECONDS", "75")
)  # long enough for a few points of history


def suspend_dialog(page: Page) -> None:
    page.locator('tr[data-key="research"] .row-act').click()
    page.locator("#dialog").get_by_role("link", name="Suspend…").click()
    page.locator("#dialog").get_by_role("button", name="Suspend research").wait_for()


def mistaken_form(page: Page) -> None:
    page.get_by_label("Deserved of GPU").fill("26")
    page.locator("#findings .remedies").wait_for()


def drawer(page: Page) -> None:
    """On a desk; a phone goes to the page."""
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("Weight").wait_for()
    mistaken_form(page)


def palette(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.keyboard.type("la")
    page.locator("#palette-list li").first.wait_for()


def shortcuts(page: Page) -> None:
    page.keyboard.press("?")


def selection(page: Page) -> None:
    for name in ("etl", "batch"):
        page.get_by_label(f"Select {name}").check()


# Pages on which something is done first.
SCENES: dict[str, tuple[str, Callable[[Page], None]]] = {
    "suspend-dialog": ("/queues/", suspend_dialog),
    "edit-mistaken": ("/queues/vision/edit/", mistaken_form),
    "edit-drawer": ("/queues/vision/", drawer),
    "palette": ("/", palette),
    "shortcuts": ("/queues/", shortcuts),
    "selection": ("/queues/", selection),
}


def main(wanted: list[str]) -> None:
    unknown = sorted(set(wanted) - {*PAGES, *LINKED, *SCENES})
    if unknown:
        sys.exit(
            f"There is no page {unknown[0]}. There are: {', '.join([*PAGES, *LINKED, *SCENES])}."
        )
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        environment = {**os.environ, "FUMAROLE_VAR": folder, "PORT": str(port)}
        for name in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY"):
            environment.pop(name, None)
        with (OUT / "server.log").open("w") as log:
            server = subprocess.Popen(
                [sys.executable, "manage.py", "up"],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
            )
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_ready(url)
            take_all(url, (Path(folder) / "admin-password").read_text().strip(), wanted)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)
    keep()


def wait_until_ready(url: str) -> None:
    for _ in range(480):
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.5)
    sys.exit(f"The server did not become ready; see {OUT / 'server.log'}.")


def take_all(url: str, password: str, wanted: list[str]) -> None:
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=chromium(), args=arguments)
        cookies = sign_in(browser, url, password)
        for theme in ("light", "dark"):
            for width, height in SIZES.items():
                context = browser.new_context(
                    base_url=url,
                    color_scheme=theme,
                    viewport={"width": width, "height": height},
                )
                context.set_default_timeout(60_000)
                take_sign_in(context, theme, width)
                context.add_cookies(cookies)  # type: ignore[arg-type]
                take_pages(context, f"{theme}-{width}", wanted)
                context.close()
        browser.close()


def take_pages(context: BrowserContext, options: str, wanted: list[str]) -> None:
    """One tab for all: each page is left before the next is opened, so that no two of them burden
    the server.
    """
    page = context.new_page()
    for name in wanted or [*PAGES, *LINKED, *SCENES]:
        path, act = (
            SCENES[name]
            if name in SCENES
            else (PAGES.get(name) or linked(page, *LINKED[name]), None)
        )
        if not path:
            print(f"{name}: nothing leads there")
            continue
        show(page, path)
        if act:
            act(page)
        page.wait_for_timeout(500)
        page.screenshot(path=OUT / f"{name}-{options}.png")


def linked(page: Page, path: str, selector: str, suffix: str) -> str:
    page.goto(path)
    link = page.locator(selector).first
    return f"{link.get_attribute('href')}{suffix}" if link.count() else ""


def show(page: Page, path: str) -> None:
    page.goto(path)
    if page.locator("#pill").count():
        page.locator('#pill[data-state="live"]').wait_for()
    if page.locator("#history").count():
        page.locator("#history canvas, #history .empty").first.wait_for()


def sign_in(browser: Browser, url: str, password: str) -> list[object]:
    context = browser.new_context(base_url=url)
    page = context.new_page()
    page.goto("/accounts/login/")
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{url}/")
    stage(page)
    return list(context.cookies())


def stage(page: Page) -> None:
    """One queue suspended and one draining, so that the pictures show more than one state."""
    time.sleep(SECONDS_OF_LIFE / 2)
    for name, verb, reason in (
        ("sandbox", "suspend", "quota change"),
        ("adhoc", "close", "moves to reports"),
    ):
        page.goto(f"/queues/{name}/{verb}/")
        page.get_by_label("Reason").fill(reason)
        page.get_by_role("button", name=re.compile(f"^{verb}", re.IGNORECASE)).click()
        page.wait_for_load_state()
    time.sleep(SECONDS_OF_LIFE / 2)


def take_sign_in(context: BrowserContext, theme: str, width: int) -> None:
    page = context.new_page()
    page.goto("/accounts/login/")
    page.screenshot(path=OUT / f"sign-in-{theme}-{width}.png")
    page.close()


def keep() -> None:
    images = ROOT / "docs" / "images"
    images.mkdir(parents=True, exist_ok=True)
    for taken, kept in KEPT.items():
        if (OUT / f"{taken}.png").exists():
            shutil.copyfile(OUT / f"{taken}.png", images / kept)
    print(
        f"{len(list(OUT.glob('*.png')))} pictures in {OUT.relative_to(ROOT)}, {len(KEPT)} "
        "of them copied to docs/images"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
