"""Gangs that are settled by another one of their kind, without being tried."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from scheduler.engine import open_session, run_session
from scheduler.engine.actions import ACTIONS
from scheduler.engine.alike_gangs import numbered
from scheduler.engine.presets import FUMAROLE, VOLCANO
from scheduler.scenarios.files import read_scenarios
from tests.engine.builders import Workload, binds, cluster, configured, job, node, queue
from tests.properties.crowded import PROPORTION, crowded

NOW = 1000.0
ASIDE = configured(FUMAROLE, allocate={"setAside": 8})


def crowd(count, **others):
    """Room for two of many gangs that ask for the same."""
    return cluster(
        nodes=[node("n1", cpu=8)],
        queues=[queue("root"), queue("q", deserved=8)],
        jobs=[job(f"j{number:03}", "q", cpu=4, created=1.0, **others) for number in range(count)],
        taken_at=NOW,
    )


def test_of_many_alike_gangs_only_a_few_are_looked_at():
    session = open_session(crowd(300), FUMAROLE, reporting=False)

    for action in ("allocate", "preempt", "reclaim"):
        ACTIONS[action](session)

    assert [operation.gang.key for operation in session.binds] == ["default/j000", "default/j001"]
    assert len(list(session.known_gangs())) < 20


def test_a_report_tells_the_same_of_each_of_them():
    reasons = run_session(crowd(30), FUMAROLE).reasons

    messages = {reason.message for reason in reasons.values()}
    assert len(reasons) == 28
    assert len(messages) == 1


def running(name, on, ends_in):
    """A pod that has run for 100 s and is expected to end."""
    work = job(name, "small", cpu=8, on=on, expected_seconds=100.0 + ends_in)
    return Workload(work.group, tuple(replace(pod, started=NOW - 100.0) for pod in work.pods))


@pytest.mark.parametrize("reporting", [True, False])
def test_one_that_ends_in_time_starts_though_another_like_it_could_not(reporting):
    snapshot = cluster(
        nodes=[node("n1", cpu=8), node("n2", cpu=8)],
        queues=[queue("root"), queue("big", deserved=16), queue("small")],
        jobs=[
            running("old", "n2", ends_in=60),
            job("large", "big", tasks=2, cpu=8, created=1.0),
            job("long", "small", cpu=4, created=2.0, expected_seconds=70.0),
            job("short", "small", cpu=4, created=3.0, expected_seconds=50.0),
            job("endless", "small", cpu=4, created=4.0),
        ],
        taken_at=NOW,
    )

    outcome = run_session(snapshot, ASIDE, reporting=reporting)

    assert binds(outcome) == {"short-0": "n1"}


def test_kinds_are_told_apart_however_large_their_numbers_are():
    small = np.array([1, 1, 2, 2])
    large = np.array([2**40, 2**40, 2**40, 7])

    for columns in ([small, large], [large, large, small]):
        kinds, count = numbered(columns)

        assert count == 3
        assert kinds[0] == kinds[1]
        assert len({*kinds.tolist()}) == 3


@pytest.mark.parametrize("policy", [FUMAROLE, VOLCANO, None], ids=["fumarole", "volcano", "file"])
@pytest.mark.parametrize("seed", range(12))
def test_without_a_report_the_same_is_decided(seed, policy):
    (scenario,) = read_scenarios(json.dumps(crowded(seed, PROPORTION)), "made up")
    snapshot = scenario.cluster.snapshot()
    policy = policy or scenario.policy

    told = run_session(snapshot, policy)
    silent = run_session(snapshot, policy, reporting=False)

    assert silent.binds == told.binds
    assert silent.evictions == told.evictions
    assert silent.reservations == told.reservations
    assert silent.phase_changes == told.phase_changes
    assert silent.starving == told.starving
