"""Queues of a real cluster are written to its API server; the mirror brings the change in.

One function sends, whoever asked. What the API server refuses becomes a `Rejected` that names the
queue and the field, so every door tells it as it tells any other refusal.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from django.db import connection

from scheduler.admission.violations import Rejected, Violation
from scheduler.clusters.kubernetes.client import Timeouts
from scheduler.clusters.kubernetes.credentials import CredentialsError
from scheduler.clusters.kubernetes.errors import ApiError, ServerError
from scheduler.clusters.kubernetes.queue_definition import VOLCANO_FIELDS
from scheduler.clusters.kubernetes.queue_writes import (
    ChangedMeanwhile,
    FieldDropped,
    QueueWrite,
    QueueWriter,
)
from scheduler.conf import is_kubernetes
from scheduler.models import Mirror, Queue
from scheduler.services.cluster.api_server import api_server
from scheduler.services.cluster.server_refusals import Attempt, ClusterAway, refusal_of_server

__all__ = [
    "ClusterAway",
    "Sent",
    "are_queues_in_cluster",
    "rehearsal",
    "send_queues",
    "shows_in_mirror",
]

MIRROR_SECONDS: Final = 2.0
_STEP_SECONDS: Final = 0.02
_TIMEOUTS: Final = Timeouts(connect=3.0, read=10.0)  # somebody waits at a page
_REHEARSAL: ContextVar[bool] = ContextVar("nothing is kept of what is written", default=False)


@dataclass(frozen=True, slots=True)
class Sent:
    """The resourceVersions of queues that were written ("" of those deleted), and what failed."""

    versions: Mapping[str, str] = field(default_factory=dict)
    failures: Mapping[str, Rejected] = field(default_factory=dict)


@contextmanager
def rehearsal(is_one: bool = True) -> Iterator[None]:
    """What is written inside will be rolled back, so nothing is sent to a cluster."""
    token = _REHEARSAL.set(is_one or _REHEARSAL.get())
    try:
        yield
    finally:
        _REHEARSAL.reset(token)


def are_queues_in_cluster() -> bool:
    """Whether a change of queues is sent to a real cluster."""
    return is_kubernetes() and not _REHEARSAL.get()


def send_queues(writes: Sequence[QueueWrite]) -> Sent:
    """Write them one after the other. One that is refused stops no other.

    While the API server is away nothing more is tried.
    """
    versions: dict[str, str] = {}
    failures: dict[str, Rejected] = {}
    away: ApiError | None = None
    for write in writes:
        if away is not None:
            failures[write.name] = refusal_of_server(_attempt(write), away)
            continue
        try:
            versions[write.name] = _writer().write(write)
        except (ApiError, ChangedMeanwhile, FieldDropped) as problem:
            failures[write.name] = _refusal(write, problem)
            if isinstance(problem, ServerError):
                away = problem
        except CredentialsError as problem:
            message = f"The queue {write.name} was not {_deed(write)}: {problem}"
            failures[write.name] = _attempt(write).away(message)
    return Sent(versions, failures)


def _writer() -> QueueWriter:
    client = api_server(_TIMEOUTS)
    mirror = Mirror.objects.first()
    if mirror is None:
        return QueueWriter(client, VOLCANO_FIELDS, volcano_decides=False)
    return QueueWriter(
        client,
        frozenset(mirror.queue_fields) or VOLCANO_FIELDS,
        volcano_decides=mirror.queue_controller == Mirror.VOLCANO,
    )


# What the API server refused, in words


def _deed(write: QueueWrite) -> str:
    if write.before is None:
        return "created"
    if write.after is None:
        return "deleted"
    return "changed"


def _refusal(write: QueueWrite, problem: Exception) -> Rejected:
    if isinstance(problem, ChangedMeanwhile):
        return _changed_meanwhile(problem)
    if isinstance(problem, FieldDropped):
        message = (
            f"The cluster's definition of queues does not know {problem.field}, so that field "
            f"of the queue {write.name} was not stored. Everything else was."
        )
        fix = "install Fumarole's definition: manage.py kubernetes install"
        return _attempt(write).rejected("field_not_stored", problem.field, message, fix)
    assert isinstance(problem, ApiError)
    return refusal_of_server(_attempt(write), problem)


def _changed_meanwhile(problem: ChangedMeanwhile) -> Rejected:
    name = problem.queue
    if problem.field == "metadata.uid":
        message = f"The queue {name} was deleted in the cluster and created again meanwhile."
    else:
        message = (
            f"{problem.field} of the queue {name} was changed in the cluster meanwhile: "
            f"it is {_shown(problem.theirs)} by now, and was {_shown(problem.ours)}. "
            "Nothing was written."
        )
    fix = "look at it again, then decide"
    violation = Violation("changed_in_cluster", name, problem.field, message, fix)
    return Rejected([violation], by_state=True)


def _shown(value: object) -> str:
    if value in (None, ""):
        return "not set"
    return str(value)


def _attempt(write: QueueWrite) -> Attempt:
    return Attempt("queue", write.name, _deed(write), write.name)


# The mirror

SENT_TO_CLUSTER: Final = (
    "It was sent to the cluster, and shows here as soon as the cluster has told it."
)


def shows_in_mirror(
    writes: Iterable[QueueWrite], versions: Mapping[str, str], seconds: float = MIRROR_SECONDS
) -> bool:
    """Wait a moment until the tables have what was written. False where that takes longer."""
    written = [write for write in writes if write.name in versions]
    if connection.in_atomic_block and connection.vendor == "sqlite":
        return _are_mirrored(written, versions)  # nobody else can write while this lasts
    deadline = time.monotonic() + seconds
    while not _are_mirrored(written, versions):
        if time.monotonic() > deadline:
            return False
        time.sleep(_STEP_SECONDS)
    return True


def _are_mirrored(writes: Iterable[QueueWrite], versions: Mapping[str, str]) -> bool:
    rows = Queue.objects.filter(name__in=list(versions))
    found: dict[str, tuple[int, str]] = {}
    for name, version, state in rows.values_list("name", "resource_version", "wish"):
        found[name] = (version, state)
    return all(_is_mirrored(write, versions[write.name], found.get(write.name)) for write in writes)


def _is_mirrored(write: QueueWrite, version: str, row: tuple[int, str] | None) -> bool:
    if write.after is None or row is None:
        return write.after is None and row is None
    return row[0] >= int(version) and row[1] == write.after.state.value
