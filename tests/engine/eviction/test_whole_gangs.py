"""Reclaim with `wholeGangs`: who may take what from whom, and that nobody goes for nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.engine.actions import reclaim_gangs
from scheduler.engine.presets import FUMAROLE
from tests.engine.builders import (
    Workload,
    configured,
    evicted,
    job,
    queue,
    run,
    waiting,
    with_actions,
)
from tests.engine.scenes import HALVES, aged, came, gpus, scene

RECLAIM = configured(with_actions(FUMAROLE, "reclaim"), reclaim={"wholeGangs": True})


def test_a_queue_within_its_due_takes_back_what_another_borrowed():
    snapshot = scene(
        job("a", "q1", tasks=2, gpu=4, min=1, on="n1"), job("b", "q2", gpu=4), queues=HALVES
    )

    outcome = run(snapshot, RECLAIM)

    assert evicted(outcome) == ["a-1"]
    assert waiting(outcome) == {"b-0": "n1"}


def test_a_gang_may_have_members_that_ask_for_no_gpu():
    snapshot = scene(
        job("a", "q1", tasks=2, gpu=4, min=1, on="n1"), mixed("b", "q2"), queues=HALVES
    )

    outcome = run(snapshot, RECLAIM)

    assert evicted(outcome) == ["a-1"]
    assert waiting(outcome) == {"b-worker-0": "n1", "b-master-0": "n1"}


def mixed(name, queue):
    """A gang of one pod with four GPUs and one without any."""
    worker = job(f"{name}-worker", queue, gpu=4)
    master = job(f"{name}-master", queue, cpu=1)
    group = replace(worker.group, name=name, min_member=2)
    return Workload(
        group, tuple(replace(pod, podgroup=group.key) for pod in (*worker.pods, *master.pods))
    )


def test_nobody_lists_victims_for_gangs_that_may_take_nothing(monkeypatch):
    snapshot = scene(
        job("a", "q1", tasks=8, min=1, gpu=1, on="n1"), job("b", "q2", gpu=5), queues=HALVES
    )
    listed = []
    monkeypatch.setattr(reclaim_gangs, "VictimTable", lambda *args: listed.append(args))

    outcome = run(snapshot, RECLAIM)

    assert evicted(outcome) == []
    assert listed == []


def test_a_queue_that_would_go_beyond_its_due_takes_nothing():
    snapshot = scene(
        job("a", "q1", tasks=8, min=1, gpu=1, on="n1"), job("b", "q2", gpu=5), queues=HALVES
    )

    assert evicted(run(snapshot, RECLAIM)) == []


def test_being_short_of_one_resource_is_no_claim_to_another():
    """b's queue has more GPUs than its due and fewer cores: it takes no GPUs for that."""
    queues = (
        queue("q1", deserved={"gpu": 4, "cpu": 2}),
        queue("q2", deserved={"gpu": 2, "cpu": 6}),
    )
    snapshot = scene(
        job("a", "q1", tasks=5, min=1, gpu=1, cpu=1, on="n1"),
        job("c", "q2", tasks=3, min=3, gpu=1, on="n1"),
        job("b", "q2", gpu=1, cpu=1),
        queues=queues,
    )

    assert evicted(run(snapshot, RECLAIM)) == []


def test_a_victims_queue_stays_at_its_due():
    """Two gangs of three would leave the queue with three of its four."""
    snapshot = scene(
        job("a", "q1", tasks=3, gpu=1, on="n1"),
        job("b", "q1", tasks=3, gpu=1, on="n1"),
        job("c", "q2", tasks=4, gpu=1),
        queues=HALVES,
    )

    assert evicted(run(snapshot, RECLAIM)) == []


def test_a_gang_goes_whole_or_keeps_its_minimum():
    snapshot = scene(
        job("a", "q1", tasks=4, gpu=1, on="n1"),
        job("b", "q1", tasks=4, gpu=1, on="n1"),
        job("c", "q2", gpu=1),
        queues=HALVES,
    )

    outcome = run(snapshot, RECLAIM)

    assert len(evicted(outcome)) == 4
    assert len({name.partition("-")[0] for name in evicted(outcome)}) == 1


def test_members_beyond_a_minimum_go_before_a_gang():
    snapshot = scene(
        aged(job("a", "q1", tasks=2, min=1, gpu=1, on="n1"), 9_000),
        aged(job("b", "q1", tasks=6, gpu=1, on="n1"), 1),
        job("c", "q2", gpu=1),
        queues=HALVES,
    )

    assert evicted(run(snapshot, RECLAIM)) == ["a-1"]


def test_members_beyond_the_minimum_of_their_role_go_too():
    work = job("a", "q1", tasks=8, min=5, gpu=1, on="n1")
    pods = tuple(
        replace(pod, role="worker" if number else "master") for number, pod in enumerate(work.pods)
    )
    group = replace(work.group, role_minimums={"master": 1, "worker": 4})
    snapshot = scene(Workload(group, pods), job("c", "q2", tasks=3, gpu=1), queues=HALVES)

    assert evicted(run(snapshot, RECLAIM)) == ["a-7", "a-6", "a-5"]


def test_a_role_keeps_its_minimum():
    work = job("a", "q1", tasks=8, min=5, gpu=1, on="n1")
    pods = tuple(
        replace(pod, role="worker" if number > 3 else "helper")
        for number, pod in enumerate(work.pods)
    )
    group = replace(work.group, role_minimums={"worker": 3, "helper": 2})
    snapshot = scene(Workload(group, pods), job("c", "q2", tasks=3, gpu=1), queues=HALVES)

    victims = evicted(run(snapshot, RECLAIM))

    assert len([name for name in victims if name in ("a-4", "a-5", "a-6", "a-7")]) == 1
    assert len(victims) == 3


def test_of_gangs_that_would_do_the_one_goes_that_loses_the_least_work():
    snapshot = scene(
        aged(job("old", "q1", tasks=4, gpu=1, on="n1"), 5_000),
        aged(job("new", "q1", tasks=4, gpu=1, on="n1"), 50),
        job("c", "q2", tasks=4, gpu=1),
        queues=HALVES,
    )

    assert {name.partition("-")[0] for name in evicted(run(snapshot, RECLAIM))} == {"new"}


def test_nobody_goes_if_the_gang_could_not_start_all_the_same():
    """There is room to be had for one of its two pods only."""
    snapshot = scene(
        job("a", "q1", tasks=8, min=1, gpu=1, on="n1"),
        job("b", "q2", tasks=2, gpu=4),
        nodes=[("n1", 8, 8), ("n2", 8, 2)],
        queues=(gpus("q1", 2), gpus("q2", 8)),
    )

    assert evicted(run(snapshot, RECLAIM)) == []


@pytest.mark.parametrize(
    ("ran", "evictions", "victims"), [(50, 0, 0), (150, 0, 4), (350, 1, 0), (450, 1, 4)]
)
def test_who_has_just_started_is_left_in_peace_and_longer_each_time(ran, evictions, victims):
    policy = configured(RECLAIM, reclaim={"wholeGangs": True, "minRunSeconds": 100})
    snapshot = scene(
        aged(job("a", "q1", tasks=4, gpu=1, on="n1"), ran, evictions=evictions),
        job("x", "q1", tasks=4, gpu=1, on="n1", pod={"preemptable": False}),
        job("c", "q2", tasks=4, gpu=1),
        queues=HALVES,
    )

    assert len(evicted(run(snapshot, policy))) == victims


def test_a_guarantee_waits_for_nobodys_protection():
    policy = configured(RECLAIM, reclaim={"wholeGangs": True, "minRunSeconds": 100})
    queues = (gpus("q1", 4), queue("q2", deserved={"gpu": 4}, guarantee={"gpu": 4}))
    snapshot = scene(
        aged(job("a", "q1", tasks=8, min=4, gpu=1, on="n1"), 5),
        job("c", "q2", tasks=4, gpu=1),
        queues=queues,
    )

    assert len(evicted(run(snapshot, policy))) == 4


@pytest.mark.parametrize(("patience", "victims"), [(30, 4), (120, 0)])
def test_a_gang_that_will_have_room_soon_makes_nobody_go(patience, victims):
    policy = configured(
        with_actions(FUMAROLE, "allocate reclaim"),
        allocate={"setAside": 8},
        reclaim={"wholeGangs": True, "patienceSeconds": patience},
    )
    snapshot = scene(
        aged(job("a", "q1", tasks=8, min=4, gpu=1, on="n1"), 100, expected_seconds=160.0),
        job("c", "q2", tasks=4, gpu=1),
        queues=HALVES,
    )

    assert len(evicted(run(snapshot, policy))) == victims


@pytest.mark.parametrize(("runs", "victims"), [(None, 4), (500.0, 4), (700.0, 0)])
def test_a_gang_that_runs_for_long_waits_longer_for_its_place(runs, victims):
    """It will have one in 60 seconds."""
    policy = configured(
        with_actions(FUMAROLE, "allocate reclaim"),
        allocate={"setAside": 8},
        reclaim={"wholeGangs": True, "patienceSeconds": 30, "patiencePercent": 10},
    )
    snapshot = scene(
        aged(job("a", "q1", tasks=8, min=4, gpu=1, on="n1"), 100, expected_seconds=160.0),
        came(job("c", "q2", tasks=4, gpu=1, expected_seconds=runs), 0),
        queues=HALVES,
    )

    assert len(evicted(run(snapshot, policy))) == victims


def test_every_level_of_the_tree_that_is_crossed_counts():
    """t1 has its due, so nobody outside may be made to go for what its children lack.

    Its own children may.
    """
    queues = (
        gpus("t1", 4),
        gpus("t2", 4),
        gpus("a", 2, parent="t1"),
        gpus("b", 2, parent="t1"),
        gpus("c", 4, parent="t2"),
    )
    inside = scene(
        job("ja", "a", tasks=4, min=1, gpu=1, on="n1"),
        job("jc", "c", tasks=4, min=1, gpu=1, on="n1"),
        job("jb", "b", gpu=2),
        queues=queues,
    )
    keeps = tuple(
        replace(found, spec=replace(found.spec, reclaimable=found.name != "a")) for found in queues
    )
    outside = scene(
        job("ja", "a", tasks=4, min=1, gpu=1, on="n1"),
        job("jc", "c", tasks=4, min=1, gpu=1, on="n1"),
        job("jb", "b", gpu=2),
        queues=keeps,
    )

    assert [name.partition("-")[0] for name in evicted(run(inside, RECLAIM))] == ["ja", "ja"]
    assert evicted(run(outside, RECLAIM)) == []
