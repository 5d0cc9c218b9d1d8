"""Beside sessions: what fails at each tick keeps nothing else from its turn, and is told once."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from scheduler import tasks
from scheduler.models import ClusterState, Event
from scheduler.services.cluster import tick
from tests.worlds import job, node, pass_time, phases
from tests.worlds import run_session as run_and_dispatch

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture
def break_part(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def break_it(name: str) -> None:
        def fail() -> None:
            raise ValueError("a decision that nobody can carry out")

        monkeypatch.setattr(tick, "PARTS", {**tick.PARTS, name: fail})

    return break_it


def events() -> list[str]:
    return list(
        Event.objects.filter(kind="Cluster", reason__startswith="Part")
        .order_by("id")
        .values_list("reason", flat=True)
    )


@pytest.mark.parametrize("broken", tick.PARTS)
def test_one_part_that_fails_keeps_no_other_from_its_turn(
    break_part: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, broken: str
):
    turns: list[str] = []
    monkeypatch.setattr(
        tick, "PARTS", {name: lambda name=name: turns.append(name) for name in tick.PARTS}
    )
    break_part(broken)

    tick.watch(also={"last": lambda: turns.append("last")})

    assert turns == [*(name for name in tick.PARTS if name != broken), "last"]


def test_the_cluster_is_observed_while_decisions_can_not_be_carried_out(
    break_part: Callable[[str], None],
):
    node("n1", cpu="8")
    made = job("train", seconds=5)
    run_and_dispatch()
    break_part("carrying out decisions")
    pass_time(3)
    assert phases(made) == ["Running"]

    tasks.watch_cluster()
    pass_time(10)

    made.refresh_from_db()
    assert made.phase == "Completed"


def test_it_is_told_when_it_begins_and_when_it_is_over(
    break_part: Callable[[str], None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
):
    working = tick.PARTS
    with caplog.at_level(logging.WARNING, "scheduler.services.cluster.tick"):
        for _ in range(3):
            break_part("observing the cluster")
            tick.watch()
        failing = ClusterState.objects.get().failing
        monkeypatch.setattr(tick, "PARTS", working)
        tick.watch()
        tick.watch()

    assert {name: entry["problem"] for name, entry in failing.items()} == {
        "observing the cluster": "ValueError"
    }
    assert [record.getMessage().split()[-1] for record in caplog.records] == ["tick", "again"]
    assert caplog.records[0].exc_info is not None
    assert events() == ["PartFailed", "PartWorksAgain"]
    assert ClusterState.objects.get().failing == {}
