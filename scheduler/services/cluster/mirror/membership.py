"""Which pods have rows here, and in which podgroup. Knows no database.

A pod has a row if it is for one of our schedulers and its podgroup is known. All others only take
room. So a pod that comes before its podgroup is never lost sight of.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from scheduler.clusters.kubernetes.values import (
    MADE_GROUP_PREFIX,
    PodGroupObject,
    PodObject,
    PodPhase,
)
from scheduler.domain.queues import DEFAULT, ROOT
from scheduler.services.cluster.mirror.store import Store, group_key

BUILT_IN_QUEUES = frozenset({ROOT, DEFAULT})
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class MadeGroup:
    """The podgroup of pods that name none. It is not in the cluster."""

    key: str
    queue: str
    min_member: int
    priority: int
    created: datetime

    @property
    def namespace(self) -> str:
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        return self.key.partition("/")[2]


class Membership:
    def __init__(self, store: Store, scheduler_names: Collection[str]) -> None:
        self._store = store
        self._scheduler_names = frozenset(scheduler_names)
        self._made: dict[str, MadeGroup | None] = {}

    def look_again(self) -> None:
        """The store has changed."""
        self._made.clear()

    def has_row(self, pod: PodObject) -> bool:
        if not self.is_for_us(pod):
            return False
        key = group_key(pod)
        group = self._store.podgroup(key)
        if group is not None:
            return self.queue_of(group) is not None
        return self.made_group(key) is not None

    def is_for_us(self, pod: PodObject) -> bool:
        """Those that wait behind a gate are left to whoever put it there."""
        if pod.scheduler_name not in self._scheduler_names or pod.mirrored:
            return False
        waits = pod.phase is PodPhase.PENDING and not pod.node
        return not (waits and (pod.gates or pod.meta.deleted))

    def queue_of(self, group: PodGroupObject) -> str | None:
        """The name of its queue; None if there is no such queue."""
        return self._existing_queue(group.queue or self._queue_of_namespace(group.meta.namespace))

    def made_group(self, key: str) -> MadeGroup | None:
        """For pods of ours that name no podgroup; None where there is nothing to make."""
        if key not in self._made:
            self._made[key] = self._make_group(key)
        return self._made[key]

    def _make_group(self, key: str) -> MadeGroup | None:
        if not key.partition("/")[2].startswith(MADE_GROUP_PREFIX):
            return None
        members = [pod for pod in self._store.pods_of(key) if self._is_to_be_grouped(pod)]
        if not members:
            return None
        first = min(members, key=lambda pod: (pod.meta.created or _LONG_AGO, pod.meta.uid))
        queue = self._existing_queue(first.queue or self._queue_of_namespace(first.meta.namespace))
        if queue is None:
            return None
        return MadeGroup(
            key,
            queue,
            first.min_member or 1,
            first.priority,
            first.meta.created or _LONG_AGO,
        )

    def _is_to_be_grouped(self, pod: PodObject) -> bool:
        return not pod.group and not pod.native_group and self.is_for_us(pod)

    def _queue_of_namespace(self, name: str) -> str:
        namespace = self._store.namespace(name)
        if namespace is None:
            return DEFAULT
        return namespace.queue or DEFAULT

    def _existing_queue(self, name: str) -> str | None:
        if name in BUILT_IN_QUEUES or self._store.queue(name) is not None:
            return name
        return None
