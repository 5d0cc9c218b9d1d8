"""Whatever the input, a session ends, breaks no limit and says what is wrong."""

from __future__ import annotations

import pytest

from scheduler.domain.reasons import ReasonCode
from scheduler.domain.resources import MAX_AMOUNT, Resources
from scheduler.domain.snapshot import Snapshot
from scheduler.domain.workloads import Phase, PodStatus
from scheduler.engine import run_session
from scheduler.engine.plugin import Plugin, Vote
from scheduler.engine.plugins import UnknownPluginError, find_plugin
from scheduler.engine.policy import PluginConfig
from scheduler.engine.presets import FUMAROLE, VOLCANO
from scheduler.engine.refusals import Refusal
from tests.engine.builders import (
    BASIC,
    CAPACITY,
    PROPORTION,
    TREE,
    binds,
    cluster,
    evicted,
    job,
    node,
    phase,
    policy,
    queue,
    reason,
    run,
    waiting,
)

POLICIES = {
    "fumarole": FUMAROLE,
    "volcano": VOLCANO,
    "proportion": PROPORTION,
    "capacity": CAPACITY,
    "tree": TREE,
}
every_policy = pytest.mark.parametrize("policy_", POLICIES.values(), ids=POLICIES)


@every_policy
def test_nothing_at_all(policy_):
    outcome = run_session(Snapshot.build(), policy_)

    assert (outcome.binds, outcome.evictions) == ((), ())


@every_policy
def test_work_without_nodes(policy_):
    outcome = run(cluster(queues=[queue("default")], jobs=[job("a", cpu=1)]), policy_)

    assert outcome.binds == ()
    assert reason(outcome, "a").code is ReasonCode.EXCEEDS_CLUSTER


@every_policy
def test_queues_in_a_ring_or_without_a_parent_do_not_stop_the_others(policy_):
    queues = [
        queue("a", parent="b"),
        queue("b", parent="a"),
        queue("lost", parent="nobody"),
        queue("good"),
    ]
    jobs = [job("ring", "a", cpu=1), job("orphan", "lost", cpu=1), job("fine", "good", cpu=1)]

    outcome = run(cluster(nodes=[node("n1")], queues=queues, jobs=jobs), policy_)

    assert "fine-0" in binds(outcome)


def test_queues_in_a_ring_say_so():
    queues = [queue("a", parent="b"), queue("b", parent="a")]

    outcome = run(cluster(nodes=[node("n1")], queues=queues, jobs=[job("new", "a", cpu=1)]))

    assert (
        reason(outcome, "new").message
        == "The queue tree is not valid: queue a: its parents form a ring: a > b."
    )


@every_policy
def test_pods_on_a_node_that_is_gone_count_for_their_queue_only(policy_):
    outcome = run(
        cluster(
            nodes=[node("n1")],
            queues=[queue("default")],
            jobs=[job("a", cpu=2, on="gone"), job("b", cpu=1)],
        ),
        policy_,
    )

    assert outcome.queues["default"].allocated["cpu"] == 3000
    assert binds(outcome) == {"b-0": "n1"}


@every_policy
def test_a_node_that_holds_more_than_it_has(policy_):
    jobs = [job("a", tasks=3, cpu=4, on="n1"), job("b", cpu=1)]

    outcome = run(cluster(nodes=[node("n1", cpu=8)], queues=[queue("default")], jobs=jobs), policy_)

    assert binds(outcome) == {}


@every_policy
def test_a_node_that_is_not_ready_takes_nobody_and_counts_for_nothing(policy_):
    outcome = run(
        cluster(
            nodes=[node("n1", ready=False), node("n2", cpu=2)],
            queues=[queue("default")],
            jobs=[job("a", cpu=1)],
        ),
        policy_,
    )

    assert binds(outcome) == {"a-0": "n2"}
    assert outcome.total["cpu"] == 2000


@every_policy
def test_amounts_as_large_as_can_be_written(policy_):
    huge = Resources({"cpu": MAX_AMOUNT, "memory": MAX_AMOUNT})
    queues = [queue(f"q{number}") for number in range(50)]
    queues = [
        type(item)(
            type(item.spec)(item.name, capability=huge, deserved=huge, guarantee=huge, weight=65535)
        )
        for item in queues
    ]
    jobs = [job("a", "q0", cpu=1), job("b", "q1", cpu=10**9, min_resources=10**12)]

    outcome = run(cluster(nodes=[node("n1")], queues=queues, jobs=jobs), policy_)

    assert all(
        amount >= 0 for figures in outcome.queues.values() for amount in figures.deserved.values()
    )


def test_guarantees_beyond_the_cluster_are_told():
    outcome = run(
        cluster(
            nodes=[node("n1", cpu=2)], queues=[queue("q1", guarantee=2), queue("q2", guarantee=2)]
        ),
        PROPORTION,
    )

    assert outcome.warnings == (
        (
            "the guarantees of all queues exceed the cluster's cpu: each queue deserves just "
            "its guarantee"
        ),
    )


def test_a_pod_limit_of_a_node_holds_for_pods_that_ask_for_nothing_too():
    jobs = [job("a", tasks=3, min=0), job("b", tasks=2, min=0, cpu=1)]

    outcome = run(cluster(nodes=[node("n1", pods=3)], queues=[queue("default")], jobs=jobs))

    assert len(outcome.binds) == 3


def test_pods_limit_a_queue_only_if_it_names_them():
    jobs = [job("a", tasks=3, min=0, cpu=1)]

    assert (
        len(run(cluster(nodes=[node("n1")], queues=[queue("default")], jobs=jobs), CAPACITY).binds)
        == 3
    )
    assert (
        len(
            run(
                cluster(
                    nodes=[node("n1")],
                    queues=[queue("default", capability={"pods": 2})],
                    jobs=jobs,
                ),
                CAPACITY,
            ).binds
        )
        == 2
    )


class Refuser(Plugin):
    name = "refuser"

    def job_enqueueable(self, job):
        return (
            Refusal(ReasonCode.NOT_PERMITTED, "outside office hours")
            if job.key == "default/a"
            else Vote.PERMIT
        )


def test_a_plugin_from_outside_comes_by_dotted_path():
    jobs = [job(name, cpu=1, min_resources=1, phase=Phase.PENDING) for name in ("a", "b")]
    path = f"{__name__}.Refuser"

    outcome = run(
        cluster(nodes=[node("n1")], queues=[queue("default")], jobs=jobs),
        policy("enqueue", [PluginConfig(path)], ["proportion"]),
    )

    assert (phase(outcome, "a"), phase(outcome, "b")) == (Phase.PENDING, Phase.INQUEUE)
    assert reason(outcome, "a").message == "Not permitted: outside office hours."


@pytest.mark.parametrize(
    "name", ["nobody", "scheduler.engine.nowhere.X", "scheduler.engine.session.Session"]
)
def test_an_unknown_plugin_is_refused_by_name(name):
    with pytest.raises(UnknownPluginError, match=name):
        find_plugin(name)


def test_a_reservation_keeps_its_room_from_others():
    """The victim is gone.

    The pod it made room for goes first although a job of higher priority would fit.
    """
    kept = job("kept", cpu=4, pod={"reserved_node": "n1", "reserved_until": 10})
    snapshot = cluster(
        nodes=[node("n1", cpu=4)],
        queues=[queue("default")],
        jobs=[kept, job("other", cpu=4, priority=9)],
        session=5,
    )

    outcome = run(snapshot, policy("allocate", BASIC, ["predicates"]))

    assert binds(outcome) == {"kept-0": "n1"}


def test_a_reservation_that_ran_out_keeps_nothing():
    kept = job("kept", cpu=4, pod={"reserved_node": "n1", "reserved_until": 4})
    snapshot = cluster(
        nodes=[node("n1", cpu=4)],
        queues=[queue("default")],
        jobs=[kept, job("other", cpu=4, priority=9)],
        session=5,
    )

    assert binds(run(snapshot, policy("allocate", BASIC, ["predicates"]))) == {"other-0": "n1"}


def test_a_reservation_on_a_node_that_became_too_small_is_given_back_at_once():
    kept = job("kept", cpu=4, pod={"reserved_node": "n1", "reserved_until": 10})
    snapshot = cluster(
        nodes=[node("n1", cpu=3)],
        queues=[queue("default")],
        jobs=[kept, job("other", cpu=3)],
        session=5,
    )

    outcome = run(snapshot, policy("allocate", BASIC, ["predicates"]))

    assert binds(outcome) == {"other-0": "n1"}
    assert waiting(outcome) == {}


@pytest.mark.parametrize("turned", [False, True])
def test_where_only_some_reservations_can_be_kept_the_oldest_are(turned):
    leaving = job("old", cpu=4, on="n1", pod={"status": PodStatus.RELEASING})
    later = job("a", cpu=4, pod={"reserved_node": "n1", "reserved_until": 11})
    earlier = job("b", cpu=4, pod={"reserved_node": "n1", "reserved_until": 10})
    jobs = [leaving, *([earlier, later] if turned else [later, earlier])]

    outcome = run(
        cluster(nodes=[node("n1", cpu=4)], queues=[queue("default")], jobs=jobs, session=5),
        policy("allocate", BASIC, ["predicates"]),
    )

    assert waiting(outcome) == {"b-0": "n1"}


def test_a_reservation_waits_for_its_victims_without_evicting_others():
    leaving = job("old", "q1", cpu=4, on="n1", pod={"status": PodStatus.RELEASING})
    kept = job("kept", "q2", cpu=4, pod={"reserved_node": "n1", "reserved_until": 10})
    others = job("run", "q1", tasks=4, min=0, cpu=1, on="n1")
    queues = [queue("q1", deserved=2), queue("q2", deserved=6)]

    outcome = run(
        cluster(nodes=[node("n1", cpu=8)], queues=queues, jobs=[leaving, kept, others], session=5),
        CAPACITY,
    )

    assert evicted(outcome) == []
    assert waiting(outcome) == {"kept-0": "n1"}
    assert outcome.reservations[0].expires == 10


def test_pods_being_released_hold_a_place_for_a_gang_over_sessions():
    leaving = job("old", cpu=4, on="n1", pod={"status": PodStatus.RELEASING})

    outcome = run(
        cluster(
            nodes=[node("n1", cpu=8)],
            queues=[queue("default")],
            jobs=[leaving, job("new", tasks=2, cpu=4)],
        )
    )

    assert binds(outcome) == {}
    assert waiting(outcome) == {"new-0": "n1", "new-1": "n1"}


def test_a_member_that_asks_for_nothing_starts_with_its_gang_or_not_at_all():
    """Room for two pods, a gang of three of which one asks for nothing: nothing starts."""
    work = job("mixed", tasks=3, cpu=1)
    work = type(work)(work.group, (*work.pods[:2], job("mixed", tasks=3).pods[2]))

    short = run(
        cluster(nodes=[node("n1", pods=2)], queues=[queue("default")], jobs=[work]),
        policy("allocate backfill", BASIC, ["predicates"]),
    )
    whole = run(
        cluster(nodes=[node("n1", pods=3)], queues=[queue("default")], jobs=[work]),
        policy("allocate backfill", BASIC, ["predicates"]),
    )

    assert (binds(short), len(whole.binds)) == ({}, 3)
