"""One scheduler at a time: a lease in the database, with a token that grows with each holder.

Whoever writes a session first locks the lease row and shows its token. A worker that slept past its
lease may go on if nobody took it meanwhile; where somebody did, the token is a newer one, and its
writes are refused.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType

from django.db import DatabaseError, connection, transaction
from django.db.models import DurationField, F, Q, QuerySet
from django.db.models.functions import Now

from scheduler.models import Lease
from scheduler.models.prepared import Prepared, PreparedUpdate, slot

logger = logging.getLogger(__name__)

SCHEDULER = "scheduler"
_RENEWALS = 4  # in the time of a lease: some of them may fail
_LONGEST = 10  # times the lease; one that lasts longer was written before the clock was put back
_RENEW_WITHIN = {"postgresql": "SET lock_timeout = '2s'", "sqlite": "PRAGMA busy_timeout = 2000"}


class LeaseLost(Exception):
    """Another worker holds the lease now."""


@dataclass(frozen=True, slots=True)
class Held:
    holder: str
    token: int
    taken_over: bool  # somebody else held it before


def acquire(
    holder: str,
    seconds: float,
    name: str = SCHEDULER,
    *,
    renewed: Held | None = None,
) -> Held | None:
    """Take or renew the lease; None while another holds it. The database's clock decides, not ours.

    `renewed` is what the holder had last: where that is still valid, one statement is enough.
    """
    until = Now() + timedelta(seconds=seconds)
    with transaction.atomic(savepoint=False):
        if renewed is not None and _prolong(renewed, seconds, name):
            return Held(renewed.holder, renewed.token, taken_over=False)
        mine = Lease.objects.filter(name=name, holder=holder)
        if mine.update(expires_at=until):
            return Held(holder, mine.values_list("token", flat=True).get(), taken_over=False)
        Lease.objects.get_or_create(name=name, defaults={"expires_at": Now()})
        before = Lease.objects.values_list("holder", flat=True).get(name=name)
        over = Q(expires_at__lte=Now()) | Q(
            expires_at__gt=Now() + timedelta(seconds=_LONGEST * seconds)
        )
        dead = Q(holder=before if is_known_dead(before) else "")
        if not Lease.objects.filter(over | dead, name=name).update(
            holder=holder, token=F("token") + 1, expires_at=until
        ):
            return None
        return Held(
            holder,
            Lease.objects.values_list("token", flat=True).get(name=name),
            taken_over=True,
        )


def valid(held: Held, name: str = SCHEDULER) -> QuerySet[Lease]:
    """The lease's row, if nobody has taken it since."""
    return Lease.objects.filter(name=name, holder=held.holder, token=held.token)


def _valid_with_slots() -> QuerySet[Lease]:
    return Lease.objects.filter(name=slot("name"), holder=slot("holder"), token=slot("token"))


_DURATION = DurationField()
_PROLONGED = PreparedUpdate(
    lambda: (_valid_with_slots(), {"expires_at": Now() + slot("seconds", _DURATION)})
)
_LOCKED = Prepared(
    lambda: _valid_with_slots().select_for_update().values_list("token"), keep_plan=True
)


def _prolong(held: Held, seconds: float, name: str) -> bool:
    duration = _DURATION.get_db_prep_value(timedelta(seconds=seconds), connection)
    return bool(_PROLONGED.run(name=name, holder=held.holder, token=held.token, seconds=duration))


def name_of_this_process() -> str:
    """A holder's name: host, process, and something of its own, for a container that starts again
    has the numbers of the one that died.
    """
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def is_known_dead(holder: str) -> bool:
    """A process of this machine that is no more need not be waited for.

    A mistake would do no harm: the token keeps its writes out.
    """
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
    """For work that takes long: hold it for so much longer.

    Raises `LeaseLost` when it was taken.
    """
    if not _prolong(held, seconds, name):
        raise LeaseLost(f"the lease of {held.holder} with token {held.token} was taken")


class Keeper:
    """Renews a lease beside the work, from a thread with a database connection of its own.

    with Keeper(held, 30) as keeper:
        read()
        keeper.check()  # asks no database
    """

    def __init__(self, held: Held, seconds: float, name: str = SCHEDULER) -> None:
        self._held = held
        self._seconds = seconds
        self._name = name
        self._is_over = threading.Event()
        self._is_lost = False
        self._thread = threading.Thread(target=self._keep_renewing, name="lease", daemon=True)

    def __enter__(self) -> Keeper:
        self._thread.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def check(self) -> None:
        """Raises `LeaseLost` when the last renewal found that it was taken."""
        if self._is_lost:
            raise LeaseLost(
                f"the lease of {self._held.holder} with token {self._held.token} was taken"
            )

    def _keep_renewing(self) -> None:
        try:
            while not self._is_lost and not self._is_over.wait(self._seconds / _RENEWALS):
                self._renew_once()
        finally:
            connection.close()

    def _renew_once(self) -> None:
        """Never waits for long: the work itself may hold the row, or all of SQLite, and then nobody
        else can take it either.
        """
        try:
            with connection.cursor() as cursor:
                cursor.execute(_RENEW_WITHIN[connection.vendor])
            renew(self._held, self._seconds, self._name)
        except LeaseLost:
            self._is_lost = True
        except DatabaseError as problem:
            logger.debug("the lease was not renewed this time: %s", problem)


def release(held: Held, name: str = SCHEDULER) -> None:
    """Give it back before its time, so that the next worker need not wait."""
    Lease.objects.filter(name=name, holder=held.holder, token=held.token).update(
        holder="", expires_at=Now()
    )


def assert_held(held: Held, name: str = SCHEDULER) -> None:
    """To be called first in the transaction that writes: nobody can take the lease until it ends.

    Raises `LeaseLost`.
    """
    if _LOCKED.row(name=name, holder=held.holder, token=held.token) is None:
        raise LeaseLost(f"the lease of {held.holder} with token {held.token} was taken")
