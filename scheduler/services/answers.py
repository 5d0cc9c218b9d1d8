"""Answers kept for repeated requests: claimed before the work, filled in after it, forgotten after a day."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import IntegrityError, transaction
from django.utils import timezone

from scheduler.models import KeptAnswer
from scheduler.services import lease

KEPT_FOR = timedelta(hours=24)
_SLOWEST = timedelta(hours=1)
"""No request takes so long: a claim without an answer is that of a process that died where nobody here can see it."""


class OtherRequest(Exception):
    """The key was used for another request."""


class Busy(Exception):
    """The first request with this key is not answered yet."""


def claim(user: Any, key: str, digest: str) -> KeptAnswer | None:
    """None when this request is the first and to be carried out. One that is merely slow is never overtaken."""
    if _claimed(user, key, digest):
        return None
    kept = KeptAnswer.objects.filter(user=user, key=key).first()
    if kept is not None and not _is_over(kept):
        return _answered(kept, digest)
    if kept is not None:
        KeptAnswer.objects.filter(pk=kept.pk, status=kept.status).delete()
    if not _claimed(user, key, digest):  # another repeat was faster
        raise Busy
    return None


def _claimed(user: Any, key: str, digest: str) -> bool:
    try:
        with transaction.atomic():
            KeptAnswer.objects.create(user=user, key=key, digest=digest, worker=_this_process())
    except IntegrityError:
        return False
    return True


_names: dict[int, str] = {}


def _this_process() -> str:
    """One that was forked from another has a name of its own."""
    return _names.setdefault(os.getpid(), lease.name_of_this_process())


def _is_over(kept: KeptAnswer) -> bool:
    """Its time is up; or nobody is left who would answer it."""
    age = timezone.now() - kept.created_at
    return age > KEPT_FOR or (kept.status is None and (age > _SLOWEST or lease.is_known_dead(kept.worker)))


def _answered(kept: KeptAnswer, digest: str) -> KeptAnswer:
    if kept.digest != digest:
        raise OtherRequest
    if kept.status is None:
        raise Busy
    return kept


def keep(user: Any, key: str, *, status: int, headers: dict[str, str], body: Any) -> None:
    plain = json.loads(json.dumps(body, cls=DjangoJSONEncoder))
    mine = KeptAnswer.objects.filter(user=user, key=key, worker=_this_process())
    mine.update(status=status, headers=headers, body=plain)


def forget(user: Any, key: str) -> None:
    KeptAnswer.objects.filter(user=user, key=key, status=None, worker=_this_process()).delete()


def prune() -> None:
    KeptAnswer.objects.filter(created_at__lt=timezone.now() - KEPT_FOR).delete()
