"""What usage costs: by the list of each day, exact, and a statement of each month once."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from scheduler.admission.violations import Rejected
from scheduler.domain.prices import rounded
from scheduler.domain.usage import Account
from scheduler.domain.usage_spans import month_span
from scheduler.models import AuditEntry, Grant, Notice, PriceList, Queue, UsageBook
from scheduler.selectors.files.configuration import configuration
from scheduler.selectors.usage.costs import costs_of
from scheduler.selectors.usage.report import USER, UsageQuestion
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.files.configuration import write_configuration
from scheduler.services.notices.fan_out import write_notices
from scheduler.services.usage.prices import delete_prices, set_prices
from scheduler.services.usage.statements import send_due_statements, send_statement
from scheduler.services.usage.sums import Sums
from tests.worlds import queue

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
OCTOBER = month_span("2026-10")
AFTER = datetime(2026, 11, 1, 2, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _used() -> None:
    """ann used 10 CPU-hours on 5 October and 20 on the 20th, with 2 Gi for each hour."""
    queue("team-a")
    sums = Sums()
    for day, hours in ((5, 10), (20, 20)):
        at = int(datetime(2026, 10, day, tzinfo=UTC).timestamp())
        amounts = {"cpu": 1000, "memory": 2 * 2**20}
        sums.add_pod(
            Account("team-a", "default", "ann", "train"), at, "used", hours * 3600, amounts
        )
    sums.write()
    UsageBook.objects.create(pk=1, complete_until=int(AFTER.timestamp()))


def prices(day: str, **given: str) -> None:
    PriceList.objects.create(valid_from=date.fromisoformat(day), currency="EUR", prices=given)


def test_each_day_costs_what_its_list_says():
    prices("2026-09-01", cpu="0.1", memory="0.005")
    prices("2026-10-12", cpu="0.333333")

    costs = costs_of(UsageQuestion(OCTOBER, "", by=USER))

    assert costs.currency == "EUR"
    assert rounded(costs.total) == Decimal("7.77")  # 10 × 0.1 + 20 × 0.005 + 20 × 0.333333
    assert {name: rounded(cost) for name, cost in costs.by_name.items()} == {"ann": Decimal("7.77")}


def test_two_currencies_are_not_added():
    prices("2026-09-01", cpu="0.1")
    PriceList.objects.create(valid_from=date(2026, 10, 12), currency="USD", prices={"cpu": "1"})

    assert costs_of(UsageQuestion(OCTOBER, "")).currency == ""


def test_months_that_are_over_keep_their_prices():
    prices("2020-01-01", cpu="0.1")

    for change in (
        lambda: set_prices("2020-02-01", "EUR", {"cpu": "2"}, by=SYSTEM),
        lambda: set_prices("2020-01-01", "EUR", {"cpu": "2"}, by=SYSTEM),
        lambda: delete_prices("2020-01-01", by=SYSTEM),
    ):
        with pytest.raises(Rejected) as refused:
            change()
        assert refused.value.violations[0].rule_id == "prices_are_fixed"
    set_prices(timezone.now().date().isoformat(), "EUR", {"cpu": "2"}, by=SYSTEM)

    assert PriceList.objects.count() == 2


@pytest.mark.parametrize(
    ("day", "currency", "given", "field"),
    [
        ("soon", "EUR", {"cpu": "1"}, "spec.validFrom"),
        ("2030-01-01", "", {"cpu": "1"}, "spec.currency"),
        ("2030-01-01", "EUR", {}, "spec.prices"),
        ("2030-01-01", "EUR", ["cpu"], "spec.prices"),
        ("2030-01-01", "EUR", {"cpu": "-1"}, "spec.prices.cpu"),
        ("2030-01-01", "EUR", {"cpu": "NaN"}, "spec.prices.cpu"),
        ("2030-01-01", "EUR", {"cpu": "0.0000001"}, "spec.prices.cpu"),
        ("2030-01-01", "EUR", {"cpu": True}, "spec.prices.cpu"),
    ],
)
def test_what_is_no_price_list_is_refused_by_name(day, currency, given, field):
    with pytest.raises(Rejected) as refused:
        set_prices(day, currency, given, by=SYSTEM)

    assert refused.value.violations[0].field == field
    assert not PriceList.objects.exists()


def test_price_lists_are_exported_and_applied_from_files():
    prices("2030-01-01", cpu="0.1")
    (manifest,) = [one for one in configuration() if one["kind"] == "PriceList"]
    PriceList.objects.all().delete()

    write_configuration("PriceList", manifest, SYSTEM)

    assert [one for one in configuration() if one["kind"] == "PriceList"] == [manifest]


def owner() -> None:
    user = get_user_model().objects.create_user("olga")
    Grant.objects.create(user=user, queue=Queue.objects.get(name="team-a"), role="admin")


def told() -> list[str]:
    write_notices()
    return list(Notice.objects.values_list("message", flat=True))


def test_a_month_is_sent_by_itself_once():
    owner()
    prices("2026-09-01", cpu="0.1")

    assert send_due_statements(AFTER - timedelta(hours=2)) == 0
    assert [send_due_statements(AFTER) for _ in range(2)] == [1, 0]
    assert told() == ["What team-a used in 2026-10 costs 3.00 EUR."]


def test_a_month_that_is_not_booked_yet_is_not_sent():
    prices("2026-09-01", cpu="0.1")
    UsageBook.objects.update(complete_until=int(OCTOBER.end.timestamp()) - 600)

    assert send_due_statements(AFTER) == 0


def test_without_prices_nothing_is_sent_by_itself():
    assert send_due_statements(AFTER) == 0


def test_a_statement_can_be_sent_again_by_hand():
    owner()

    assert [send_statement("team-a", "2026-10", by=SYSTEM) for _ in range(2)] == [["olga"]] * 2
    assert len(told()) == 2


def test_a_statement_for_nobody_is_refused_and_not_sent():
    with pytest.raises(Rejected) as refused:
        send_statement("team-a", "2026-10", by=SYSTEM)

    assert refused.value.violations[0].rule_id == "nobody_to_send_to"
    assert told() == []
    assert not AuditEntry.objects.filter(action="SendStatement").exists()
