"""Loans in the browser: lists, matrix, the chart with its table, and a small screen."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from scheduler.services.records.loan_samples import note_loans
from tests.browser.test_forecasts import take_pictures

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
Acts = Callable[..., Any]


def arrange() -> None:
    now = timezone.now()
    note_loans(now - timedelta(minutes=20))
    note_loans(now)


def test_loans_are_listed_drawn_and_fit_a_small_screen(signed_in: Opens, act: Acts):
    act(arrange)
    page = signed_in("/insights/loans/?resource=gpu")

    expect(page.get_by_role("row", name="language").first).to_contain_text("10 from vision")
    expect(page.locator("#loan-history .u-legend")).to_contain_text("Borrowed")
    take_pictures(page, "loans")

    page.get_by_role("textbox", name="Queue").fill("language")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("#loan-history .u-legend")).to_contain_text("Lent")
    page.get_by_text("The same as a table").click()
    expect(page.get_by_role("region", name="Loans over time")).to_contain_text("vision")
    take_pictures(page, "loans-of-a-queue")
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
