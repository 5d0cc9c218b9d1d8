"""A preview says what a session decides after the set is applied."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.admission.violations import Rejected
from scheduler.domain.change_sets import Crossed
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.lifecycle import NotAllowed
from scheduler.domain.previews import as_json
from scheduler.domain.resources import total
from scheduler.domain.workloads import PodStatus
from scheduler.engine import run_session as decide
from scheduler.engine.decisions import Outcome
from scheduler.models import Node
from scheduler.selectors.sessions import trials
from scheduler.selectors.sessions.trials import cluster_now
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.change_sets.apply import apply_change_set
from scheduler.services.change_sets.drafts import create_change_set
from scheduler.services.change_sets.preview import (
    Question,
    prospect_of,
    scene_after,
    scene_now,
)
from scheduler.services.queues.states import refresh_states
from tests.histories import History, build_cluster
from tests.services.change_sets.builders import edit, exported, gone, machine, policy
from tests.worlds import run_session

pytestmark = pytest.mark.django_db

LEAVES = ("a1", "a2", "b")
AMOUNTS = st.sampled_from(["0", "2", "4", "8", "16"])
POLICY = 'actions: "enqueue, allocate, reclaim"\ntiers:\n- plugins:\n  - name: gang\n'
CAPACITY = "- plugins:\n  - name: capacity\n"


def queue_edits() -> st.SearchStrategy[dict[str, Any]]:
    names = st.sampled_from(LEAVES)
    return st.one_of(
        st.builds(lambda name, cpu: edit(name, deserved={"cpu": cpu}), names, AMOUNTS),
        st.builds(lambda name, cpu: edit(name, capability={"cpu": cpu}), names, AMOUNTS),
        st.builds(lambda name, weight: edit(name, weight=weight), names, st.integers(1, 9)),
        st.builds(
            lambda name, state: edit(name, state=state),
            names,
            st.sampled_from(["Open", "Closed", "Suspended"]),
        ),
        st.builds(lambda name: edit(name, reclaimable=False), names),
    )


OTHERS = st.one_of(
    st.just(machine("extra", "16")),
    st.just(gone("Node", "n0")),
    st.just(policy(POLICY + CAPACITY)),
    st.just(edit("new", parent="a", weight=4)),
    st.just(edit("a2", parent="root")),
)
SETS = st.lists(st.one_of(queue_edits(), queue_edits(), OTHERS), min_size=1, max_size=4)


def decisions(outcome: Outcome) -> tuple[Any, ...]:
    """Everything that a session decides, without the rows that it happens to have."""
    return (
        {(bind.pod, bind.node, bind.queue, bind.borrowed) for bind in outcome.binds},
        {(evict.pod, evict.beneficiary, evict.action) for evict in outcome.evictions},
        {(kept.pod, kept.node, kept.expires) for kept in outcome.reservations},
        {(change.podgroup, change.new) for change in outcome.phase_changes},
        {name: (share.deserved, share.allocated) for name, share in outcome.queues.items()},
    )


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(seed=st.integers(0, 10_000), documents=SETS)
def test_what_is_foretold_is_what_a_session_decides_after_applying(
    seed: int, documents: list[dict[str, Any]]
):
    from django.db import transaction

    with transaction.atomic():
        _compare(seed, documents)
        transaction.set_rollback(True)


_COMPARED: list[int] = []


def _compare(seed: int, documents: list[dict[str, Any]]) -> None:
    # what an earlier example wrote was undone, which the change log cannot know
    trials._of_this_process._resident.forget()
    build_cluster()
    refresh_states()
    history = History(seed)
    for number in range(30):
        history.step()
        if number % 5 == 4:
            run_session()
    with contextlib.suppress(Rejected):
        change_set = create_change_set("tried", documents)
        if not change_set.items:
            return
        now = scene_now()
        try:
            foretold = scene_after(now, Question(change_set.changes), SYSTEM)
            apply_change_set(change_set.pk)
        except (Rejected, NotAllowed, Crossed, NotPossible):
            return
        _COMPARED.append(seed)
        snapshot = cluster_now()
        snapshot.taken_at = foretold.snapshot.taken_at
        real = scene_now().policy

        assert decisions(decide(foretold.snapshot, foretold.policy)) == decisions(
            decide(snapshot, real)
        )


def test_sets_were_really_compared():
    """Most random sets can be applied, so that the test before can fail."""
    assert not _COMPARED or len(_COMPARED) >= 5


def test_a_preview_writes_nothing_and_says_what_changes():
    build_cluster(nodes=2)
    refresh_states()
    history = History(7)
    for _ in range(20):
        history.submit()
    run_session()
    before = exported()
    documents = [edit("b", capability={"cpu": "2"}, weight=1), edit("a1", weight=9)]
    items = create_change_set("tried", documents).changes

    now = scene_now()
    then = scene_after(now, Question(items), SYSTEM)
    lengths = now.snapshot.groups.expected_seconds
    told = as_json(prospect_of(now, 60, lengths), prospect_of(then, 60, lengths))

    assert exported() == before
    assert told["queues"]
    assert {"queue", "deserved", "allocated", "belowGuarantee"} <= set(told["queues"][0])


def test_a_queue_has_what_queues_below_it_have_also_by_a_policy_without_the_tree():
    build_cluster(nodes=2)
    refresh_states()
    history = History(7)
    for _ in range(20):
        history.submit()
    run_session()
    items = create_change_set("tried", [policy(POLICY + CAPACITY)]).changes

    now = scene_now()
    then = scene_after(now, Question(items), SYSTEM)
    shares = prospect_of(then, 1, now.snapshot.groups.expected_seconds).shares

    below = shares["a1"].allocated + shares["a2"].allocated
    assert not below.is_empty
    assert shares["a"].allocated == below
    leaves = [share.allocated for name, share in shares.items() if name not in ("root", "a")]
    assert shares["root"].allocated == total(leaves)
    assert [notice.code for notice in then.notices] == ["policy_without_tree"]


def test_pods_of_a_lost_node_wait_again():
    build_cluster(nodes=2)
    refresh_states()
    history = History(7)
    for _ in range(20):
        history.submit()
    run_session()
    assert Node.objects.filter(name="n0").exists()
    now = scene_now()
    there = now.snapshot.nodes.rows["n0"]
    assert (now.snapshot.pods.node == there).any()

    after = scene_after(now, Question(lost_nodes=["n0"]), SYSTEM)

    assert not (after.snapshot.pods.node == after.snapshot.nodes.rows["n0"]).any()
    outcome = decide(after.snapshot, after.policy)
    assert all(bind.node != "n0" for bind in outcome.binds)


def test_pods_that_have_ended_on_a_lost_node_are_done():
    build_cluster(nodes=2)
    refresh_states()
    history = History(7)
    for _ in range(20):
        history.submit()
    run_session()
    now = scene_now()
    there = np.flatnonzero(now.snapshot.pods.node == now.snapshot.nodes.rows["n0"])
    now.snapshot.change_pods(there[:1], status=int(PodStatus.SUCCEEDED))

    after = scene_after(now, Question(lost_nodes=["n0"]), SYSTEM)

    assert after.snapshot.pods.status[there[0]] == PodStatus.SUCCEEDED
    assert (after.snapshot.pods.status[there[1:]] == PodStatus.PENDING).all()
    assert sum(gang.pods for gang in after.set_back) == len(there) - 1
