"""A Redis that hangs is told by the pill and the banner."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.conftest import RedisServer

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PATIENCE_MS = 60_000


def test_a_redis_that_hangs_is_named_in_the_pill_and_the_banner(
    signed_in: Callable[..., Page], browser_redis: RedisServer
):
    page = signed_in("/queues/")
    expect(page.locator("#pill")).to_have_text("Live")

    with browser_redis.hung():
        expect(page.locator("#pill")).to_have_text("Redis does not answer", timeout=PATIENCE_MS)
        expect(page.locator("#site-banner")).to_contain_text("Redis does not answer for")

    expect(page.locator("#pill")).to_have_text("Live", timeout=PATIENCE_MS)
    expect(page.locator("#site-banner")).not_to_contain_text("Redis")
