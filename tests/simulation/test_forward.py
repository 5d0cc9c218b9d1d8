"""The live cluster run forward: who starts when, and what stands in the way."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.domain.nodes import Node
from scheduler.domain.queues import QueueSpec
from scheduler.domain.resources import Resources
from scheduler.domain.snapshot import Snapshot
from scheduler.domain.workloads import Phase, Pod, PodGroup, PodStatus
from scheduler.engine.presets import BOUND, FUMAROLE
from scheduler.simulation.forward import Halt, Limits, run_forward
from scheduler.simulation.world import GRACE, START_DELAY

NOW = 1_000.0
ONE_QUEUE = (QueueSpec("q"),)


def gang(name, *, pods=1, cpu=4, running_since=None, queue="q", priority=0):
    """A podgroup and its pods, that wait or have been running on n1 since then."""
    runs = running_since is not None
    group = PodGroup(
        name=name,
        namespace="default",
        queue=queue,
        min_member=pods,
        priority=priority,
        phase=Phase.RUNNING if runs else Phase.INQUEUE,
        created=0.0,
    )
    members = []
    for number in range(pods):
        members.append(
            Pod(
                name=f"{name}-{number}",
                namespace="default",
                podgroup=group.key,
                request=Resources.parse({"cpu": str(cpu)}),
                status=PodStatus.RUNNING if runs else PodStatus.PENDING,
                node="n1" if runs else "",
                priority=priority,
                started=running_since,
            )
        )
    return group, members


def live(*gangs, cpu=4, queues=ONE_QUEUE, session=7, paused=False):
    allocatable = Resources.parse({"cpu": str(cpu), "memory": "64Gi", "pods": "110"})
    return Snapshot.build(
        nodes=[Node("n1", allocatable)],
        queues=queues,
        podgroups=[group for group, _ in gangs],
        pods=[pod for _, members in gangs for pod in members],
        taken_at=NOW,
        session=session,
        paused=paused,
    )


def seconds(snapshot, **by_name):
    """How long the pods of each gang run; NaN for those that are not named."""
    found = np.full(len(snapshot.groups), np.nan)
    for name, value in by_name.items():
        found[snapshot.groups.rows[f"default/{name}"]] = value
    return found


def test_a_gang_that_has_room_starts_now():
    snapshot = live(gang("a"))

    ahead = run_forward(snapshot, BOUND, seconds(snapshot, a=60.0))

    assert ahead.starts == {"default/a": NOW}
    assert (ahead.halt, ahead.sessions, ahead.until) == (Halt.ALL_STARTED, 1, NOW)
    assert [(bind.pod, bind.node) for bind in ahead.binds] == [("default/a-0", "n1")]


def test_a_gang_starts_when_the_one_before_it_ends():
    snapshot = live(gang("old", running_since=NOW - 100.0), gang("a"))

    ahead = run_forward(snapshot, BOUND, seconds(snapshot, old=160.0, a=60.0))

    assert ahead.starts == {"default/a": NOW + 60.0}
    assert ahead.ends == {"default/old-0": NOW + 60.0}


def test_gangs_that_wait_follow_each_other_with_the_time_that_each_runs():
    limits = Limits(coarseness=0.0)
    snapshot = live(gang("old", running_since=NOW), gang("a", priority=2), gang("b"))

    ahead = run_forward(snapshot, BOUND, seconds(snapshot, old=10.0, a=20.0, b=5.0), limits)

    first = NOW + 10.0
    assert ahead.starts == {"default/a": first, "default/b": first + START_DELAY + 20.0}


def test_a_pod_that_has_run_for_longer_than_expected_ends_at_once():
    snapshot = live(gang("old", running_since=NOW - 500.0), gang("a"))

    ahead = run_forward(snapshot, BOUND, seconds(snapshot, old=100.0, a=1.0))

    assert ahead.starts == {"default/a": NOW + 1.0}


def test_where_nobody_knows_how_long_pods_run_nothing_starts():
    snapshot = live(gang("old", running_since=NOW), gang("a"))

    ahead = run_forward(snapshot, BOUND, seconds(snapshot, a=1.0))

    assert (ahead.starts, ahead.waiting) == ({}, ("default/a",))
    assert ahead.halt is Halt.STANDSTILL


def test_what_lies_behind_the_horizon_is_not_said():
    snapshot = live(gang("old", running_since=NOW), gang("a"))
    lengths = seconds(snapshot, old=500.0, a=1.0)

    ahead = run_forward(snapshot, BOUND, lengths, Limits(seconds=400.0))

    assert (ahead.starts, ahead.halt, ahead.until) == ({}, Halt.HORIZON, NOW + 400.0)


def test_while_scheduling_is_paused_nothing_starts():
    snapshot = live(gang("a"), paused=True)

    ahead = run_forward(snapshot, BOUND, seconds(snapshot, a=1.0))

    assert (ahead.starts, ahead.halt) == ({}, Halt.STANDSTILL)


def test_the_caller_can_end_it_after_any_session():
    snapshot = live(gang("old", running_since=NOW), gang("a"))
    seen = []

    def once(progress):
        seen.append(progress)
        return False

    ahead = run_forward(snapshot, BOUND, seconds(snapshot, old=9.0, a=1.0), keep_going=once)

    assert (ahead.halt, ahead.sessions) == (Halt.STOPPED, 1)
    assert [(now.sessions, now.started, now.waiting) for now in seen] == [(1, 0, 1)]


def test_it_runs_no_more_sessions_than_allowed():
    gangs = [gang(f"g{number}") for number in range(20)]
    snapshot = live(*gangs)
    lengths = np.full(len(snapshot.groups), 1.0)

    ahead = run_forward(snapshot, BOUND, lengths, Limits(sessions=5))

    assert (ahead.sessions, ahead.halt) == (5, Halt.SESSIONS)
    assert 0 < len(ahead.starts) < 20
    assert len(ahead.starts) + len(ahead.waiting) == 20


def test_far_ahead_sessions_are_further_apart():
    gangs = [gang(f"g{number}") for number in range(50)]
    snapshot = live(*gangs)
    lengths = np.full(len(snapshot.groups), 100.0)

    fine = run_forward(snapshot, BOUND, lengths, Limits(seconds=1e6, coarseness=0.0))
    coarse = run_forward(snapshot, BOUND, lengths, Limits(seconds=1e6))

    assert coarse.sessions < fine.sessions
    for key, at in fine.starts.items():
        assert coarse.starts[key] == pytest.approx(at, rel=0.1)


def test_the_given_snapshot_stays_as_it_is():
    snapshot = live(gang("old", running_since=NOW), gang("a"))
    before = (snapshot.pods.status.tolist(), snapshot.groups.alive.tolist(), snapshot.session)

    run_forward(snapshot, BOUND, seconds(snapshot, old=5.0, a=5.0))

    after = (snapshot.pods.status.tolist(), snapshot.groups.alive.tolist(), snapshot.session)
    assert after == before
    assert snapshot.taken_at == NOW


def test_a_victim_leaves_comes_back_and_has_all_its_work_to_do():
    queues = (
        QueueSpec("lender", deserved=Resources.parse({"cpu": "4"})),
        QueueSpec("q", deserved=Resources.parse({"cpu": "0"})),
    )
    owner = gang("owner", queue="lender")
    snapshot = live(gang("guest", running_since=NOW - 900.0), owner, queues=queues)
    lengths = seconds(snapshot, guest=100_000.0, owner=50.0)
    limits = Limits(seconds=200.0, until_all_started=False)

    ahead = run_forward(snapshot, FUMAROLE, lengths, limits)

    evictions = [(each.pod, each.podgroup, each.beneficiary) for each in ahead.evictions]
    assert evictions == [("default/guest-0", "default/guest", "default/owner")]
    left = ahead.evictions[0].at + GRACE
    assert left <= ahead.starts["default/owner"] <= left + 2.0
    returned = [bind.at for bind in ahead.binds if bind.pod == "default/guest-0"]
    assert len(returned) == 1
    assert returned[0] >= ahead.starts["default/owner"] + 50.0


def test_the_first_outcome_says_why_gangs_wait_when_asked():
    snapshot = live(gang("old", running_since=NOW), gang("a"))
    lengths = seconds(snapshot, old=5.0, a=5.0)

    plain = run_forward(snapshot, BOUND, lengths)
    told = run_forward(snapshot, BOUND, lengths, reporting=True)

    assert (not plain.first.reasons, told.starts) == (True, plain.starts)
    assert "default/a" in told.first.reasons
