"""Usage, fairness, prices and statements in the browser: figures behind pictures, keys, paper."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from scheduler.domain.losses import PARTS
from scheduler.domain.usage import Account
from scheduler.models import LossRow, StarvedRow, UsageBook, WaitRow
from scheduler.services.usage.sums import Sums
from tests.browser.test_forecasts import take_pictures
from tests.browser.test_manners import violations

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
Acts = Callable[..., Any]
GPU = "nvidia.com/gpu"
HOURS = 3
WIDER = "document.documentElement.scrollWidth > innerWidth"
DRAWN = "[data-stacked] canvas"
PLOT = "document.querySelector('[data-stacked]').plot.data"


def used() -> None:
    """In each of three hours vision used 4 of the 6 GPUs that it deserved, language 2 of 1."""
    present = timezone.now().replace(minute=0, second=0, microsecond=0)
    UsageBook.objects.create(pk=1, complete_until=int(present.timestamp()))
    for back in range(1, HOURS + 1):
        at = present - timedelta(hours=back)
        _book(int(at.timestamp()))
        for part, share in zip(PARTS, (6, 1, 0, 0, 0, 0, 3), strict=True):
            for seconds in (3600, 86400):
                start = at if seconds == 3600 else at.replace(hour=0)
                row, _ = LossRow.objects.get_or_create(
                    seconds=seconds, resource=GPU, at=start, part=part
                )
                row.amount += share * 3600 * 1000
                row.save()
    today = present.replace(hour=0)
    StarvedRow.objects.create(
        resource=GPU, at=today, lender="vision", borrower="language", amount=3600 * 1000
    )
    for size, bucket in (("gpu-32", 40), ("cpu-8", 4), ("gpu-4", 20)):
        WaitRow.objects.create(
            at=today, queue_name="vision", owner="ann", size=size, bucket=bucket, count=3
        )


def _book(hour: int) -> None:
    sums = Sums()
    for queue, owner, pods in (("vision", "ann", 3), ("vision", "bob", 1), ("language", "eve", 2)):
        account = Account(queue, "default", owner, f"train-{owner}")
        sums.add_pod(account, hour, "used", 3600, {GPU: 1000 * pods})
    for queue, deserved, figure in (("vision", 6, "deserved"), ("language", 1, "deserved")):
        sums.add_queue(queue, hour, GPU, figure, deserved * 3600 * 1000)
    sums.add_queue("language", hour, GPU, "borrowed", 3600 * 1000)
    sums.add_queue("", hour, GPU, "deserved", 10 * 3600 * 1000)
    sums.write()


def amounts(page: Page, row: str) -> list[str]:
    return page.get_by_role("row", name=re.compile(f"^{row}")).last.locator("td").all_inner_texts()


def test_usage_adds_up_in_picture_and_table_and_is_narrowed_by_keys(signed_in: Opens, act: Acts):
    act(used)
    page = signed_in("/insights/usage/?window=24h&resource=gpu", reduced_motion="reduce")
    expect(page.locator(DRAWN)).to_be_visible()
    top = page.evaluate(f"{PLOT}[1]")  # the uppermost line is the sum of all
    assert sum(filter(None, top[:-1])) == pytest.approx(6 * HOURS)
    assert amounts(page, "vision")[1:4] == ["12", "67\u00a0%", "18"]
    assert amounts(page, "Together")[1] == "18"
    take_pictures(page, "usage")
    assert violations(page) == []

    page.locator("summary", has_text="The same as a table").focus()
    page.keyboard.press("Enter")
    lines = page.locator("details.idle tbody tr")
    sums = [line.locator("td").last.inner_text() for line in lines.all()]
    assert [text for text in sums if text != "–"] == ["6"] * HOURS  # the other hours are gaps
    assert len(lines.all()) == len(top) - 1

    page.get_by_role("link", name="vision", exact=True).focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("by=user"))
    expect(page.locator("tbody").last).to_contain_text("ann")
    assert amounts(page, "ann")[1] == "9"
    assert amounts(page, "bob")[1] == "3"
    page.locator("select[name=by]").select_option("job")
    page.get_by_role("button", name="Show", exact=True).press("Enter")
    page.wait_for_url(re.compile("by=job"))
    expect(page.locator("tbody").last).to_contain_text("train-ann")
    with page.expect_download() as download:
        page.get_by_role("link", name="Save as CSV").press("Enter")
    assert "default/train-ann" in download.value.path().read_text()


def test_fairness_adds_up_to_all_there_was(signed_in: Opens, act: Acts):
    act(used)
    page = signed_in("/insights/fairness/?window=24h&resource=gpu", reduced_motion="reduce")
    expect(page.locator(DRAWN)).to_be_visible()

    parts = page.evaluate(f"{PLOT}[1]")
    assert [value for value in parts[:-1] if value] == [pytest.approx(100)] * HOURS
    shares = page.get_by_role("region", name="Where the room went").locator("td:nth-child(2)")
    percents = [int(text.split("\u00a0")[0]) for text in shares.all_inner_texts()]
    assert sum(percents) == 100
    expect(page.get_by_role("row", name=re.compile("^language"))).to_contain_text(
        "3 GPU-hours more than the 3 that it deserved: 100\u00a0% of them"
    )
    starved = page.get_by_role("region", name="Who was starved by whom")
    expect(starved).to_contain_text("1 GPU-hours")
    sizes = page.get_by_role("region", name="Waits by size").locator("td:first-child")
    assert sizes.all_inner_texts() == ["2 to 4 GPUs", "9 to 32 GPUs", "up to 8 CPUs"]
    take_pictures(page, "fairness")
    assert violations(page) == []


@pytest.mark.parametrize("path", ["usage/?window=24h&resource=gpu", "fairness/?window=24h"])
def test_paper_has_the_table_behind_each_chart(signed_in: Opens, act: Acts, path: str):
    act(used)
    page = signed_in(f"/insights/{path}", reduced_motion="reduce", color_scheme="dark")
    expect(page.locator(DRAWN)).to_be_visible()
    expect(page.locator("details.idle table")).to_be_hidden()

    page.emulate_media(media="print")
    expect(page.locator("details.idle table")).to_be_visible()
    expect(page.locator(".toolbar").first).to_be_hidden()
    assert page.evaluate("document.documentElement.dataset.bsTheme") == "light"
    page.set_viewport_size({"width": 720, "height": 1000})
    assert page.evaluate(WIDER) is False
    page.emulate_media(media="screen")
    expect(page.locator("details.idle table")).to_be_hidden()


def test_a_price_becomes_a_cost_in_usage_and_statement(signed_in: Opens, act: Acts):
    act(used)
    page = signed_in("/insights/usage/prices/", reduced_motion="reduce")
    first = (timezone.now() - timedelta(days=1)).date().replace(day=1)
    page.get_by_label("From (UTC)").fill(first.isoformat())
    page.get_by_label("Currency").fill("EUR")
    page.get_by_label("GPU").fill("2.50")
    take_pictures(page, "prices")
    page.get_by_label("Currency").press("Enter")
    expect(page.get_by_role("region", name="Price lists")).to_contain_text("2.5")
    assert violations(page) == []

    page.goto("/insights/usage/?window=24h&resource=gpu")
    assert amounts(page, "Together")[-1] == "45.00\u00a0EUR".replace("\u00a0", " ")
    month = (timezone.now() - timedelta(hours=HOURS)).strftime("%Y-%m")
    page.goto(f"/insights/usage/statement/?queue=research&month={month}")
    expect(page.get_by_role("region", name="By resource")).to_contain_text("45.00 EUR")
    expect(page.get_by_role("row", name=re.compile("^ann"))).to_contain_text("22.50 EUR")
    take_pictures(page, "statement")
    assert violations(page) == []
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate(WIDER) is False
