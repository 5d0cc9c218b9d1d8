"""Running a scenario without any database: one session, its steps, or several sessions in a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from scheduler.domain.snapshot import Snapshot
from scheduler.engine import run_session
from scheduler.engine.decisions import Outcome
from scheduler.engine.policy import Policy
from scheduler.scenarios.clusters import Cluster, cluster_of
from scheduler.scenarios.files import Scenario
from scheduler.scenarios.world import advance


@dataclass(frozen=True, slots=True)
class Run:
    """One session of a scenario: what it saw and what it decided."""

    name: str
    snapshot: Snapshot
    outcome: Outcome


def run_scenario(scenario: Scenario, sessions: int = 1) -> Iterator[Run]:
    """The sessions one after the other; a scenario with steps has its own number of them."""
    if scenario.steps:
        yield from _run_steps(scenario)
    else:
        yield from _run_sessions(scenario, sessions)


def _run_sessions(scenario: Scenario, sessions: int) -> Iterator[Run]:
    snapshot = _speaking_again(scenario.cluster).snapshot()
    for session in range(sessions):
        run = _run_once(scenario.name, snapshot, scenario.policy)
        yield run
        if session + 1 < sessions:
            snapshot = advance(run.snapshot, run.outcome)
            snapshot.groups.said[:] = 0


def _run_steps(scenario: Scenario) -> Iterator[Run]:
    cluster = scenario.cluster
    for step in scenario.steps:
        snapshot = _speaking_again(cluster.with_more(step.more)).snapshot()
        run = _run_once(scenario.name, snapshot, scenario.policy, step.actions)
        yield run
        cluster = cluster_of(advance(run.snapshot, run.outcome))


def _run_once(
    name: str,
    snapshot: Snapshot,
    policy: Policy,
    actions: tuple[str, ...] | None = None,
) -> Run:
    return Run(name, snapshot, run_session(snapshot, policy, actions))


def _speaking_again(cluster: Cluster) -> Cluster:
    """A session does not repeat what the last one said about a podgroup; a report must."""
    return replace(cluster, said={})
