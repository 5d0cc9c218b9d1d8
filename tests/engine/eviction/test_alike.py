"""Alike pods and victims that go one for one, many at once: the same outcome as pod after pod."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import pytest

from scheduler.domain.queues import QueueSpec
from scheduler.domain.workloads import Phase, Pod, PodGroup
from scheduler.engine import run_session
from scheduler.engine.decisions import Outcome
from scheduler.engine.eviction import alike
from scheduler.engine.policy import Policy
from scheduler.engine.presets import PRESETS
from scheduler.engine.statement import Statement
from scheduler.scenarios.clusters import Cluster
from tests.bench.clusters import NODE, ONE_GPU, takers

VOLCANO: Policy = PRESETS["volcano"]
# The package names the functions after their modules, so modules are found by path.
RECLAIM = import_module("scheduler.engine.actions.reclaim")
PREEMPT = import_module("scheduler.engine.actions.preempt")
SEARCH = import_module("scheduler.engine.eviction.reclaim_search")


def one_by_one(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> Outcome:
    with monkeypatch.context() as patch:
        for module in (RECLAIM, PREEMPT):
            patch.setattr(module, "alike_pods", lambda _session, _gang, pods: pods[:1])
        return run_session(cluster.snapshot(), VOLCANO)


def count_batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all that went at once from now on."""
    sizes: list[int] = []
    evict_alike = Statement.evict_alike

    def counting(
        statement: Statement, pods: list[int], *others: object, **settings: object
    ) -> None:
        sizes.append(len(pods))
        evict_alike(statement, pods, *others, **settings)

    monkeypatch.setattr(Statement, "evict_alike", counting)
    return sizes


@pytest.mark.parametrize("kind", ["reclaim", "preempt"])
def test_many_at_once_decides_as_pod_after_pod(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    cluster = takers(kind, scale=0.1)
    expected = one_by_one(monkeypatch, cluster)
    sizes = count_batches(monkeypatch)
    outcome = run_session(cluster.snapshot(), VOLCANO)
    assert sum(sizes) > len(expected.evictions) / 2
    assert outcome.evictions == expected.evictions
    assert outcome.reservations == expected.reservations
    assert dict(outcome.reasons) == dict(expected.reasons)
    assert outcome.events == expected.events


def test_where_it_is_clear_who_is_next_the_outcome_is_the_same_as_with_a_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    snapshot = takers("reclaim", scale=0.1).snapshot()
    name = "_swap_with_head_of_line"
    short_way = getattr(SEARCH.ReclaimSearch, name)
    answers: list[bool] = []

    def counting(*question: object) -> bool:
        answers.append(short_way(*question))
        return answers[-1]

    monkeypatch.setattr(SEARCH.ReclaimSearch, name, counting)
    outcome = run_session(snapshot, VOLCANO)
    monkeypatch.setattr(SEARCH.ReclaimSearch, name, lambda *_: False)
    expected = run_session(snapshot, VOLCANO)

    assert sum(answers) > len(answers) / 2
    assert outcome.evictions == expected.evictions
    assert outcome.reservations == expected.reservations
    assert outcome.events == expected.events


def test_the_victims_on_the_best_node_are_those_that_a_pool_finds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    snapshot = takers("preempt", scale=0.1).snapshot()
    name = "_alike_on_best_node"
    short_way = getattr(PREEMPT.PreemptSearch, name)
    answers: list[list[int]] = []

    def counting(*question: object) -> list[int]:
        answers.append(short_way(*question))
        return answers[-1]

    monkeypatch.setattr(PREEMPT.PreemptSearch, name, counting)
    outcome = run_session(snapshot, VOLCANO)
    monkeypatch.setattr(PREEMPT.PreemptSearch, name, lambda *_: [])
    expected = run_session(snapshot, VOLCANO)

    assert sum(map(bool, answers)) > len(answers) / 2
    assert outcome.evictions == expected.evictions
    assert outcome.reservations == expected.reservations
    assert outcome.events == expected.events


def test_a_gang_that_needs_more_than_one_piece_of_the_line_evicts_nobody_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """20 pods reclaim, 16 victims at once and then four more."""
    cluster = large_gang_reclaims(members=20)
    expected = one_by_one(monkeypatch, cluster)
    sizes = count_batches(monkeypatch)
    outcome = run_session(cluster.snapshot(), VOLCANO)
    assert sizes == [16, 4]
    assert len({eviction.pod for eviction in outcome.evictions}) == 20
    assert outcome.evictions == expected.evictions
    assert outcome.reservations == expected.reservations


def large_gang_reclaims(members: int) -> Cluster:
    """One gang of a queue that has nothing, and 400 running pods of one that has far too much."""
    cluster = takers("reclaim", scale=0.1)
    running = [group for group in cluster.podgroups if group.queue == "borrower"]
    keys = {group.key for group in running}
    pods = [pod for pod in cluster.pods if pod.podgroup in keys]
    group = PodGroup("large", "owner", "bench", members, phase=Phase.INQUEUE, created=1e6)
    waiting = [Pod(f"large-a-{n}", group.key, "bench", ONE_GPU) for n in range(members)]
    queues = [replace(queue, spec=_deserving_a_fifth(queue.spec)) for queue in cluster.queues]
    return replace(
        cluster,
        queues=tuple(queues),
        podgroups=(*running, group),
        pods=(*pods, *waiting),
    )


def _deserving_a_fifth(spec: QueueSpec) -> QueueSpec:
    if spec.name != "borrower":
        return spec
    return replace(spec, deserved=NODE * 10)


@pytest.mark.parametrize("kind", ["reclaim", "preempt"])
def test_what_a_plugin_refuses_before_the_last_pod_is_undone(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The swap is tried, refused and taken back: pod after pod finds the same."""
    cluster = takers(kind, scale=0.1)
    expected = one_by_one(monkeypatch, cluster)
    swap = alike.swap

    def refused(*arguments: object) -> bool:
        return swap(*arguments[:-1], lambda: False)  # type: ignore[arg-type]

    for module in (PREEMPT, SEARCH):
        monkeypatch.setattr(module, "swap", refused)
    outcome = run_session(cluster.snapshot(), VOLCANO)
    assert outcome.evictions == expected.evictions
    assert outcome.reservations == expected.reservations
