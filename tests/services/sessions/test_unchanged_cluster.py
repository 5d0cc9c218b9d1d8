"""A session that would find what the last one found does not think again.

And whatever changes, it does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.domain.lifecycle import QueueCommand
from scheduler.engine import run_session as think
from scheduler.models import ClusterState, Lease, Node, Pod, SchedulingSession
from scheduler.scenarios.digests import plain_outcome
from scheduler.scenarios.policies import default_policy_text, policy_of
from scheduler.selectors.sessions.snapshots import Refreshed
from scheduler.services.cluster.nodes import cordon_node
from scheduler.services.queues.commands import command_queue
from scheduler.services.sessions import runner as session_runner
from scheduler.services.sessions.claim import Claimed
from scheduler.services.sessions.policies import replace_policy
from scheduler.services.sessions.replay import keep_next_sessions, replay
from scheduler.services.sessions.requests import pause_scheduling
from scheduler.services.sessions.runner import ReusableOutcome, SessionRunner
from tests.histories import History, build_cluster
from tests.worlds import job, node, queue, run_session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


@pytest.fixture
def thoughts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with every session that the engine runs."""
    found: list[int] = []

    def noted(snapshot: Any, policy: Any, **more: Any) -> Any:
        found.append(snapshot.session)
        return think(snapshot, policy, **more)

    monkeypatch.setattr(session_runner, "run_session", noted)
    return found


@pytest.fixture
def runner() -> SessionRunner:
    """Of a cluster in which one gang runs, another has no room, and nothing happens any more."""
    queue("team", capability={"cpu": "4"})
    node("n1", cpu="8")
    job("runs", replicas=2)
    job("waits", "team", replicas=30)
    runner = SessionRunner("test")
    for _ in range(4):
        run_session(runner)
    return runner


def test_while_nothing_changes_nothing_is_thought_and_nothing_written_but_the_session(
    runner: SessionRunner, thoughts: list[int]
):
    with CaptureQueriesContext(connection) as log:
        result = runner.run()

    assert result
    assert thoughts == []
    assert SchedulingSession.objects.get(number=result.number).state == "Done"
    asked = [
        query["sql"]
        for query in log.captured_queries
        if query["sql"].startswith(("SELECT", "UPDATE", "INSERT", "DELETE"))
    ]
    assert len(asked) <= 5


CHANGES: dict[str, Callable[[], object]] = {
    "a pod": lambda: Pod.objects.filter(name__startswith="runs").update(phase="Running"),
    "a queue": lambda: command_queue("team", QueueCommand.SUSPEND),
    "a node": lambda: cordon_node("n1"),
    "a node that went": lambda: Node.objects.all().delete(),
    "a new gang": lambda: job("new"),
    "the policy": lambda: replace_policy(default_policy_text().replace(", backfill", "")),
    "the pause": pause_scheduling,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_changes_is_thought_about(
    runner: SessionRunner,
    thoughts: list[int],
    change: Callable[[], object],
):
    runner.run()
    assert thoughts == []

    change()
    runner.run()

    assert thoughts


def test_a_session_that_says_something_is_not_taken_for_the_next_one(thoughts: list[int]):
    job("waits", replicas=3)
    runner = SessionRunner("test")

    for _ in range(4):
        runner.run()

    assert len(thoughts) >= 2  # the first says why it waits, the second finds that this was said


def test_a_worker_that_lost_its_lease_does_not_even_close_its_session(
    runner: SessionRunner, monkeypatch: pytest.MonkeyPatch
):
    def lose(
        self: SessionRunner,
        _claimed: Claimed,
        _refreshed: Refreshed,
    ) -> ReusableOutcome | None:
        Lease.objects.update(token=999)
        return self._remembered.reusable

    monkeypatch.setattr(SessionRunner, "_reusable", lose)

    assert runner.run() is None
    assert SchedulingSession.objects.latest("number").state == "Running"


def test_a_session_that_was_not_thought_can_be_kept_and_replayed(
    runner: SessionRunner, thoughts: list[int]
):
    keep_next_sessions(1)

    result = runner.run()

    assert result
    assert thoughts == []
    assert replay(result.number).is_same
    assert ClusterState.objects.get(pk=1).keep_sessions == 0


class Doubting(SessionRunner):
    """Thinks all the same, and compares."""

    reused = 0

    def _reusable(self, claimed: Claimed, refreshed: Refreshed) -> ReusableOutcome | None:
        last = super()._reusable(claimed, refreshed)
        if last is not None:
            snapshot = self.resident.snapshot
            anew = think(snapshot, policy_of(claimed.policy_text))
            assert plain_outcome(last.outcome, snapshot) == plain_outcome(anew, snapshot)
            self.reused += 1
        return last


@pytest.mark.parametrize("seed", range(4))
def test_after_any_history_what_stands_is_what_thinking_would_give(seed: int):
    build_cluster()
    history = History(seed)
    runner = Doubting("test")

    for step in range(30):
        history.step()
        for _ in range(1 + step % 4):
            run_session(runner)

    assert runner.reused > 0
