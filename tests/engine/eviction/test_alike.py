"""Alike pods and victims that go one for one, many at once: the same outcome as pod after pod."""

from __future__ import annotations

from importlib import import_module

import pytest

from scheduler.engine import run_session
from scheduler.engine.decisions import Outcome
from scheduler.engine.eviction import alike
from scheduler.engine.policy import Policy
from scheduler.engine.presets import PRESETS
from scheduler.engine.statement import Statement
from scheduler.scenarios.clusters import Cluster
from tests.bench.clusters import takers

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

    def counting(statement: Statement, pods: list[int], *others: object) -> None:
        sizes.append(len(pods))
        evict_alike(statement, pods, *others)

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
