"""Queues and podgroups in the database, for tests of what is done to queues."""

from __future__ import annotations

from typing import Any

from scheduler.domain.lifecycle import derive
from scheduler.models import Job, PodGroup, Queue
from scheduler.services.queues.create_update import create_queue
from scheduler.services.queues.states import read_tree, refresh_states


def queue(name: str, parent: str = "root", **spec: Any) -> Queue:
    return create_queue({"metadata": {"name": name}, "spec": {"parent": parent, **spec}}).queue


def podgroup(name: str, in_queue: str, phase: str = "Pending", owner: str = "ann") -> PodGroup:
    """A gang from outside, without a job.

    Put there without asking, as data that was there before.
    """
    return PodGroup.objects.create(
        namespace="ns",
        name=name,
        queue=Queue.objects.get(name=in_queue),
        phase=phase,
        owner=owner,
    )


def job(
    name: str,
    in_queue: str,
    phase: str = "Running",
    podgroup_phase: str = "Running",
    owner: str = "ann",
) -> Job:
    row = Job.objects.create(
        namespace="ns",
        name=name,
        queue=Queue.objects.get(name=in_queue),
        phase=phase,
        min_available=1,
        owner=owner,
        tasks=[],
    )
    PodGroup.objects.create(
        namespace="ns",
        name=name,
        queue=row.queue,
        phase=podgroup_phase,
        job=row,
        owner=owner,
    )
    return row


def complete(*names: str) -> None:
    PodGroup.objects.filter(name__in=names).update(phase="Completed")
    refresh_states()


def states(*names: str) -> dict[str, str]:
    rows = dict(Queue.objects.values_list("name", "state"))
    return {name: rows[name] for name in names}


def assert_states_are_derived() -> None:
    """What is stored is what the pure function says, for every queue."""
    stored = read_tree()
    live: dict[str, int] = {}
    for name in PodGroup.objects.exclude(phase="Completed").values_list("queue__name", flat=True):
        live[name] = live.get(name, 0) + 1
    assert dict(stored.standings) == derive(stored.tree, live, stored.unknown)
