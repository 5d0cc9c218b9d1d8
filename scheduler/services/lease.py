"""One scheduler at a time: a lease in the database, with a token that grows with each holder.

Whoever writes a session first locks the lease row and shows its token. A worker that slept past its lease finds either a newer token or
its own expired one, and can not write.
"""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from scheduler.models import Lease

SCHEDULER = "scheduler"


class LeaseLost(Exception):
    """Another worker holds the lease now, or it ran out."""


@dataclass(frozen=True, slots=True)
class Held:
    holder: str
    token: int
    taken_over: bool  # somebody else held it before


def acquire(holder: str, seconds: float, name: str = SCHEDULER, *, renewed: Held | None = None) -> Held | None:
    """Take or renew the lease; None while another holds it. The database's clock decides, not ours.

    `renewed` is what the holder had last: where that is still valid, one statement is enough.
    """
    until = Now() + timedelta(seconds=seconds)
    with transaction.atomic():
        if renewed is not None and valid(renewed, name).update(expires_at=until):
            return Held(renewed.holder, renewed.token, taken_over=False)
        mine = Lease.objects.filter(name=name, holder=holder, expires_at__gt=Now())
        if mine.update(expires_at=until):
            return Held(holder, mine.values_list("token", flat=True).get(), taken_over=False)
        Lease.objects.get_or_create(name=name, defaults={"expires_at": Now()})
        before = Lease.objects.values_list("holder", flat=True).get(name=name)
        free = Q(expires_at__lte=Now()) | Q(holder=before if is_known_dead(before) else "")
        if not Lease.objects.filter(free, name=name).update(holder=holder, token=F("token") + 1, expires_at=until):
            return None
        return Held(holder, Lease.objects.values_list("token", flat=True).get(name=name), taken_over=True)


def valid(held: Held, name: str = SCHEDULER) -> QuerySet[Lease]:
    """The lease's row, if this holder still has it."""
    return Lease.objects.filter(name=name, holder=held.holder, token=held.token, expires_at__gt=Now())


def name_of_this_process() -> str:
    """A holder's name: host, process, and something of its own, for a container that starts again has the numbers of the one that died."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def is_known_dead(holder: str) -> bool:
    """A process of this machine that is no more need not be waited for. A mistake would do no harm: the token keeps its writes out."""
    host, _, rest = holder.partition(":")
    process = rest.partition(":")[0]
    if host != socket.gethostname() or not process.isdecimal():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False


def renew(held: Held, seconds: float, name: str = SCHEDULER) -> None:
    """For work that takes long: hold it for so much longer. Raises `LeaseLost` when it ran out or was taken."""
    if not valid(held, name).update(expires_at=Now() + timedelta(seconds=seconds)):
        raise LeaseLost(f"the lease of {held.holder} with token {held.token} ran out")


def release(held: Held, name: str = SCHEDULER) -> None:
    """Give it back before its time, so that the next worker need not wait."""
    Lease.objects.filter(name=name, holder=held.holder, token=held.token).update(holder="", expires_at=Now())


def assert_held(held: Held, name: str = SCHEDULER) -> None:
    """To be called first in the transaction that writes: nobody can take the lease until it ends. Raises `LeaseLost`."""
    if valid(held, name).select_for_update().values_list("token", flat=True).first() is None:
        raise LeaseLost(f"the lease of {held.holder} with token {held.token} is no longer valid")
