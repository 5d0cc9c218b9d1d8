"""Which pods have rows here, and in which podgroup. Knows no database.

A pod has a row if it is for one of our schedulers and its podgroup is known. All others only take
room. So a pod that comes before its podgroup is never lost sight of. Jobs and podgroups of which
all is for another scheduler have no rows either: that they wait, or run, is not ours to say.

A job has a podgroup as long as it is in the cluster: Volcano's controller makes one after the job,
and deletes it when the job ends.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from scheduler.clusters.kubernetes.gates import only_queue_holds
from scheduler.clusters.kubernetes.values import (
    MADE_GROUP_PREFIX,
    JobObject,
    PodGroupObject,
    PodObject,
    PodPhase,
)
from scheduler.domain.native_groups import shown_beside_namesake
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


@dataclass(frozen=True, slots=True)
class KnownGroup:
    """A podgroup that is to have a row, and what it follows from.

    `uid` finds its row. `name` is what it is called here: a job's own has the name of the job.
    """

    key: str
    uid: str
    name: str
    queue: str
    podgroup: PodGroupObject | None = None
    job: JobObject | None = None
    made: MadeGroup | None = None


class Membership:
    def __init__(
        self, store: Store, scheduler_names: Collection[str], *, schedules: bool = False
    ) -> None:
        """With `schedules` pods are placed here, so the gate of queues is ours to open."""
        self._store = store
        self._schedules = schedules
        self._scheduler_names = frozenset(scheduler_names)
        self._known: dict[str, KnownGroup | None] = {}

    def look_again(self) -> None:
        """The store has changed."""
        self._known.clear()

    def has_row(self, pod: PodObject) -> bool:
        return self.is_for_us(pod) and self.group(group_key(pod)) is not None

    def is_for_us(self, pod: PodObject) -> bool:
        """Those that wait behind a gate are left to whoever put it there."""
        if pod.scheduler_name not in self._scheduler_names or pod.mirrored:
            return False
        waits = pod.phase is PodPhase.PENDING and not pod.node
        return not (waits and (self._is_held(pod) or pod.meta.deleted))

    def _is_held(self, pod: PodObject) -> bool:
        if self._schedules and only_queue_holds(pod.gates):
            return False
        return bool(pod.gates)

    def is_of_others(self, job: JobObject) -> bool:
        """Whether another scheduler places all of it. One that names none may be anybody's."""
        name = job.job.scheduler_name
        if not name or name in self._scheduler_names:
            return False
        return not self._has_pod_for_us(job.group_key)

    def _has_pod_for_us(self, key: str) -> bool:
        return any(pod.scheduler_name in self._scheduler_names for pod in self._store.pods_of(key))

    def group(self, key: str) -> KnownGroup | None:
        """What pods that name this podgroup belong to; None where it is to have no row."""
        if key not in self._known:
            self._known[key] = self._find_group(key)
        return self._known[key]

    def _find_group(self, key: str) -> KnownGroup | None:
        podgroup = self._store.podgroup(key)
        job = self._job_with(key, podgroup)
        if job is not None:
            return self._group_of_job(key, job, podgroup)
        if podgroup is not None and podgroup.is_native:
            return self._native_group(key, podgroup)
        if podgroup is not None:
            if self._store.pods_of(key) and not self._has_pod_for_us(key):
                return None
            queue = self._queue_of(podgroup)
            if queue is None:
                return None
            return KnownGroup(key, podgroup.meta.uid, podgroup.meta.name, queue, podgroup)
        made = self._make_group(key)
        if made is None:
            return None
        return KnownGroup(key, key, made.name, made.queue, made=made)

    # Podgroups of jobs

    def _job_with(self, key: str, podgroup: PodGroupObject | None) -> JobObject | None:
        """The job whose own podgroup has this key, even if the object is gone."""
        if podgroup is None:
            job = self._store.job_of_group(key)
            if job is None or self._own_podgroup(job) is not None:
                return None
            return job
        owner = podgroup.meta.owner
        job = None
        if owner is not None:
            job = self._store.job(owner.uid)
        if job is None or self._own_podgroup(job) is not podgroup:
            return None
        return job

    def _own_podgroup(self, job: JobObject) -> PodGroupObject | None:
        """Earlier versions of Volcano gave it the name of the job."""
        for key in (job.group_key, job.meta.key):
            podgroup = self._store.podgroup(key)
            if podgroup is None or podgroup.meta.owner is None:
                continue
            if podgroup.meta.owner.uid == job.meta.uid:
                return podgroup
        return None

    def _group_of_job(
        self, key: str, job: JobObject, podgroup: PodGroupObject | None
    ) -> KnownGroup | None:
        if self.is_of_others(job):
            return None
        queue = self._existing_queue(job.job.queue or DEFAULT)
        if podgroup is not None:
            queue = self._queue_of(podgroup)
        if queue is None:
            return None
        name = self._name_for_job(key, job)
        return KnownGroup(key, job.meta.uid, name, queue, podgroup, job)

    def _name_for_job(self, key: str, job: JobObject) -> str:
        """The name of the job, unless another podgroup has it in the cluster."""
        if key == job.meta.key or self.group(job.meta.key) is None:
            return job.meta.name
        return key.partition("/")[2]

    def _queue_of(self, group: PodGroupObject) -> str | None:
        """The name of its queue; None if there is no such queue."""
        return self._existing_queue(group.queue or self._queue_of_namespace(group.meta.namespace))

    # Podgroups of Kubernetes itself

    def _native_group(self, key: str, podgroup: PodGroupObject) -> KnownGroup | None:
        """None for one that has no pods for us: it is another scheduler's."""
        first = self.first_pod(key)
        if first is None:
            return None
        asked = podgroup.queue or first.queue or self._queue_of_namespace(podgroup.meta.namespace)
        queue = self._existing_queue(asked)
        if queue is None:
            return None
        name = podgroup.meta.name
        if self._is_name_taken(podgroup.meta.key):
            name = shown_beside_namesake(name, podgroup.meta.uid)
        return KnownGroup(key, podgroup.meta.uid, name, queue, podgroup)

    def _is_name_taken(self, key: str) -> bool:
        return self.group(key) is not None or self._store.job_named(key) is not None

    def first_pod(self, key: str) -> PodObject | None:
        """The oldest pod of this podgroup that is for us. It speaks for all of them."""
        members = [pod for pod in self._store.pods_of(key) if self.is_for_us(pod)]
        if not members:
            return None
        return min(members, key=_age)

    # Podgroups of pods that name none

    def _make_group(self, key: str) -> MadeGroup | None:
        if not key.partition("/")[2].startswith(MADE_GROUP_PREFIX):
            return None
        members = [pod for pod in self._store.pods_of(key) if self._is_to_be_grouped(pod)]
        if not members:
            return None
        first = min(members, key=_age)
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


def _age(pod: PodObject) -> tuple[datetime, str]:
    return pod.meta.created or _LONG_AGO, pod.meta.uid
