"""The navigation's group of insights, and its page."""

from __future__ import annotations

import re

import pytest

from tests.dashboard.sample import add_user
from tests.dashboard.work import signed_in, small_cluster, text

pytestmark = [pytest.mark.django_db]

BELOW = ("usage/", "fairness/", "loans/", "forecasts/", "timeline/")


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def rail(path: str, who: str = "admin") -> str:
    page = text(signed_in(who).get(path))
    return page[page.index('<nav class="rail"') : page.index("</nav>")]


def current(page: str) -> list[str]:
    return re.findall(r'<a href="([^"]*)" aria-current="page"', page)


def test_the_page_leads_to_all_insights():
    page = text(signed_in("admin").get("/insights/"))
    content = page[page.index('id="content"') :]

    assert [name for name in BELOW if f'href="/insights/{name}"' not in content] == []
    assert "Who used what" in content


def test_the_group_is_folded_elsewhere_and_open_within():
    outside = rail("/queues/")
    within = rail("/insights/fairness/")

    assert '<details class="rail-group">' in outside
    assert '<details class="rail-group" open>' in within
    assert current(within) == ["/insights/fairness/"]


def test_of_addresses_that_begin_alike_one_is_the_present_one():
    assert current(rail("/insights/usage/prices/")) == ["/insights/usage/prices/"]
    assert current(rail("/insights/usage/")) == ["/insights/usage/"]
    assert current(rail("/insights/")) == ["/insights/"]


def test_who_has_no_role_is_not_led_there():
    add_user("nobody", role="")

    assert "/insights/" not in rail("/jobs/", "nobody")
    assert signed_in("nobody").get("/insights/").status_code == 403
