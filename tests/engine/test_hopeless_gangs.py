"""Gangs that are larger than the room on all nodes are passed over without being tried."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from scheduler.engine import open_session, run_session
from scheduler.engine.actions import ACTIONS
from scheduler.engine.presets import FUMAROLE, VOLCANO
from scheduler.scenarios.files import read_scenarios
from tests.engine.builders import Workload, binds, cluster, configured, job, node, queue
from tests.properties.crowded import crowded

NOW = 1000.0
ASIDE = configured(FUMAROLE, allocate={"setAside": 8})
BOTH = pytest.mark.parametrize("reporting", [True, False], ids=["report", "silent"])


def one_queue(*jobs, fifo=False, deserved=6):
    return cluster(
        nodes=[node("n1", cpu=4), node("n2", cpu=2)],
        queues=[queue("root"), queue("q", deserved=deserved, fifo=fifo)],
        jobs=jobs,
        taken_at=NOW,
    )


def test_gangs_of_many_sizes_without_room_are_not_even_looked_at():
    jobs = [job(f"j{tasks:02}", "q", tasks=tasks, cpu=1, created=1.0) for tasks in range(7, 60)]
    session = open_session(one_queue(*jobs), FUMAROLE, reporting=False)

    ACTIONS["allocate"](session)

    assert list(session.known_gangs()) == []


@BOTH
def test_the_next_that_fits_starts(reporting):
    snapshot = one_queue(
        job("seven", "q", tasks=7, cpu=1, created=1.0),
        job("wide", "q", tasks=2, cpu=3, created=2.0),
        job("six", "q", tasks=6, cpu=1, created=3.0),
        job("one", "q", cpu=1, created=4.0),
    )

    outcome = run_session(snapshot, FUMAROLE, reporting=reporting)

    assert {bind.podgroup for bind in outcome.binds} == {"default/six"}


@BOTH
def test_one_of_several_needed_pods_of_a_larger_gang_counts(reporting):
    """Only its minimum must find room."""
    snapshot = one_queue(job("elastic", "q", tasks=9, min=5, cpu=1, created=1.0))

    outcome = run_session(snapshot, FUMAROLE, reporting=reporting)

    assert len(outcome.binds) == 6


@BOTH
def test_room_that_is_used_up_meanwhile_is_gone(reporting):
    snapshot = one_queue(
        job("four", "q", tasks=4, cpu=1, created=1.0),
        job("five", "q", tasks=5, cpu=1, created=2.0),
        job("three", "q", tasks=3, cpu=1, created=3.0),
        job("two", "q", tasks=2, cpu=1, created=4.0),
    )

    outcome = run_session(snapshot, FUMAROLE, reporting=reporting)

    assert {bind.podgroup for bind in outcome.binds} == {"default/four", "default/two"}


@BOTH
def test_in_a_strict_queue_it_stops_the_line(reporting):
    snapshot = one_queue(
        job("seven", "q", tasks=7, cpu=1, created=1.0),
        job("one", "q", cpu=1, created=2.0),
        fifo=True,
    )

    assert binds(run_session(snapshot, FUMAROLE, reporting=reporting)) == {}


@BOTH
def test_within_its_due_it_is_given_a_place_in_the_future(reporting):
    """So a pod that would stay for longer does not start in its way."""
    old = job("old", "small", cpu=2, on="n2", expected_seconds=160.0)
    pods = tuple(replace(pod, started=NOW - 100.0) for pod in old.pods)
    snapshot = cluster(
        nodes=[node("n1", cpu=2), node("n2", cpu=2)],
        queues=[queue("root"), queue("big", deserved=4), queue("small")],
        jobs=[
            Workload(old.group, pods),
            job("large", "big", tasks=2, cpu=2, created=1.0),
            job("long", "small", cpu=1, created=2.0, expected_seconds=70.0),
            job("short", "small", cpu=1, created=3.0, expected_seconds=50.0),
        ],
        taken_at=NOW,
    )

    assert binds(run_session(snapshot, ASIDE, reporting=reporting)) == {"short-0": "n1"}


@BOTH
def test_what_is_set_aside_for_the_oldest_does_not_undo_a_turn(reporting):
    """It is looked up while the first gang has its turn, and that gang is the oldest."""
    snapshot = one_queue(
        job("grows", "q", tasks=5, min=1, cpu=1, created=1.0),
        job("wide", "q", tasks=2, cpu=3, created=2.0, expected_seconds=9.0),
        deserved=3,
    )

    outcome = run_session(snapshot, ASIDE, reporting=reporting)

    assert sorted(bind.pod for bind in outcome.binds) == [
        f"default/grows-{number}" for number in range(5)
    ]


@pytest.mark.parametrize("policy", [ASIDE, VOLCANO], ids=["fumarole", "volcano"])
@pytest.mark.parametrize("seed", range(40, 60))
def test_the_same_is_decided_as_where_each_is_tried(seed, policy):
    (scenario,) = read_scenarios(json.dumps(crowded(seed)), "made up")
    snapshot = scenario.cluster.snapshot()

    told = run_session(snapshot, policy)
    silent = run_session(snapshot, policy, reporting=False)

    assert (silent.binds, silent.evictions) == (told.binds, told.evictions)
    assert silent.reservations == told.reservations
    assert silent.phase_changes == told.phase_changes
