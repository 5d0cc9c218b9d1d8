"""Every page on a phone, 360 pixels wide: axe's rules with its rule about the size of targets,
every control named, nothing off the side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from channels.layers import channel_layers
from playwright.sync_api import Page, expect

from scheduler.models import AuditEntry
from tests.browser.server import ConsoleServer
from tests.browser.test_manners import AXE
from tests.dashboard.conftest import RedisServer
from tests.dashboard.routes import paths
from tests.dashboard.work import small_cluster

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
PHONE = {"width": 360, "height": 780}
FOREIGN = ("/api/docs/",)  # swagger draws that page, with targets of its own

# axe leaves this rule out unless it is asked for; what it cannot decide by itself counts too.
CHECK = f"""() => {{ {AXE};
  const rules = {{ "target-size": {{ enabled: true }} }};
  const told = (problem, node) =>
    `${{problem.id}}: ${{node.html.slice(0, 140)}} (${{node.failureSummary.slice(0, 180)}})`;
  const lines = (problem) => problem.nodes.map((node) => told(problem, node));
  return axe.run(document, {{ rules, resultTypes: ["violations"] }})
    .then((found) => found.violations.flatMap(lines));
}}"""


@pytest.fixture
def console(
    transactional_db: None,
    console_process: ConsoleServer,
    browser_redis: RedisServer,
    act: Callable[..., Any],
    settings: Any,
) -> ConsoleServer:
    settings.REDIS_URL = browser_redis.url
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "dashboard.live.layer.NewsLayer",
            "CONFIG": {"hosts": [browser_redis.url]},
        }
    }
    channel_layers.backends.clear()
    act(small_cluster)
    return console_process


def is_settled(page: Page) -> None:
    if page.locator("#pill").count():
        expect(page.locator("#pill")).to_have_text("Live")


def problems(page: Page) -> list[str]:
    found: list[str] = page.evaluate(CHECK)
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        found.append("wider than the page")
    return found


def test_every_page_has_named_targets_that_a_finger_hits(signed_in: Opens, act: Callable[..., Any]):
    page = signed_in("/components/", viewport=PHONE, reduced_motion="reduce")
    entry = act(lambda: AuditEntry.objects.latest("pk").pk)
    found: dict[str, list[str]] = {}
    for path in [*paths(), f"/audit/{entry}/"]:
        if path in FOREIGN:
            continue
        page.goto(path)
        is_settled(page)
        if wrong := problems(page):
            found[path] = wrong

    assert found == {}


def test_so_do_menus_dialogs_and_what_is_unfolded(signed_in: Opens):
    page = signed_in("/queues/", viewport=PHONE, reduced_motion="reduce")
    is_settled(page)
    found: dict[str, list[str]] = {}
    for name in ("How to search", "How to read the bars"):
        page.get_by_text(name).click()
        found[name] = problems(page)
        page.keyboard.press("Escape")
    page.get_by_label("Select vision", exact=True).check()
    found["a selection"] = problems(page)
    page.locator("#bulk").get_by_role("button", name="Close…").click()
    expect(page.locator("#dialog")).to_contain_text("gangs running")
    page.get_by_text("The same in a terminal").click()
    found["a dialog"] = problems(page)
    page.goto("/jobs/")
    for name in ("How to filter", "Views", "Columns"):
        page.locator("summary", has_text=name).click()
        found[name] = problems(page)
        page.keyboard.press("Escape")

    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_the_rule_about_targets_is_not_blind(signed_in: Opens):
    page = signed_in("/components/", viewport=PHONE)
    page.evaluate("""() => document.querySelector("main").insertAdjacentHTML("afterbegin",
      "<p class='tiny'><button>a</button><button>b</button></p>")""")
    page.evaluate(
        "() => document.querySelectorAll('.tiny button').forEach((one) => { "
        "one.style.cssText = 'all: unset; width: 8px; height: 8px' })"
    )

    assert any(problem.startswith("target-size") for problem in problems(page))
