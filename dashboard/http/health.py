"""/healthz: the process answers. /readyz: it can do its work, or which part cannot; what fails beside sessions is only told."""

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
from scheduler.outages import is_damage
from scheduler.selectors.cluster.summary import failing_parts, session_clock

logger = logging.getLogger(__name__)

READY_WITHIN_PERIODS = 10
FUTURE_SECONDS = 10.0  # clocks of two machines may differ a little

OK = "ok"
_TOLD = "The page of sessions and the log of the scheduler worker say why."


class NotReadyError(Exception):
    """Why a part cannot do its work; the message is the sentence that the answer carries."""


@never_cache
@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    return JsonResponse({"status": OK})


@never_cache
@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    checks = {name: outcome(check) for name, check in CHECKS.items()}
    ready = all(outcome["ok"] for outcome in checks.values())
    failing = _failing_parts() if ready else {}
    status = "not ready" if not ready else "impaired" if failing else OK
    return JsonResponse(
        {"status": status, "checks": {**checks, **failing}}, status=200 if ready else 503
    )


def _failing_parts() -> dict[str, dict[str, object]]:
    """Sessions go on, so it stays ready; but somebody should look."""
    return {
        name: {
            "ok": False,
            "message": f"Fails since {since:%Y-%m-%d %H:%M:%S} UTC. The log of the worker says why.",
        }
        for name, since in failing_parts().items()
    }


def outcome(check: Callable[[], str]) -> dict[str, object]:
    try:
        return {"ok": True, "message": check()}
    except NotReadyError as problem:
        return {"ok": False, "message": str(problem)}
    except Exception as problem:
        logger.warning("A readiness check failed: %s", problem)
        if is_damage(problem):
            return {"ok": False, "message": DAMAGED}
        return {
            "ok": False,
            "message": f"Does not answer ({type(problem).__name__}). The log of the web process says more.",
        }


def check_database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return "answers"


def check_redis() -> str:
    try:
        ping()
    except redis.TimeoutError as problem:
        raise NotReadyError(
            f"Redis does not answer within {ANSWER_SECONDS:g} s. It hangs, or this machine is overloaded."
        ) from problem
    return "answers"


def check_sessions() -> str:
    clock = session_clock()
    if clock is None:
        raise NotReadyError(
            "The database is empty. Run “.venv/bin/python manage.py migrate” and start the scheduler worker and beat."
        )
    if clock.paused:
        return "paused"
    if clock.last_at is None:
        never = "No session has run yet. Are the scheduler worker and beat running?"
        raise NotReadyError(f"Every session so far has failed. {_TOLD}" if clock.failing else never)
    age = (timezone.now() - clock.last_at).total_seconds()
    if age < -FUTURE_SECONDS:
        raise NotReadyError(future_words(clock.last_at))
    if age > READY_WITHIN_PERIODS * clock.period_seconds:
        why = (
            f"Since then they fail. {_TOLD}"
            if clock.failing
            else "Is the scheduler worker running?"
        )
        raise NotReadyError(
            f"No scheduling for {age:.0f} s (normally every {clock.period_seconds:g} s). {why}"
        )
    return f"last session {max(0.0, age):.1f} s ago"


def future_words(stamp: datetime) -> str:
    ahead = (stamp - timezone.now()).total_seconds()
    return (
        f"The last session is stamped {stamp.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, {ahead:.0f} s in the future, and none has run since. "
        "Was the clock put back, or is the clock of another machine wrong?"
    )


CHECKS: dict[str, Callable[[], str]] = {
    "database": check_database,
    "redis": check_redis,
    "sessions": check_sessions,
}
