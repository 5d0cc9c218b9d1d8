"""A month of a small cluster, made up from a seed: pods come, get nodes, end, and are evicted.

The test keeps its own record of what each pod held, and never looks at what was booked.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from scheduler.domain.resources import Resources
from scheduler.models import Eviction, Node, Pod, PodClass, PodGroup
from scheduler.services.jobs.pods import fresh_start
from tests.worlds import queue

START = datetime(2026, 9, 30, 22, 47, 11, 400_000, tzinfo=UTC)
SHAPES = (
    {"cpu": 1500, "memory": 3 * 2**30, "pods": 1},
    {"cpu": 250, "memory": 1000, "nvidia.com/gpu": 2000},
)

Held = Counter[tuple[str, str, str, str, str]]  # queue, namespace, owner, job, resource


@dataclass
class Month:
    """`held`, `waited` and `lost` are in base units × seconds; bytes count in whole Ki."""

    dice: random.Random
    held: Held = field(default_factory=Counter)
    waited: Held = field(default_factory=Counter)
    lost: Held = field(default_factory=Counter)
    groups: list[PodGroup] = field(default_factory=list)
    classes: list[PodClass] = field(default_factory=list)

    @classmethod
    def begin(cls, seed: int) -> Month:
        month = cls(random.Random(seed))
        queues = [queue(name) for name in ("red", "blue")]
        Node.objects.create(name="n1")
        for number, shape in enumerate(SHAPES):
            made = PodClass.objects.create(digest=str(number), requests=Resources(shape))
            month.classes.append(made)
        for number in range(8):
            month.groups.append(
                PodGroup.objects.create(
                    namespace=f"team-{number % 3}",
                    name=f"gang-{number}",
                    queue=queues[number % 2],
                    owner=("ann", "bob", "")[number % 3],
                )
            )
        return month

    def come(self, now: datetime) -> None:
        group = self.dice.choice(self.groups)
        pod = Pod.objects.create(
            namespace=group.namespace,
            name=f"pod-{uuid.UUID(int=self.dice.getrandbits(128))}",
            podgroup=group,
            pod_class=self.dice.choice(self.classes),
        )
        Pod.objects.filter(pk=pod.pk).update(created_at=now)

    def place(self, now: datetime) -> None:
        pod = self._one("Pending")
        if pod is not None:
            node = Node.objects.get(name="n1")
            Pod.objects.filter(pk=pod.pk).update(phase="Running", bound_at=now, node=node)

    def end(self, now: datetime) -> None:
        """It ended some time ago, and is heard of now."""
        pod = self._one("Running")
        if pod is None or pod.bound_at is None:
            return
        late = timedelta(seconds=self.dice.choice((0, 0, 3, 900, 7200)))
        ended = max(pod.bound_at, now - late)
        phase = self.dice.choice(("Succeeded", "Failed"))
        Pod.objects.filter(pk=pod.pk).update(phase=phase, finished_at=ended, message="")
        self._over(pod, ended)

    def evict(self, now: datetime) -> None:
        pod = self._one("Running")
        if pod is None:
            return
        Eviction.objects.create(
            session_number=1,
            pod_name=f"{pod.namespace}/{pod.name}",
            podgroup_name=str(pod.podgroup),
            queue_name=pod.podgroup.queue.name,
            action="reclaim",
            created_at=now,
        )
        fresh_start(Pod.objects.filter(pk=pod.pk), now)
        self._over(pod, now, evicted=True)

    def refuse(self, now: datetime) -> None:
        """Its node did not take it: it waits as before."""
        pod = self._one("Running")
        if pod is not None:
            Pod.objects.filter(pk=pod.pk).update(phase="Pending", node=None, bound_at=None)

    def delete(self, now: datetime) -> None:
        """One that is over, or one that waits or runs and is taken away."""
        pod = self._one("Succeeded", "Failed", "Pending", "Running")
        if pod is None:
            return
        if pod.phase in ("Pending", "Running"):
            Pod.objects.filter(pk=pod.pk).update(finished_at=now)
            self._over(pod, now)
        Pod.objects.filter(pk=pod.pk).delete()

    def settle(self, now: datetime) -> None:
        """All that still waits or runs counts up to now."""
        for pod in Pod.objects.filter(phase__in=("Pending", "Running")):
            self._over(pod, now)

    def _one(self, *phases: str) -> Pod | None:
        rows = Pod.objects.filter(phase__in=phases).order_by("pk")
        found = list(rows.select_related("podgroup__queue", "pod_class"))
        return self.dice.choice(found) if found else None

    def _over(self, pod: Pod, ended: datetime, *, evicted: bool = False) -> None:
        placed = pod.bound_at or ended
        self._add(self.waited, pod, pod.created_at, placed)
        self._add(self.held, pod, placed, ended)
        if evicted:
            self._add(self.lost, pod, placed, ended)

    def _add(self, to: Held, pod: Pod, start: datetime, end: datetime) -> None:
        seconds = max(0, int(end.timestamp()) - int(start.timestamp()))
        group = pod.podgroup
        for resource, amount in pod.pod_class.requests.items():
            if resource == "memory":
                amount = -(-amount // 1024)
            if resource != "pods" and seconds:
                key = (group.queue.name, group.namespace, group.owner, group.name, resource)
                to[key] += amount * seconds


def summed(held: Held, *places: int) -> dict[tuple[Any, ...], int]:
    """By some of the five names."""
    found: Counter[tuple[Any, ...]] = Counter()
    for key, value in held.items():
        found[tuple(key[place] for place in places)] += value
    return {key: value for key, value in found.items() if value}
