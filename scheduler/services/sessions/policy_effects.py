"""What another policy would change in the next session, tried on a copy of the cluster.

And whether the one in force starts nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from scheduler.domain.snapshot import Snapshot
from scheduler.engine import run_session
from scheduler.engine.policy import Policy
from scheduler.engine.report.omissions import omissions
from scheduler.models import ClusterState, Decision, PodGroup, PolicyVersion
from scheduler.scenarios.policies import policy_of
from scheduler.selectors.queues.page import WAITING
from scheduler.selectors.sessions.trials import cluster_now
from scheduler.services.sessions.policies import (
    DEFAULT_VERSION,
    policy_in_force,
    policy_text,
    policy_to_go_back_to,
    policy_version,
)

_LONG_SECONDS = 60.0
_LONG_PERIODS = 30
_LATE_PERIODS = 10
_TRIED_EVERY = 15.0  # seconds: many pages ask, and a trial is a whole session


@dataclass(frozen=True, slots=True)
class SessionEffect:
    """What one session does: how many pods it places and evicts, and the gangs that get a place."""

    placed: int
    evicted: int
    gangs: frozenset[str]


@dataclass(frozen=True, slots=True)
class PolicyEffect:
    """The next session under the policy in force (`now`) and under the other one (`then`)."""

    now: SessionEffect
    then: SessionEffect
    waiting: int

    @property
    def no_longer(self) -> list[str]:
        """Gangs that would get a place, and would not under the other policy."""
        return sorted(self.now.gangs - self.then.gangs)

    @property
    def newly(self) -> list[str]:
        return sorted(self.then.gangs - self.now.gangs)

    @property
    def is_the_same(self) -> bool:
        return self.now == self.then


def effect_of(policy: Policy, state: ClusterState) -> PolicyEffect:
    """Writes nothing. Tried as if scheduling were not paused: then no policy would do anything."""
    snapshot = cluster_now()
    snapshot.paused = False
    now = _session_effect(snapshot, policy_in_force(state))
    then = _session_effect(snapshot, policy)
    return PolicyEffect(now, then, PodGroup.objects.filter(phase__in=WAITING).count())


def _session_effect(snapshot: Snapshot, policy: Policy) -> SessionEffect:
    outcome = run_session(snapshot, policy)
    return SessionEffect(
        len(outcome.binds),
        len(outcome.evictions),
        frozenset(bind.podgroup for bind in outcome.binds),
    )


@dataclass(frozen=True, slots=True)
class Standstill:
    """Nothing was placed since then, and under `back_to` so many gangs would get a place now.

    `lacks` is what the policy leaves out.
    """

    since: datetime
    back_to: PolicyVersion
    gangs: int
    lacks: tuple[str, ...]


@dataclass(slots=True)
class _Tried:
    key: tuple[int | None, datetime] | None = None
    at: float = 0.0
    found: tuple[PolicyVersion, int] | None = None


_tried = _Tried()


def standstill() -> Standstill | None:
    """None while sessions place pods, have nothing to place, or would place nothing under an
    earlier policy either.
    """
    state = ClusterState.objects.select_related("policy").get(pk=1)
    if state.policy is None:
        return None
    since = _idle_since(state, state.policy)
    if since is None:
        return None
    found = _better_policy(state, since)
    if found is None:
        return None
    version, gangs = found
    lacks = omissions(policy_in_force(state))
    causes = [item for item in lacks if item.stops] or lacks
    return Standstill(since, version, gangs, tuple(item.message for item in causes))


def _idle_since(state: ClusterState, policy: PolicyVersion) -> datetime | None:
    """Since when jobs wait under this policy and nothing was placed, if that is long.

    Sessions that do not run are told elsewhere.
    """
    now = timezone.now()
    if state.paused or state.last_session_at is None:
        return None
    if now - state.last_session_at > timedelta(seconds=_LATE_PERIODS * state.period_seconds):
        return None
    oldest = (
        PodGroup.objects.filter(phase__in=WAITING)
        .order_by("created_at")
        .values_list("created_at", flat=True)
        .first()
    )
    if oldest is None:
        return None
    last = (
        Decision.objects.filter(kind=Decision.BIND)
        .order_by("-pk")
        .values_list("created_at", flat=True)
        .first()
    )
    since = max(moment for moment in (policy.created_at, oldest, last) if moment is not None)
    is_long = (now - since).total_seconds() > max(
        _LONG_SECONDS, _LONG_PERIODS * state.period_seconds
    )
    if is_long:
        return since
    return None


def _better_policy(state: ClusterState, since: datetime) -> tuple[PolicyVersion, int] | None:
    """The nearest earlier policy under which something would be placed now, and how many gangs.

    Asked again every few seconds.
    """
    key = (state.policy_id, since)
    if _tried.key != key or time.monotonic() - _tried.at > _TRIED_EVERY:
        _tried.found = _first_that_places(_earlier_versions(state), policy_text(state))
        _tried.key = key
        _tried.at = time.monotonic()
    return _tried.found


def _earlier_versions(state: ClusterState) -> list[PolicyVersion]:
    versions = [policy_to_go_back_to(state), policy_version(DEFAULT_VERSION)]
    return [version for version in versions if version is not None]


def _first_that_places(
    versions: Iterable[PolicyVersion], current: str
) -> tuple[PolicyVersion, int] | None:
    snapshot = cluster_now()
    tried = {current}
    for version in versions:
        if version.text in tried:
            continue
        tried.add(version.text)
        gangs = len(_session_effect(snapshot, policy_of(version.text)).gangs)
        if gangs:
            return version, gangs
    return None
