"""Sessions kept so that they can be run again, elsewhere and later, with the same outcome.

Sessions that decided something are kept by themselves while the cluster is small, and thinned out
later (`services/records/kept_sessions.py`). On a large one keeping costs more than the session, so
it is done when somebody asks for it (`keep_next_sessions`). Either way it happens after the
decisions are committed.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F

from scheduler import notify
from scheduler.conf import conf
from scheduler.engine import run_session
from scheduler.engine.decisions import Outcome
from scheduler.engine.policy import Policy
from scheduler.models import ClusterState, SavedScenario
from scheduler.scenarios.digests import outcome_digest
from scheduler.scenarios.files import Scenario, read_scenarios
from scheduler.scenarios.running import Run
from scheduler.scenarios.writing import scenario_document
from scheduler.selectors.sessions.kept import nearest_kept
from scheduler.selectors.sessions.snapshots import ResidentSnapshot
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.records import audit

MOST_WANTED = 100


class NotKept(Exception):
    """This session cannot be run again; the message says what can."""

    def __init__(self, number: int) -> None:
        kept = [str(row.session_number) for row in nearest_kept(number)]
        if kept:
            nearest = f"The nearest that are: {', '.join(kept)}."
        else:
            nearest = "None is."
        super().__init__(
            f"Session {number} is not kept. {nearest} "
            "Sessions that decided something are kept for a while; ask for the next ones with "
            "“.venv/bin/python manage.py replay --keep-next 3”."
        )


@dataclass(frozen=True, slots=True)
class Replayed:
    """A session run again. `is_same` is whether its outcome is the one it had then, bit for bit."""

    run: Run
    scenario: Scenario
    is_same: bool


def keep_next_sessions(count: int, *, by: Actor = SYSTEM) -> None:
    """Keep so many of the next sessions, whatever they decide and however large the cluster is."""
    access.require_cluster(by, doing="keep sessions")
    if not 1 <= count <= MOST_WANTED:
        raise ValueError(f"{count} sessions cannot be kept; give 1 to {MOST_WANTED}.")
    ClusterState.objects.filter(pk=1).update(keep_sessions=count)
    audit.record(by, "KeepSessions", "Cluster", "scheduler", after={"keepSessions": count})
    notify.cluster_changed()


def keep_session(
    resident: ResidentSnapshot,
    policy: Policy,
    number: int,
    now: datetime,
    outcome: Outcome,
    *,
    wanted: bool = False,
) -> bool:
    """Keep it if it is worth it, or if it was asked for. Whether it was kept."""
    if wanted:
        ClusterState.objects.filter(pk=1, keep_sessions__gt=0).update(
            keep_sessions=F("keep_sessions") - 1
        )
    elif not (outcome.binds or outcome.evictions) or len(resident.pod_rows) > conf().scenario_pods:
        return False
    document = scenario_document(resident.snapshot, policy, f"session {number}")
    content = gzip.compress(json.dumps(document, separators=(",", ":")).encode(), compresslevel=1)
    digest = outcome_digest(outcome, resident.snapshot)
    SavedScenario.objects.update_or_create(
        session_number=number,
        defaults={
            "created_at": now,
            "content": content,
            "outcome_digest": digest,
            "stays": wanted or bool(outcome.evictions),
        },
    )
    return True


def scenario_text(number: int) -> str:
    """The session as a scenario file. Raises `NotKept`."""
    row = SavedScenario.objects.filter(session_number=number).first()
    if row is None:
        raise NotKept(number)
    return gzip.decompress(bytes(row.content)).decode()


def replay(number: int) -> Replayed:
    """Run it again. Raises `NotKept`."""
    text = scenario_text(number)
    digest = SavedScenario.objects.values_list("outcome_digest", flat=True).get(
        session_number=number
    )
    (scenario,) = read_scenarios(text, f"session {number}")
    snapshot = scenario.cluster.snapshot()
    outcome = run_session(snapshot, scenario.policy)
    return Replayed(
        Run(scenario.name, snapshot, outcome),
        scenario,
        outcome_digest(outcome, snapshot) == digest,
    )


@dataclass(frozen=True, slots=True)
class Replay:
    """What a kept session decided, and what the policy in force would decide in its place.

    Gangs are named "namespace/name": only who sees all queues may read them.
    """

    is_same: bool
    binds: int
    evictions: int
    gangs: frozenset[str]
    now_binds: int
    now_evictions: int
    now_gangs: frozenset[str]


def replay_with_policy_in_force(number: int, policy: Policy) -> Replay:
    """Run it again as it was, and once more under this policy. Raises `NotKept`."""
    then = replay(number)
    now = run_session(then.scenario.cluster.snapshot(), policy)
    outcome = then.run.outcome
    return Replay(
        is_same=then.is_same,
        binds=len(outcome.binds),
        evictions=len(outcome.evictions),
        gangs=frozenset(bind.podgroup for bind in outcome.binds),
        now_binds=len(now.binds),
        now_evictions=len(now.evictions),
        now_gangs=frozenset(bind.podgroup for bind in now.binds),
    )
