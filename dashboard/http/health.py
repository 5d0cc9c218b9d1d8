"""/healthz: the process answers. /readyz: it can do its work, or which part cannot.

Parts that fail beside the sessions are named, but do not make it unready.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime

import redis
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.http.middleware import DAMAGED
from dashboard.live.redis_watch import ANSWER_SECONDS, ping
from scheduler.conf import is_kubernetes
from scheduler.outages import is_damage
from scheduler.selectors.cluster.mirror import MirrorFacts, may_decide, mirror_facts
from scheduler.selectors.cluster.summary import failing_parts, session_clock

logger = logging.getLogger(__name__)

READY_WITHIN_PERIODS = 10
FUTURE_SECONDS = 10.0  # clocks of two machines may differ a little

OK = "ok"
_SEE_WHY = "The page of sessions and the log of the scheduler worker say why."


class NotReadyError(Exception):
    """Why a part cannot do its work; the message is the sentence in the answer."""


@never_cache
@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    return JsonResponse({"status": OK})


@never_cache
@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    checks = outcomes_of_checks()
    if not all(outcome["ok"] for outcome in checks.values()):
        return JsonResponse({"status": "not ready", "checks": checks}, status=503)
    failing = _failing_checks()
    if failing:
        status = "impaired"
    else:
        status = OK
    return JsonResponse({"status": status, "checks": {**checks, **failing}})


def outcomes_of_checks() -> dict[str, dict[str, object]]:
    """By name: whether each part can do its work, and a sentence about it."""
    outcomes = {}
    for name, check in CHECKS.items():
        outcomes[name] = outcome_of(check)
    if is_kubernetes():
        outcomes["cluster"] = outcome_of(check_cluster)
    return outcomes


def _failing_checks() -> dict[str, dict[str, object]]:
    """Sessions go on, so it stays ready; but somebody should look."""
    checks: dict[str, dict[str, object]] = {}
    for name, since in failing_parts().items():
        message = f"Fails since {since:%Y-%m-%d %H:%M:%S} UTC. The log of the worker says why."
        checks[name] = {"ok": False, "message": message}
    return checks


def outcome_of(check: Callable[[], str]) -> dict[str, object]:
    try:
        return {"ok": True, "message": check()}
    except NotReadyError as problem:
        return {"ok": False, "message": str(problem)}
    except Exception as problem:
        logger.warning("A readiness check failed: %s", problem)
        if is_damage(problem):
            return {"ok": False, "message": DAMAGED}
        name = type(problem).__name__
        message = f"Does not answer ({name}). The log of the web process says more."
        return {"ok": False, "message": message}


def check_database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return "answers"


def check_redis() -> str:
    try:
        ping()
    except redis.TimeoutError as problem:
        raise NotReadyError(
            f"Redis does not answer within {ANSWER_SECONDS:g} s. "
            "It hangs, or this machine is overloaded."
        ) from problem
    return "answers"


def check_sessions() -> str:
    clock = session_clock()
    if clock is None:
        raise NotReadyError(
            "The database is empty. Run “.venv/bin/python manage.py migrate” "
            "and start the scheduler worker and beat."
        )
    if clock.paused:
        return "paused"
    if clock.last_at is None:
        if clock.failing:
            raise NotReadyError(f"Every session so far has failed. {_SEE_WHY}")
        why = _held_back_words() or "Are the scheduler worker and beat running?"
        raise NotReadyError(f"No session has run yet. {why}")
    age = (timezone.now() - clock.last_at).total_seconds()
    if age < -FUTURE_SECONDS:
        raise NotReadyError(future_words(clock.last_at))
    if age > READY_WITHIN_PERIODS * clock.period_seconds:
        why = _held_back_words() or "Is the scheduler worker running?"
        if clock.failing:
            why = f"Since then they fail. {_SEE_WHY}"
        raise NotReadyError(
            f"No scheduling for {age:.0f} s (normally every {clock.period_seconds:g} s). {why}"
        )
    return f"last session {max(0.0, age):.1f} s ago"


def _held_back_words() -> str:
    """Why sessions hold back, where a real cluster makes them; then the worker is not asked for."""
    facts = mirror_facts()
    if facts is None or may_decide():
        return ""
    if facts.rivals:
        return two_schedulers(facts)
    return "Sessions wait until the whole cluster is known and heard."


def check_cluster() -> str:
    """Only where a real one is mirrored."""
    facts = mirror_facts()
    if facts is None or facts.heard_at is None:
        why = "Is the watcher running?"
        if facts is not None and facts.problem:
            why = facts.problem
        raise NotReadyError(f"The cluster has not been heard yet. {why}")
    if not facts.is_heard:
        why = facts.problem or "Is the watcher running?"
        raise NotReadyError(f"The cluster was not heard for {facts.silent_seconds:.0f} s. {why}")
    if not facts.synced:
        why = facts.problem or "Sessions begin when all of it is known."
        raise NotReadyError(f"The cluster is being read. {why}")
    if facts.rivals:
        raise NotReadyError(two_schedulers(facts))
    return f"heard {facts.silent_seconds:.1f} s ago; mode {facts.mode}"


def two_schedulers(facts: MirrorFacts) -> str:
    names = ", ".join(facts.rivals)
    return (
        f"Volcano's scheduler runs, and places the pods of the same schedulerName ({names}). "
        "Nothing is placed here until it is stopped, "
        f"or until KUBERNETES_SCHEDULER_NAMES leaves out {names}."
    )


def future_words(ended_at: datetime) -> str:
    ahead = (ended_at - timezone.now()).total_seconds()
    time = f"{ended_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return (
        f"The last session is stamped {time}, {ahead:.0f} s in the future, and none has run since. "
        "Was the clock put back, or is the clock of another machine wrong?"
    )


CHECKS: dict[str, Callable[[], str]] = {
    "database": check_database,
    "redis": check_redis,
    "sessions": check_sessions,
}
