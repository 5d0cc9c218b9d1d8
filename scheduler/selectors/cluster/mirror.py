"""The Kubernetes cluster that is mirrored: whether it is heard, and since when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models.functions import Now

from scheduler.conf import conf, is_kubernetes, schedules_cluster
from scheduler.domain.taken_over import NOTHING, TakenOver
from scheduler.models import Mirror

HEARD_WITHIN = timedelta(seconds=10)
"""The watcher asks every few seconds. If it hears nothing for longer, something is wrong."""


@dataclass(frozen=True, slots=True)
class MirrorFacts:
    """`heard_at` is None before the first answer, `synced` False until everything was read once.

    `silent_seconds` is how long ago that was, by the clock of the database.
    `rivals` are those of our `schedulerName`s whose pods another scheduler places, too.
    """

    mode: str
    server: str = ""
    version: str = ""
    heard_at: datetime | None = None
    synced: bool = False
    problem: str = ""
    taken_over: TakenOver = NOTHING
    rivals: tuple[str, ...] = ()
    silent_seconds: float = 0.0

    @property
    def is_heard(self) -> bool:
        return self.heard_at is not None and self.silent_seconds <= HEARD_WITHIN.total_seconds()


def mirror_facts() -> MirrorFacts | None:
    """None where no cluster is mirrored."""
    if not is_kubernetes():
        return None
    row = Mirror.objects.annotate(asked_at=Now()).first()
    mode = conf().kubernetes.mode
    if row is None:
        return MirrorFacts(mode)
    return MirrorFacts(
        mode=mode,
        server=row.server,
        version=row.version,
        heard_at=row.heard_at,
        synced=row.synced_at is not None,
        problem=row.problem,
        taken_over=_taken_over(row),
        rivals=_rivals(row),
        silent_seconds=_seconds_between(row.heard_at, row.asked_at),
    )


def taken_over() -> TakenOver:
    """The new work that is ours beside another scheduler, as it was last heard."""
    row = Mirror.objects.only("taken_over").first()
    if row is None:
        return NOTHING
    return _taken_over(row)


def _taken_over(row: Mirror) -> TakenOver:
    found = row.taken_over
    return TakenOver(tuple(found.get("namespaces", ())), tuple(found.get("queues", ())))


def _rivals(row: Mirror) -> tuple[str, ...]:
    """Who only watches is nobody's rival."""
    if not schedules_cluster():
        return ()
    ours = conf().kubernetes.scheduler_names
    return tuple(name for name in row.other_schedulers if name in ours)


def _seconds_between(heard_at: datetime | None, now: datetime) -> float:
    if heard_at is None:
        return 0.0
    return max(0.0, (now - heard_at).total_seconds())


def is_volcano_opening_queues() -> bool:
    """Whether Volcano's controller manager opens and closes them, and writes their status."""
    return Mirror.objects.filter(queue_controller=Mirror.VOLCANO).exists()


def is_synced() -> bool:
    return Mirror.objects.exclude(synced_at=None).exists()


def may_decide() -> bool:
    """Whether so much is known of the cluster that sessions can judge it.

    Where they place pods, it must also have been heard just now, and nobody else may place the
    same pods: two schedulers would divide gangs and fill nodes twice.
    """
    if not is_kubernetes():
        return True
    if not schedules_cluster():
        return is_synced()
    row = Mirror.objects.exclude(synced_at=None).annotate(asked_at=Now()).first()
    if row is None or row.heard_at is None or _rivals(row):
        return False
    # A moment to come was written before the clock was put back.
    return abs(row.asked_at - row.heard_at) <= HEARD_WITHIN
