"""The row that says how well the cluster is heard. Pages and sessions read it.

Times are those of the database: the watcher's clock may differ from that of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db.models.functions import Now

from scheduler import notify
from scheduler.clusters.kubernetes.queue_definition import VOLCANO_FIELDS
from scheduler.domain.taken_over import NOTHING, TakenOver
from scheduler.models import ClusterState, Mirror

LONGEST_NAME = 63


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What is ours of the new work, and the `schedulerName`s that another scheduler serves."""

    taken_over: TakenOver = NOTHING
    other_schedulers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """The keys that a queue's `spec` may have, and who opens and closes queues.

    `jobs` is who makes the pods of jobs, "" for nobody.
    """

    fields: frozenset[str] = VOLCANO_FIELDS
    controller: str = Mirror.FUMAROLE
    jobs: str = ""


class OtherCluster(Exception):
    """The database mirrors another cluster than the one that answers."""

    def __init__(self, server: str, known: str) -> None:
        super().__init__(
            f"The API server {server} is that of another cluster: "
            f"this database mirrors the cluster at {known}. "
            "Use another database, or another folder: FUMAROLE_VAR=/path/to/folder"
        )


def begin(
    *,
    cluster_uid: str,
    server: str,
    version: str,
    name: str,
    queues: QueueFacts = QueueFacts(),  # noqa: B008  (frozen)
) -> None:
    """A watcher has reached the cluster and reads it anew. Raises `OtherCluster`."""
    mirror, _ = Mirror.objects.get_or_create(pk=1)
    if mirror.cluster_uid and mirror.cluster_uid != cluster_uid:
        raise OtherCluster(server, mirror.server)
    Mirror.objects.filter(pk=1).update(
        cluster_uid=cluster_uid,
        server=server[:255],
        version=version[:64],
        queue_fields=sorted(queues.fields),
        queue_controller=queues.controller,
        job_controller=queues.jobs,
        heard_at=Now(),
        synced_at=None,
        problem="",
    )
    ClusterState.objects.filter(pk=1).update(name=name[:LONGEST_NAME])
    notify.cluster_changed()


def note_written(positions: Mapping[str, str]) -> None:
    """In the transaction that wrote everything up to these versions."""
    Mirror.objects.filter(pk=1).update(positions=dict(positions), heard_at=Now())
    Mirror.objects.filter(pk=1, synced_at=None).update(synced_at=Now())


def note_heard(seconds_ago: float, problem: str = "") -> None:
    """The API server answers, whether or not anything has changed. It may still refuse a part."""
    at = Now() - timedelta(seconds=seconds_ago)
    Mirror.objects.filter(pk=1).update(heard_at=at, problem=problem[:512])


def note_neighbours(found: Neighbours) -> None:
    """As the cluster is now."""
    taken = found.taken_over
    Mirror.objects.filter(pk=1).update(
        taken_over={"namespaces": list(taken.namespaces), "queues": list(taken.queues)},
        other_schedulers=sorted(found.other_schedulers),
    )
    notify.cluster_changed()


def note_problem(problem: str) -> None:
    """It does not answer, or it cannot be mirrored."""
    Mirror.objects.get_or_create(pk=1)
    Mirror.objects.filter(pk=1).update(problem=problem[:512])
    notify.cluster_changed()
