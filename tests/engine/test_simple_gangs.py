"""Gangs that are placed without a statement, and many at once: the outcome is the same as in the
usual way.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scheduler.domain.snapshot import Snapshot
from scheduler.engine import run_session
from scheduler.engine.decisions import Outcome
from scheduler.engine.policy import Policy
from scheduler.engine.presets import PRESETS
from scheduler.engine.simple_gangs import SimpleGangs
from tests.bench.clusters import Size, roomy, singles
from tests.engine.builders import binds, cluster, job, node, queue
from tests.properties.strategies import POLICIES

SHAPES: dict[str, Callable[[], Snapshot]] = {
    "one queue": lambda: singles(0.01).snapshot(),
    "one queue, four shapes": lambda: singles(0.01, shapes=4).snapshot(),
    "ten queues": lambda: singles(0.01, queues=10, shapes=4).snapshot(),
    "gangs": lambda: roomy(Size(nodes=6, pending=90, running=60, queues=5)).snapshot(),
}


def usual_way(monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot, policy: Policy) -> Outcome:
    with monkeypatch.context() as patch:
        patch.setattr(SimpleGangs, "place", lambda _self, _row: False)
        patch.setattr(SimpleGangs, "place_first", lambda _self, _rows: 0)
        return run_session(snapshot, policy)


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_they_are_placed_as_in_the_usual_way(monkeypatch, shape, policy):
    snapshot = SHAPES[shape]()

    expected = usual_way(monkeypatch, snapshot, POLICIES[policy])
    outcome = run_session(snapshot, POLICIES[policy])

    assert len(expected.binds) > 10
    assert outcome.binds == expected.binds
    assert outcome.phase_changes == expected.phase_changes
    assert dict(outcome.reasons) == dict(expected.reasons)
    assert outcome.events == expected.events
    assert dict(outcome.queues) == dict(expected.queues)


def one_queue(*jobs, capability=None):
    return cluster(
        nodes=[node("n1", cpu=8), node("n2", cpu=8)],
        queues=[queue("root"), queue("q", **({"capability": capability} if capability else {}))],
        jobs=jobs,
    )


def pods_of(outcome: Outcome) -> list[str]:
    return sorted(binds(outcome))


def test_the_first_gangs_that_fit_start_and_the_rest_of_the_line_is_tried():
    large = [job(f"large{number}", "q", cpu=3, tasks=2, created=number) for number in range(4)]
    small = job("small", "q", cpu=1, created=9)

    outcome = run_session(one_queue(*large, small), PRESETS["bound"])

    assert pods_of(outcome) == ["large0-0", "large0-1", "large1-0", "large1-1", "small-0"]


def test_no_more_gangs_start_than_the_queue_may_have():
    gangs = [job(f"gang{number}", "q", cpu=2, tasks=2, created=number) for number in range(4)]

    outcome = run_session(one_queue(*gangs, capability=6), PRESETS["volcano"])

    assert pods_of(outcome) == ["gang0-0", "gang0-1"]
