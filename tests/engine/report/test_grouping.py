"""Many that wait at once: those that no node could ever hold are not tried, and those that are
alike share one reason.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.domain.reasons import ReasonCode
from scheduler.engine import open_session, run_session
from scheduler.engine.actions import ACTIONS
from scheduler.scenarios.world import advance
from tests.engine.builders import (
    TREE,
    amounts,
    binds,
    cluster,
    job,
    node,
    policy,
    queue,
    reason,
    run,
)


def never(name, queue="q1", **others):
    """A gang of two pods, each larger than the one node."""
    return job(name, queue, tasks=2, cpu=9, **others)


def tried(snapshot, policy=TREE):
    """The podgroups that any action had to do with."""
    session = open_session(snapshot, policy)
    for action in policy.actions:
        ACTIONS[action](session)
    return {job.key.removeprefix("default/") for job in session.known_gangs()}


def test_a_gang_larger_than_any_node_is_not_tried_and_told_why():
    snapshot = cluster(
        nodes=[node("n1")],
        queues=[queue("q1")],
        jobs=[never("huge"), job("small", "q1", cpu=1)],
    )

    assert tried(snapshot) == {"small"}
    assert binds(run(snapshot, TREE)) == {"small-0": "n1"}
    assert reason(run(snapshot, TREE), "huge").code is ReasonCode.EXCEEDS_CLUSTER


def test_one_pod_that_fits_is_enough_to_be_tried():
    mixed = never("mixed")
    mixed = replace(mixed, pods=(replace(mixed.pods[0], request=amounts(cpu=1)), *mixed.pods[1:]))
    snapshot = cluster(nodes=[node("n1")], queues=[queue("q1")], jobs=[never("huge"), mixed])

    assert tried(snapshot) == {"mixed"}


def test_in_a_strict_queue_it_is_tried_and_stops_the_line():
    jobs = [never("huge", created=1.0), job("small", "q1", cpu=1, created=2.0)]
    snapshot = cluster(nodes=[node("n1")], queues=[queue("q1", fifo=True)], jobs=jobs)

    assert binds(run(snapshot, TREE)) == {}
    assert reason(run(snapshot, TREE), "small").code is ReasonCode.BEHIND_OTHERS


def test_where_gangs_have_no_say_everybody_is_tried():
    snapshot = cluster(nodes=[node("n1")], queues=[queue("q1")], jobs=[never("huge")])

    assert tried(snapshot, policy("allocate", ["predicates", "proportion"])) == {"huge"}


def test_whoever_was_promised_room_is_tried():
    """Room for one of its pods was promised; the node shrank since."""
    huge = never("huge")
    huge = replace(
        huge, pods=(replace(huge.pods[0], reserved_node="n1", reserved_until=99), huge.pods[1])
    )
    snapshot = cluster(nodes=[node("n1")], queues=[queue("q1")], jobs=[huge], session=5)

    assert [gang.key for gang in open_session(snapshot, TREE).active_gangs()] == ["default/huge"]


def test_alike_gangs_share_a_reason_and_others_have_their_own():
    jobs = [
        never("a1"),
        never("a2"),
        never("on-hold", on_hold="told so"),
        never("elsewhere", "q2"),
        job("larger", "q1", tasks=2, cpu=10),
    ]
    snapshot = cluster(
        nodes=[node("n1"), node("n2"), node("n3")],
        queues=[queue("q1"), queue("q2")],
        jobs=jobs,
    )

    outcome = run(snapshot, TREE)

    assert len(outcome.reasons) == len(jobs)
    assert reason(outcome, "a1") is reason(outcome, "a2")
    assert reason(outcome, "on-hold").code is ReasonCode.ON_HOLD
    assert {check.level for check in reason(outcome, "elsewhere").checks} >= {"q2"}
    assert "10 cpu" in reason(outcome, "larger").message


@pytest.mark.parametrize("change", [{"on_hold": "told so"}, {"queue": "q2"}, {"min_member": 1}])
def test_whoever_is_no_longer_like_the_others_is_told_so(change):
    jobs = [never("a1"), never("a2")]
    three = [node("n1"), node("n2"), node("n3")]
    queues = [queue("q1"), queue("q2")]
    said = advance(before := cluster(three, queues, jobs), run(before, TREE)).groups.said
    after = cluster(
        three,
        queues,
        [jobs[0], replace(jobs[1], group=replace(jobs[1].group, **change))],
    )
    after.groups.said[:] = said

    assert [said.podgroup for said in run(after, TREE).said] == ["default/a2"]


def test_what_was_said_is_not_said_again_but_to_a_newcomer():
    jobs = [never("a1"), never("a2")]
    snapshot = cluster(nodes=[node("n1"), node("n2"), node("n3")], queues=[queue("q1")], jobs=jobs)
    later = advance(snapshot, run_session(snapshot, TREE))
    assert run(later, TREE).said == ()

    later.groups.said[later.groups.rows["default/a2"]] = 0

    assert [said.podgroup for said in run(later, TREE).said] == ["default/a2"]
