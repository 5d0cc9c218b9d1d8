"""Answers kept for repeated requests.

The claim, the deed and its answer are one transaction: all of it is there, or nothing.

So a request that failed, or whose process died, leaves no claim behind, and one that was answered
was carried out once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import IntegrityError, OperationalError, connection, transaction
from django.utils import timezone

from scheduler.models import KeptAnswer

KEPT_FOR = timedelta(hours=24)
PATIENCE = timedelta(seconds=5)
"""A repeat that comes while the first is still being worked on waits so long for its answer."""


class OtherRequest(Exception):
    """The key was used for another request."""


class Busy(Exception):
    """The first request with this key is not answered yet."""


def claim(user: Any, key: str, digest: str) -> KeptAnswer | None:
    """None when this request is the first and to be carried out, in this transaction.

    Raises `OtherRequest`, `Busy`.
    """
    assert connection.in_atomic_block
    kept = _kept_answer(user, key)
    if kept is None and _is_claimed_now(user, key, digest):
        return None
    kept = kept or _kept_answer(user, key)
    if kept is None:  # another was faster, and undone
        raise Busy
    return _same_request(kept, digest)


def note(user: Any, key: str, digest: str) -> None:
    """Say what this key is used for, where the parts of a request are claimed one by one.

    Raises `OtherRequest`.
    """
    with transaction.atomic():
        kept = claim(user, key, digest)
        if kept is not None and kept.status is not None:
            raise OtherRequest


def _kept_answer(user: Any, key: str) -> KeptAnswer | None:
    kept = KeptAnswer.objects.filter(user=user, key=key).first()
    if kept is not None and timezone.now() - kept.created_at > KEPT_FOR:
        kept.delete()
        return None
    return kept


def _is_claimed_now(user: Any, key: str, digest: str) -> bool:
    """PostgreSQL lets a second one wait here until the first has ended, in one way or the other.

    SQLite before it begins.
    """
    try:
        with transaction.atomic(), _wait_for_lock():
            KeptAnswer.objects.create(user=user, key=key, digest=digest)
    except IntegrityError:
        return False
    except OperationalError as problem:
        if getattr(problem.__cause__, "sqlstate", "") == _LOCK_NOT_AVAILABLE:
            raise Busy from problem
        raise
    return True


_LOCK_NOT_AVAILABLE = "55P03"


@contextmanager
def _wait_for_lock() -> Iterator[None]:
    """Undone with the savepoint where the wait was in vain, and by hand where it was not."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout')")
        (usual,) = cursor.fetchone()
        cursor.execute(
            "SELECT set_config('lock_timeout', %s, true)",
            [f"{int(PATIENCE.total_seconds() * 1000)}ms"],
        )
        yield
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [usual])


def _same_request(kept: KeptAnswer, digest: str) -> KeptAnswer:
    if kept.digest != digest:
        raise OtherRequest
    return kept


def keep(user: Any, key: str, *, status: int, headers: dict[str, str], body: Any) -> None:
    """The answer to what was claimed, in the same transaction."""
    plain = json.loads(json.dumps(body, cls=DjangoJSONEncoder))
    KeptAnswer.objects.filter(user=user, key=key).update(status=status, headers=headers, body=plain)


def prune() -> None:
    KeptAnswer.objects.filter(created_at__lt=timezone.now() - KEPT_FOR).delete()
