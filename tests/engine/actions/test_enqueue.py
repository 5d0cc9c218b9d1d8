"""Enqueue: which jobs are admitted."""

from __future__ import annotations

import pytest

from scheduler.domain.workloads import Phase, PodStatus
from scheduler.engine.dispatch import PluginDispatch
from scheduler.engine.presets import PRESETS
from tests.engine.builders import (
    BASIC,
    PROPORTION,
    TREE,
    cluster,
    job,
    node,
    one_node,
    phase,
    policy,
    queue,
    run,
    with_actions,
)
from tests.engine.examples import guaranteed


def test_e13_a_parents_capability_admits_only_one_of_two_children():
    need = {"cpu": 2, "memory": "4Gi"}
    snapshot = cluster(
        nodes=[node("n1", cpu=8)],
        queues=[
            queue("root"),
            queue("q6", capability=need),
            queue("q61", parent="q6"),
            queue("q62", parent="q6"),
        ],
        jobs=[
            job(f"j{name}", name, phase=Phase.PENDING, min_resources=need, **need)
            for name in ("q61", "q62")
        ],
    )

    outcome = run(snapshot, with_actions(TREE, "enqueue"))

    assert (phase(outcome, "jq61"), phase(outcome, "jq62")) == (Phase.INQUEUE, Phase.PENDING)


def test_e15_overcommit_lets_a_job_in_that_stays_within_its_guarantee():
    outcome = run(guaranteed(guarantee=3), with_actions(PROPORTION, "enqueue"))

    assert phase(outcome, "j6") is Phase.INQUEUE


def test_e17_what_runs_beyond_its_minimum_makes_room_for_others_to_be_let_in():
    snapshot = cluster(
        nodes=[node("n1", cpu=10)],
        queues=[queue("q1")],
        jobs=[
            job("j1", "q1", tasks=8, min=3, cpu=1, min_resources=3, on="n1"),
            job("j2", "q1", phase=Phase.PENDING, cpu=6, min_resources=6),
            job("j3", "q1", phase=Phase.PENDING, cpu=2, min_resources=2),
        ],
    )

    outcome = run(snapshot, policy("enqueue", BASIC, ["proportion"]))

    assert (phase(outcome, "j2"), phase(outcome, "j3")) == (Phase.INQUEUE, Phase.PENDING)


def test_e23_pods_that_are_binding_are_not_counted_twice():
    snapshot = cluster(
        nodes=[node("n1", cpu=8)],
        queues=[queue("q1", capability=4)],
        jobs=[
            job(
                "a",
                "q1",
                tasks=3,
                cpu=1,
                min_resources=3,
                on="n1",
                phase=Phase.INQUEUE,
                pod={"status": PodStatus.BINDING},
            ),
            job("b", "q1", phase=Phase.PENDING, cpu=1, min_resources=1),
        ],
    )

    outcome = run(snapshot, policy("enqueue", BASIC, ["capacity"]))

    assert phase(outcome, "b") is Phase.INQUEUE


@pytest.mark.parametrize(("fifo", "admitted"), [(True, Phase.PENDING), (False, Phase.INQUEUE)])
def test_a_strict_line_waits_for_its_head_at_the_door_too(fifo, admitted):
    jobs = [
        job(name, cpu=size, min_resources=size, phase=Phase.PENDING, created=float(size == 1))
        for name, size in (("a", 3), ("b", 1))
    ]
    snapshot = one_node(*jobs, queues=(queue("default", fifo=fifo),))

    assert phase(run(snapshot, policy("enqueue", ["overcommit"])), "b") is admitted


@pytest.mark.parametrize("preset", ["fumarole", "volcano", "proportion"])
@pytest.mark.parametrize("fifo", [False, True])
@pytest.mark.parametrize("large", [3, 11, 20])
def test_many_are_admitted_at_once_as_they_are_one_by_one(monkeypatch, preset, fifo, large):
    policies = {**PRESETS, "proportion": PROPORTION}
    jobs = [
        job(
            f"j{number:02}",
            "q",
            cpu=1,
            min_resources=None if number == 5 else 8 if number == large else 1,
            phase=Phase.PENDING,
            created=float(number),
        )
        for number in range(30)
    ]
    snapshot = cluster(
        nodes=[node("n1", cpu=16)],
        queues=[queue("root"), queue("q", capability=12, fifo=fifo)],
        jobs=jobs,
    )

    outcome = run(snapshot, with_actions(policies[preset], "enqueue"))
    with monkeypatch.context() as patch:
        patch.setattr(PluginDispatch, "count_enqueueable", lambda _self, _rows: 0)
        expected = run(snapshot, with_actions(policies[preset], "enqueue"))

    assert len(outcome.phase_changes) >= min(large, 10)
    assert outcome.phase_changes == expected.phase_changes
    assert dict(outcome.reasons) == dict(expected.reasons)
    assert outcome.events == expected.events
