"""Manners everywhere: accessible by axe's rules in light and dark, the keyboard, small screens,
slow networks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from scheduler.domain.resources import Resources
from tests.browser.server import ROOT, ConsoleServer
from tests.dashboard.sample import add_queue

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
Acts = Callable[..., Any]

AXE = (ROOT / "static" / "vendor" / "axe-core" / "axe.min.js").read_text()
PAGES = [
    "/",
    "/queues/",
    "/queues/?view=table",
    "/queues/?view=map",
    "/queues/?resource=gpu",
    "/queues/?scale=absolute",
    "/queues/?q=no-such-queue",
    "/queues/vision/?resource=gpu",
    "/queues/language/",
    "/queues/research/",
    "/queues/batch/activity/",
    "/queues/vision/access/",
    "/queues/vision/history/",
    "/queues/vision/yaml/",
    "/queues/vision/actions/",
    "/queues/vision/edit/",
    "/queues/-/new/?as=yaml",
    "/queues/vision/close/",
    "/queues/research/delete/",
    "/queues/research/farewell/",
    "/queues/-/commands/?command=suspend&queue=vision&queue=batch",
    "/api/v1/",
    "/api/v1/queues/vision/",
    "/api/v1/queues/vision/close/",
    "/api/v1/grants/",
    "/components/",
    "/queues/nothing/",
]


def violations(page: Page) -> list[str]:
    """What axe finds against WCAG 2.2 AA and its best practices in light.

    In dark only the colours are new.
    """
    page.emulate_media(color_scheme="light")
    found = _run_axe(page, {"resultTypes": ["violations"]})
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    found += _run_axe(page, {"resultTypes": ["violations"], "runOnly": ["color-contrast"]})
    page.emulate_media(color_scheme="light")
    return found


def _run_axe(page: Page, options: dict[str, Any]) -> list[str]:
    """In the page's own world, past its policy against foreign script.

    Twice in a page it is loaded once.
    """
    page.evaluate(f"() => {{ if (!window.axe) {{ {AXE} }} }}")
    found = page.evaluate("(options) => axe.run(document, options)", options)
    return [
        f"{problem['id']}: {node['html'][:160]} ({node['failureSummary'][:200]})"
        for problem in found["violations"]
        for node in problem["nodes"]
    ]


def test_axe_finds_nothing(signed_in: Opens):
    page = signed_in("/components/", reduced_motion="reduce")
    found: dict[str, list[str]] = {}
    for path in PAGES:
        page.goto(path)
        if page.locator("#pill").count():
            expect(page.locator("#pill")).to_have_text("Live")
        if problems := violations(page):
            found[path] = problems

    assert found == {}


def test_axe_finds_nothing_in_dialogs(signed_in: Opens):
    page = signed_in("/queues/", reduced_motion="reduce")
    expect(page.locator("#pill")).to_have_text("Live")
    page.get_by_role("link", name="Actions for vision").click()
    expect(page.locator("#dialog").get_by_role("link", name="Suspend…")).to_be_visible()
    assert violations(page) == []
    page.locator("#dialog").get_by_role("link", name="Suspend…").click()
    expect(page.locator("#dialog").get_by_role("button", name="Suspend vision")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    expect(page.locator("#palette")).to_be_visible()
    assert violations(page) == []


def test_axe_finds_nothing_in_what_only_shows_at_times(signed_in: Opens, act: Acts):
    """The rules' advice beside a form, a queue that is to be deleted, twelve resources with a long
    list to choose from, stale data.
    """
    act(
        add_queue,
        "licensed",
        deserved=Resources.parse({f"example.com/licence-{number}": 1 for number in range(9)}),
    )
    page = signed_in("/queues/vision/edit/", reduced_motion="reduce")
    page.get_by_label("Deserved of GPU").fill("26")
    expect(page.locator("#findings .remedies").first).to_be_visible()
    page.get_by_text("The same in a terminal").click()
    assert violations(page) == []
    page.goto("/queues/vision/farewell/")
    page.get_by_role("button", name="Close vision and delete it when drained").click()
    expect(page.get_by_role("button", name="Keep vision")).to_be_visible()
    assert violations(page) == []
    page.goto("/queues/?resource=all")
    page.get_by_text("more…").click()
    assert violations(page) == []
    page.locator("#as-of").evaluate("strip => strip.hidden = false")
    assert violations(page) == []


def test_axe_finds_nothing_on_the_sign_in_page(console: ConsoleServer, new_context: Any):
    page = new_context(reduced_motion="reduce").new_page()
    page.goto(f"{console.url}/accounts/login/")

    assert violations(page) == []


def test_the_palette_goes_to_a_queue(signed_in: Opens):
    page = signed_in("/")
    expect(page.locator("#pill")).to_have_text("Live")
    page.keyboard.press("Control+k")
    page.keyboard.type("lngu")
    expect(page.locator('#palette-list [aria-selected="true"]')).to_contain_text("language")
    page.keyboard.press("Enter")

    page.wait_for_url("**/queues/language/")


def test_the_sheet_of_shortcuts_and_going_by_letters(signed_in: Opens):
    page = signed_in("/")
    expect(page.locator("#pill")).to_have_text("Live")
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("q")

    page.wait_for_url("**/queues/")


def test_a_row_is_ticked_and_its_actions_opened_from_the_keyboard(signed_in: Opens):
    page = signed_in("/queues/")
    expect(page.locator("#pill")).to_have_text("Live")
    page.locator('tr[data-key="root"]').focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press(" ")
    expect(page.get_by_label("Select default")).to_be_checked()
    page.keyboard.press(".")

    expect(page.locator("#dialog").get_by_role("heading", name="default")).to_be_visible()


LONG = "x" * 253


@pytest.mark.parametrize("width", [360, 1440])
def test_nothing_sticks_out_whatever_the_names_and_resources(
    signed_in: Opens,
    act: Acts,
    width: int,
):
    many = Resources.parse(
        {
            "cpu": 9_000_000_000,
            "memory": "4Ei",
            **{f"example.com/a-licence-of-a-vendor-{number}": 1 for number in range(10)},
        }
    )
    act(add_queue, LONG, "vision", deserved=many, capability=many)
    page = signed_in("/components/", viewport={"width": width, "height": 740})

    for path in (
        "/",
        "/queues/",
        "/queues/?view=table",
        "/queues/?resource=all",
        "/queues/research/",
        "/queues/vision/edit/",
        "/components/",
    ):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    for path in (
        "",
        "children/",
        "history/",
        "yaml/",
        "edit/",
        "close/",
        "delete/",
        "farewell/",
        "actions/",
    ):
        page.goto(f"/queues/{LONG}/{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_on_a_phone_the_state_buttons_are_in_a_sheet_at_the_bottom(signed_in: Opens):
    page = signed_in("/queues/vision/", viewport={"width": 360, "height": 740})
    expect(page.locator("#pill")).to_have_text("Live")
    expect(page.get_by_role("link", name="Suspend…")).to_be_hidden()

    page.get_by_role("link", name="More actions").click()

    sheet = page.locator("#dialog")
    expect(sheet.get_by_role("link", name="Suspend…")).to_be_visible()
    box = sheet.bounding_box()
    assert box
    assert box["y"] + box["height"] == pytest.approx(740, abs=1)


def test_on_a_slow_network_the_page_is_there_first_and_live_later(signed_in: Opens):
    page = signed_in("/components/")
    slow = page.context.new_cdp_session(page)
    slow.send("Network.enable")
    slow.send(
        "Network.emulateNetworkConditions",
        {
            "offline": False,
            "latency": 400,
            "downloadThroughput": 50_000,
            "uploadThroughput": 20_000,
        },
    )
    page.goto("/queues/", wait_until="commit")

    expect(page.locator('tr[data-key="vision"] .figure').first).to_have_text("8 of 32 GPU")
    expect(page.locator("#pill")).to_have_text("Live", timeout=30_000)


def test_nothing_moves_when_the_page_comes_alive(signed_in: Opens):
    page = signed_in("/components/")
    page.add_init_script("""
        window.shift = 0;
        const observer = new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) window.shift += entry.value;
        });
        observer.observe({ type: "layout-shift", buffered: true });
    """)
    for path in ("/", "/queues/", "/queues/language/"):
        page.goto(path)
        expect(page.locator("#pill")).to_have_text("Live")
        page.wait_for_timeout(300)
        assert page.evaluate("window.shift") < 0.02, path


def test_axe_itself_is_not_blind(signed_in: Opens):
    page = signed_in(
        "/components/"
    )  # no live part: nothing that news could wipe away before axe looks
    page.evaluate(
        "document.querySelector('main').insertAdjacentHTML('beforeend', '<img "
        'src="/static/img/favicon.svg">\')'
    )

    assert any(problem.startswith("image-alt") for problem in violations(page))


def test_nor_is_it_for_what_is_faint_in_the_dark_only(signed_in: Opens):
    page = signed_in("/components/")
    page.evaluate("""() => {
        const faint = new CSSStyleSheet();
        faint.replaceSync('[data-bs-theme="dark"] h1 { color: #333 }');
        document.adoptedStyleSheets.push(faint);
    }""")

    assert any(problem.startswith("color-contrast") for problem in violations(page))
