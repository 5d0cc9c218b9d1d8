"""`make screenshots`: starts everything on an empty folder, waits until it lives, and takes every page in light and dark, wide and narrow.

All pictures go to build/screenshots/; those that README and docs show are copied to docs/images/.
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
    "suspend-light-1440": "suspend.png",
    "edit-light-1440": "queue-form.png",
    "queues-light-360": "phone.png",
}
PAGES = {
    "overview": "/",
    "queues": "/queues/",
    "queues-gpu": "/queues/?resource=gpu",
    "queues-table": "/queues/?view=table",
    "queues-map": "/queues/?view=map",
    "queue": "/queues/language/",
    "queue-parent": "/queues/research/",
    "queue-history": "/queues/language/history/",
    "queue-activity": "/queues/sandbox/activity/",
    "queue-access": "/queues/language/access/",
    "queue-yaml": "/queues/language/yaml/",
    "edit": "/queues/vision/edit/",
    "new": "/queues/-/new/",
    "suspend": "/queues/research/suspend/",
    "delete": "/queues/research/delete/",
    "components": "/components/",
    "jobs": "/jobs/",
    "nodes": "/nodes/",
    "sessions": "/sessions/",
    "activity": "/activity/",
    "policy": "/policy/",
    "account": "/account/",
    "users": "/users/",
    "not-found": "/queues/nothing/",
}
SIZES = {1440: 900, 360: 780}
SECONDS_OF_LIFE = int(os.environ.get("SCREENSHOT_SECONDS", "75"))  # long enough for a few points of history


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        environment = {**os.environ, "FUMAROLE_VAR": folder, "PORT": str(port)}
        for name in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY"):
            environment.pop(name, None)
        with (OUT / "server.log").open("w") as log:
            server = subprocess.Popen([sys.executable, "manage.py", "up"], cwd=ROOT, env=environment, stdout=log, stderr=log)
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_ready(url)
            take_all(url, (Path(folder) / "admin-password").read_text().strip())
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)
    keep()


def wait_until_ready(url: str) -> None:
    for _ in range(240):
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.5)
    sys.exit(f"The server did not become ready; see {OUT / 'server.log'}.")


def take_all(url: str, password: str) -> None:
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=chromium(), args=arguments)
        cookies = sign_in(browser, url, password)
        for theme in ("light", "dark"):
            for width, height in SIZES.items():
                context = browser.new_context(base_url=url, color_scheme=theme, viewport={"width": width, "height": height})
                take_sign_in(context, theme, width)
                context.add_cookies(cookies)
                for name, path in PAGES.items():
                    take(context.new_page(), name, path, theme, width)
                context.close()
        browser.close()


def sign_in(browser: Browser, url: str, password: str) -> list[dict[str, object]]:
    context = browser.new_context(base_url=url)
    page = context.new_page()
    page.goto("/accounts/login/")
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{url}/")
    stage(page)
    return context.cookies()


def stage(page: Page) -> None:
    """One queue suspended and one draining, so that the pictures show more than one state."""
    time.sleep(SECONDS_OF_LIFE / 2)
    for name, verb, reason in (("sandbox", "suspend", "quota change"), ("adhoc", "close", "moves to reports")):
        page.goto(f"/queues/{name}/{verb}/")
        page.get_by_label("Reason").fill(reason)
        page.get_by_role("button", name=re.compile(f"^{verb}", re.IGNORECASE)).click()
    time.sleep(SECONDS_OF_LIFE / 2)


def take_sign_in(context: BrowserContext, theme: str, width: int) -> None:
    page = context.new_page()
    page.goto("/accounts/login/")
    page.screenshot(path=OUT / f"sign-in-{theme}-{width}.png")
    page.close()


def take(page: Page, name: str, path: str, theme: str, width: int) -> None:
    answer = page.goto(path)
    if answer and answer.status == 404 and name != "not-found":  # a page that this version does not have
        page.close()
        return
    if page.locator("#pill").count():
        page.locator('#pill[data-state="live"]').wait_for()
    page.wait_for_timeout(700)
    page.screenshot(path=OUT / f"{name}-{theme}-{width}.png")
    page.close()


def keep() -> None:
    images = ROOT / "docs" / "images"
    images.mkdir(parents=True, exist_ok=True)
    for taken, kept in KEPT.items():
        if (OUT / f"{taken}.png").exists():
            shutil.copyfile(OUT / f"{taken}.png", images / kept)
    print(f"{len(list(OUT.glob('*.png')))} pictures in {OUT.relative_to(ROOT)}, {len(KEPT)} of them copied to docs/images")


if __name__ == "__main__":
    main()
