"""Answers kept for repeated requests: claimed before the work, filled in after it, forgotten after a day."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import IntegrityError, transaction
from django.utils import timezone

from scheduler.models import KeptAnswer

KEPT_FOR = timedelta(hours=24)
_GIVEN_UP_AFTER = timedelta(minutes=2)
"""A claim without an answer is that of a process that died."""


class OtherRequest(Exception):
    """The key was used for another request."""


class Busy(Exception):
    """The first request with this key is not answered yet."""


def claim(user: Any, key: str, digest: str) -> KeptAnswer | None:
    now = timezone.now()
    KeptAnswer.objects.filter(user=user, key=key, created_at__lt=now - KEPT_FOR).delete()
    KeptAnswer.objects.filter(user=user, key=key, status=None, created_at__lt=now - _GIVEN_UP_AFTER).delete()
    try:
        with transaction.atomic():
            KeptAnswer.objects.create(user=user, key=key, digest=digest)
    except IntegrityError:
        return _earlier(user, key, digest)
    return None


def _earlier(user: Any, key: str, digest: str) -> KeptAnswer:
    kept = KeptAnswer.objects.filter(user=user, key=key).first()
    if kept is None:
        raise Busy
    if kept.digest != digest:
        raise OtherRequest
    if kept.status is None:
        raise Busy
    return kept


def keep(user: Any, key: str, *, status: int, headers: dict[str, str], body: Any) -> None:
    plain = json.loads(json.dumps(body, cls=DjangoJSONEncoder))
    KeptAnswer.objects.filter(user=user, key=key).update(status=status, headers=headers, body=plain)


def forget(user: Any, key: str) -> None:
    KeptAnswer.objects.filter(user=user, key=key, status=None).delete()


def prune() -> None:
    KeptAnswer.objects.filter(created_at__lt=timezone.now() - KEPT_FOR).delete()
