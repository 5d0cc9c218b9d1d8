"""Gangs that may take nothing are told at once, and it is what each of them alone says."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from scheduler.engine import open_session
from scheduler.engine.actions import ACTIONS
from scheduler.engine.alike_gangs import AlikeNeeds
from scheduler.engine.eviction.gang_claim import Claim
from scheduler.engine.eviction.no_claims import NoClaims
from scheduler.engine.presets import FUMAROLE
from tests.engine.builders import configured, evicted, job, run, with_actions
from tests.engine.scenes import aged, gpus, scene
from tests.properties.frozen import frozen_clusters

RECLAIM = configured(with_actions(FUMAROLE, "reclaim"), reclaim={"wholeGangs": True})


def told_in(snapshot):
    """Of each gang of alike pods that starves: what both say."""
    session = open_session(snapshot, RECLAIM)
    rows = session.starving_rows()
    needs = AlikeNeeds(session, rows, session.tasks.waiting_classes())
    no_claims = NoClaims(session, needs)
    for row in rows[needs.counts[rows] > 0].tolist():
        may_take = Claim(session, session.gang(row)).may_take_anything
        yield may_take, not no_claims.count_first(np.array([row]))


@settings(max_examples=100, deadline=None)
@given(frozen_clusters())
def test_all_at_once_say_what_each_alone_says(snapshot):
    for alone, at_once in told_in(snapshot):
        assert at_once == alone


def test_the_clusters_have_gangs_of_both_kinds():
    """Else the test above would say nothing."""
    found = set()

    @settings(max_examples=60, deadline=None, database=None, derandomize=True)
    @given(frozen_clusters())
    def look(snapshot):
        found.update(told_in(snapshot))

    look()
    assert found == {(True, True), (False, False)}


def behind_a_hopeless_one(**queue):
    return scene(
        job("large", "q1", gpu=1, tasks=5, created=1.0),
        job("small", "q1", gpu=1, tasks=4, created=2.0),
        aged(job("old", "q2", gpu=1, tasks=8, on="n1"), 5000.0),
        queues=[gpus("q1", 4, **queue), gpus("q2", 0)],
    )


def test_one_that_asks_for_more_than_its_due_lets_the_next_one_reclaim():
    assert len(evicted(run(behind_a_hopeless_one(), RECLAIM))) == 8


def test_in_a_strict_queue_it_stops_the_line():
    assert evicted(run(behind_a_hopeless_one(fifo=True), RECLAIM)) == []


def test_no_gang_is_made_of_those_that_are_passed_over():
    snapshot = scene(
        *(job(f"j{tasks}", "q1", gpu=1, tasks=tasks) for tasks in range(5, 30)),
        aged(job("old", "q2", gpu=1, tasks=8, on="n1"), 5000.0),
        queues=[gpus("q1", 4), gpus("q2", 0)],
    )
    session = open_session(snapshot, RECLAIM, reporting=False)

    ACTIONS["reclaim"](session)

    assert list(session.known_gangs()) == []
