"""Fairness over time: room in parts that add up, who was starved by whom, and waits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.domain.losses import PARTS, parts_of_room
from scheduler.domain.usage_spans import span_of
from scheduler.domain.wait_buckets import bucket_of, percentile, upper_edge
from scheduler.models import (
    ClusterState,
    LoanSample,
    LossRow,
    PodGroup,
    QueueSample,
    StarvedRow,
    UsageBook,
)
from scheduler.selectors.usage.fairness import FairnessQuestion, fairness
from scheduler.services.usage import booking
from scheduler.services.usage.booking import book_usage
from scheduler.services.usage.losses import note_losses, room_now
from tests.worlds import job, node, queue, run_session

START = datetime(2026, 10, 1, 9, 50, tzinfo=UTC)
databases = pytest.mark.both_databases


@pytest.mark.parametrize("total", [0, 10, 100])
@pytest.mark.parametrize("used", [0, 7, 10, 12])
@pytest.mark.parametrize("asked", [{}, {"quota": 2}, {"gang": 50, "other": 1, "suspended": 3}])
def test_the_parts_of_the_room_always_add_up(total, used, asked):
    parts = parts_of_room(total, used, asked)

    assert tuple(parts) == PARTS
    assert sum(parts.values()) == max(total, used)
    assert min(parts.values()) >= 0


@pytest.mark.django_db
@databases
def test_free_room_is_put_down_to_what_gangs_wait_for():
    """8 CPUs: 3 are used, a gang of a suspended queue asks for 2."""
    node("n1", cpu="8")
    job("runs", replicas=3)
    run_session()
    run_session()
    waits = job("waits", replicas=2)
    PodGroup.objects.filter(job=waits).update(reason_code="QueueSuspended")

    room = {part: amount for (name, part), amount in room_now().items() if name == "cpu"}

    assert sum(room.values()) == 8000
    assert (room["used"], room["suspended"], room["no-demand"]) == (3000, 2000, 3000)


@pytest.mark.django_db
@databases
def test_a_look_counts_up_to_the_next_one_and_gaps_are_not_made_up():
    ClusterState.objects.update_or_create(
        pk=1, defaults={"total": {"cpu": 4000}, "allocated": {"cpu": 1000}}
    )
    for seconds in (0, 60, 60, 120, 3600, 3660):
        note_losses(START + timedelta(seconds=seconds))

    rows = LossRow.objects.filter(seconds=86400, resource="cpu").values_list("part", "amount")
    assert dict(rows) == {"used": 180 * 1000, "no-demand": 180 * 3000}


@pytest.mark.django_db
@databases
def test_what_a_queue_is_owed_is_laid_at_those_that_borrow_from_it():
    """team-a lacks 3 CPUs that it asks for; batch has 2 of its share, and others 4."""
    for name in ("team-a", "batch", "other"):
        queue(name)
    has = {"deserved": {"cpu": 6000}, "allocated": {"cpu": 2000}, "pending": {"cpu": 3000}}
    QueueSample.objects.create(queue_name="team-a", seconds=60, at=START, data=has)
    lent = {"lent": {"cpu": 6000}, "to": {"cpu batch": 2000, "cpu other": 4000}}
    LoanSample.objects.create(queue_name="team-a", seconds=60, at=START, data=lent)
    UsageBook.objects.create(pk=1, complete_until=int(START.timestamp()))

    book_usage(START + timedelta(minutes=10) + booking.LATE)

    rows = StarvedRow.objects.values_list("lender", "borrower", "amount")
    assert list(rows) == [("team-a", "other", 600 * 3000)]
    (balance,) = fairness(october()).balances
    assert (balance.queue, balance.owed, balance.balance) == ("team-a", 1_800_000, -1_800_000)


def october() -> FairnessQuestion:
    return FairnessQuestion(span_of(START, first="2026-10-01", last="2026-10-31"), "cpu")


@pytest.mark.django_db
@databases
def test_waits_are_counted_by_queue_size_and_user():
    UsageBook.objects.create(pk=1, complete_until=int(START.timestamp()))
    for number, seconds in enumerate((60, 60, 60, 3600)):
        made = job(f"job-{number}", replicas=4)
        started = START + timedelta(minutes=5)
        PodGroup.objects.filter(job=made).update(
            started_at=started, created_at=started - timedelta(seconds=seconds), owner="ann"
        )

    book_usage(START + timedelta(minutes=10) + booking.LATE)
    book_usage(START + timedelta(minutes=20) + booking.LATE)

    waits = fairness(october()).waits
    for kind, name in (("queue", "default"), ("size", "cpu-8"), ("user", "ann")):
        (found,) = waits[kind]
        assert (found.name, found.gangs) == (name, 4)
        assert found.median == pytest.approx(60, rel=0.2)
        assert found.most == pytest.approx(3600, rel=0.2)


@pytest.mark.parametrize("seconds", [0, 1, 1.5, 59, 3600, 10**6])
def test_a_bucket_ends_within_a_fifth_above_the_wait(seconds):
    edge = upper_edge(bucket_of(seconds))

    assert max(seconds, 1) <= edge * 1.0001
    assert edge <= max(seconds, 1) * 1.2


def test_there_is_no_percentile_of_nothing():
    assert percentile({}, 0.5) is None
