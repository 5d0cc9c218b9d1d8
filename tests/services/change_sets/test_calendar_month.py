"""A simulated month of planned changes with kills, clock jumps and missed beats.

A worker is killed between two statements: what it had not committed is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.domain.calendar import IN_FORCE
from scheduler.models import AuditEntry, Occurrence, Queue
from scheduler.services.change_sets import outlook
from scheduler.services.change_sets.calendar import keep_calendar
from scheduler.services.change_sets.drafts import create_change_set
from scheduler.services.change_sets.plans import Wish, plan_change_set
from tests.services.change_sets.builders import edit, quiet_cluster
from tests.services.change_sets.clock import SetClock, at

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

BEGIN = at("2026-10-12T00:00")
MONTH = timedelta(days=31)
# clocks are changed on 25 October
PLANS = {
    "research": Wish("2026-10-16T18:00", "2026-10-19T08:00", "Europe/Berlin", weekly=True),
    "batch": Wish("2026-10-14T22:00", "2026-10-15T02:30", "America/New_York", weekly=True),
    "vision": Wish("2026-10-25T02:30", "2026-10-25T04:00", "Europe/Berlin"),
}


class Killed(BaseException):
    pass


@contextmanager
def killed_at(statement: int) -> Iterator[None]:
    """The process dies just before it sends this statement."""
    left = statement

    def count(execute: Callable[..., Any], *args: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            raise Killed
        return execute(*args)

    with connection.execute_wrapper(count):
        yield


class Worker:
    """Beats, and remembers when a beat ran to its end."""

    def __init__(self, clock: SetClock) -> None:
        self.clock = clock
        self.completed: list[datetime] = []

    def beat(self, kill: int | None) -> None:
        if kill is None:
            keep_calendar()
            self.completed.append(self.clock.now)
            return
        try:
            with killed_at(kill):
                keep_calendar()
        except Killed:
            return
        self.completed.append(self.clock.now)


def check(worker: Worker) -> None:
    """Every begin and end is there once, in the queue's own history too."""
    rows = list(Occurrence.objects.select_related("plan__change_set"))
    begins: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    for row in rows:
        name = row.plan.change_set.name
        begins[name] += row.began_at is not None
        ends[name] += row.ended_at is not None
        _check_times(row, worker)
    assert len({(row.plan_id, row.number) for row in rows}) == len(rows)
    for name in PLANS:
        in_force = [row for row in rows if row.plan.change_set.name == name]
        holds = any(row.state in IN_FORCE for row in in_force)
        assert Queue.objects.get(name=name).weight == (9 if holds else 1)
        edits = AuditEntry.objects.filter(action="UpdateQueue", name=name).count()
        assert edits == begins[name] + ends[name]
    told = Counter(AuditEntry.objects.values_list("action", flat=True))
    assert told["BeginPlannedChange"] == begins.total()
    assert told["EndPlannedChange"] == ends.total()
    assert told["HoldUpPlannedChange"] == 0


def _check_times(row: Occurrence, worker: Worker) -> None:
    assert row.ends_at is not None
    if row.began_at is not None:
        assert row.begins_at <= row.began_at < row.ends_at
    if row.ended_at is not None:
        assert row.began_at is not None
        assert row.ended_at >= row.ends_at
    if row.state == "Missed":
        assert row.began_at is None
        inside = [when for when in worker.completed if row.begins_at <= when < row.ends_at]
        assert not inside


STEPS = st.lists(
    st.tuples(
        st.floats(min_value=-5.0, max_value=40.0),  # hours that the clock goes on
        st.one_of(st.none(), st.integers(min_value=1, max_value=70)),
    ),
    min_size=15,
    max_size=40,
)


@given(STEPS)
@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_every_begin_and_end_happens_exactly_once(
    monkeypatch: pytest.MonkeyPatch, steps: list[tuple[float, int | None]]
):
    monkeypatch.setattr(outlook, "JUDGED_EVERY", timedelta(days=9))
    clock = SetClock(monkeypatch, BEGIN)
    worker = Worker(clock)
    with transaction.atomic():
        _plan_all()
        for hours, kill in steps:
            clock.pass_by(hours=hours)
            worker.beat(kill)
            check(worker)
        _run_to_the_end(worker)
        transaction.set_rollback(True)


def _plan_all() -> None:
    quiet_cluster()
    for name, wish in PLANS.items():
        change_set = create_change_set(name, [edit(name, weight=9)])
        plan_change_set(change_set.pk, wish)


def _run_to_the_end(worker: Worker) -> None:
    """With steady beats: from here on nothing is missed, and everything comes to its end."""
    clock = worker.clock
    missed = Occurrence.objects.filter(state="Missed").count()
    worker.beat(None)
    clock.now = max(worker.completed) + timedelta(hours=1)
    end = max(BEGIN + MONTH, clock.now + timedelta(days=8))
    while clock.now < end:
        worker.beat(None)
        clock.pass_by(hours=7)
    check(worker)
    begun = Occurrence.objects.filter(begins_at__lte=worker.completed[-1])
    assert set(begun.values_list("state", flat=True)) <= {"Ended", "Missed", "Holding"}
    assert Occurrence.objects.filter(state="Missed").count() >= missed


def test_a_kill_at_any_statement_of_a_begin_and_an_end_leaves_all_or_nothing(
    monkeypatch: pytest.MonkeyPatch,
):
    """Every statement once, not only random ones."""
    monkeypatch.setattr(outlook, "JUDGED_EVERY", timedelta(days=99))
    clock = SetClock(monkeypatch, BEGIN)
    worker = Worker(clock)
    quiet_cluster()
    change_set = create_change_set("research", [edit("research", weight=9)])
    plan_change_set(change_set.pk, PLANS["research"])
    keep_calendar()

    kills = []
    for moment in ("2026-10-16T16:00", "2026-10-19T06:00"):
        clock.set(moment)
        kill = 1
        while moment not in [f"{when:%Y-%m-%dT%H:%M}" for when in worker.completed]:
            worker.beat(kill)
            kill += 1
        kills.append(kill)

    assert min(kills) > 20  # it was killed at each of its statements
    (done, _) = Occurrence.objects.order_by("number")
    assert done.state == "Ended"
    assert AuditEntry.objects.filter(action="UpdateQueue", name="research").count() == 2
    assert AuditEntry.objects.filter(action="BeginPlannedChange").count() == 1
    assert AuditEntry.objects.filter(action="EndPlannedChange").count() == 1
    assert Queue.objects.get(name="research").weight == 1
