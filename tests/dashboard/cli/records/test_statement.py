"""vcctl statement."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime

from django.contrib.auth import get_user_model

from scheduler.domain.usage import Account
from scheduler.models import Grant, PriceList, Queue
from scheduler.services.usage.sums import Sums
from tests.dashboard.cli.conftest import Type
from tests.worlds import queue


def used() -> None:
    """ann used 10 CPU-hours at 0.1 EUR, and bob 5."""
    queue("team-a")
    PriceList.objects.create(valid_from=date(2026, 9, 1), currency="EUR", prices={"cpu": "0.1"})
    sums = Sums()
    at = int(datetime(2026, 10, 5, tzinfo=UTC).timestamp())
    for name, hours in (("ann", 10), ("bob", 5)):
        account = Account("team-a", "default", name, "train")
        sums.add_pod(account, at, "used", hours * 3600, {"cpu": 1000})
    sums.write()


def test_a_statement_says_what_each_user_cost(vcctl: Type):
    used()

    shown = vcctl("vcctl statement team-a --month 2026-10").out
    table = vcctl("vcctl statement team-a --month 2026-10 --csv").out

    assert "together 1.50 EUR" in shown
    assert [line.split() for line in shown.splitlines()[-2:]] == [
        ["ann", "1.00", "EUR"],
        ["bob", "0.50", "EUR"],
    ]
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [(row["by"], row["user"], row["resource"], row["cost"]) for row in rows] == [
        ("resource", "", "cpu", "1.50"),
        ("user", "ann", "", "1.00"),
        ("user", "bob", "", "0.50"),
    ]


def test_sending_it_to_nobody_is_no_success(vcctl: Type):
    used()

    refused = vcctl("vcctl statement team-a --month 2026-10 --send")

    assert refused.code == 1
    assert "There is nobody to send it to: no role makes anybody admin of team-a" in refused.err
    user = get_user_model().objects.create_user("olga")
    Grant.objects.create(user=user, queue=Queue.objects.get(name="team-a"), role="admin")
    assert vcctl("vcctl statement team-a --month 2026-10 --send").out == "Sent to olga.\n"
