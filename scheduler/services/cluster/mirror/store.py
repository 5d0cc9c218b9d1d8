"""What has been heard of the cluster, and which of it is still to be written. Knows no database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from scheduler.clusters.kubernetes.resources import (
    CLAIMS,
    DISRUPTION_BUDGETS,
    JOBS,
    NAMESPACES,
    NATIVE_PODGROUPS,
    NODES,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    VOLUMES,
    Resource,
)
from scheduler.clusters.kubernetes.values import (
    ClaimObject,
    DisruptionBudgetObject,
    JobObject,
    NamespaceObject,
    NodeObject,
    PersistentVolumeObject,
    PodGroupObject,
    PodObject,
    PriorityClassObject,
    QueueObject,
)
from scheduler.clusters.kubernetes.watch_events import (
    Bookmark,
    Changed,
    Listed,
    Lost,
    Removed,
    Unreadable,
    WatchEvent,
)
from scheduler.domain.native_groups import native_name
from scheduler.services.cluster.mirror.index import Index

Event = WatchEvent[Any]


class Objects:
    """All objects of one resource: by uid, and by namespace/name."""

    def __init__(self) -> None:
        self.by_uid: dict[str, Any] = {}
        self.by_key: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self.by_uid)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.by_uid.values())

    def put(self, value: Any) -> Any | None:
        """What was known before under this uid."""
        before = self.by_uid.get(value.meta.uid)
        self.by_uid[value.meta.uid] = value
        self.by_key[value.meta.key] = value
        return before

    def drop(self, uid: str) -> Any | None:
        """What was known. Another object of the same name stays."""
        if uid not in self.by_uid:
            return None
        before = self.by_uid.pop(uid)
        key = before.meta.key
        if self.by_key.get(key) is before:
            del self.by_key[key]
        return before


class Store:
    """`take` hears an event, `pending` says which objects have changed since it was last cleared.

    Pods can also be found by their podgroup and by their node, and what names a queue by its name.
    """

    def __init__(self) -> None:
        self._objects: dict[Resource, Objects] = defaultdict(Objects)
        self.pods_by_group: Index[str] = Index()
        self.pods_by_node: Index[str] = Index()
        self.pods_by_namespace: Index[str] = Index()
        self.pods_by_claim: Index[str] = Index()
        self._claims_by_volume: Index[str] = Index()
        # claims whose pods have to be looked at: they or their volumes have changed
        self.pending_claims: set[str] = set()
        self._budgets_by_namespace: Index[str] = Index()
        self._uids_by_queue: dict[Resource, Index[str]] = {
            PODGROUPS: Index(),
            NATIVE_PODGROUPS: Index(),
            JOBS: Index(),
            PODS: Index(),
        }
        self.pending: dict[Resource, set[str]] = defaultdict(set)
        # names that are to be looked at again, where the object itself is gone
        self.pending_keys: dict[Resource, set[str]] = defaultdict(set)
        # podgroups that pods came to, or left
        self.pending_groups: set[str] = set()
        # namespaces whose podgroups have another queue now, if they name none
        self.pending_queues_of_namespaces: set[str] = set()
        self._jobs_by_group: dict[str, JobObject] = {}
        self.positions: dict[str, str] = {}
        self.listed: set[Resource] = set()

    # Questions

    def objects(self, resource: Resource) -> Objects:
        return self._objects[resource]

    def node(self, name: str) -> NodeObject | None:
        return self._objects[NODES].by_key.get(name)

    def queue(self, name: str) -> QueueObject | None:
        return self._objects[QUEUES].by_key.get(name)

    def namespace(self, name: str) -> NamespaceObject | None:
        return self._objects[NAMESPACES].by_key.get(name)

    def priority_class(self, name: str) -> PriorityClassObject | None:
        return self._objects[PRIORITY_CLASSES].by_key.get(name)

    def podgroup(self, key: str) -> PodGroupObject | None:
        """Of either kind, by the key that its pods have."""
        namespace, _, name = key.partition("/")
        if native := native_name(name):
            return self._objects[NATIVE_PODGROUPS].by_key.get(f"{namespace}/{native}")
        return self._objects[PODGROUPS].by_key.get(key)

    def podgroups(self) -> Iterator[PodGroupObject]:
        """Of both kinds."""
        yield from self._objects[PODGROUPS]
        yield from self._objects[NATIVE_PODGROUPS]

    def job(self, uid: str) -> JobObject | None:
        return self._objects[JOBS].by_uid.get(uid)

    def job_named(self, key: str) -> JobObject | None:
        return self._objects[JOBS].by_key.get(key)

    def job_of_group(self, key: str) -> JobObject | None:
        """The job whose podgroup has this name, whether or not there is such a podgroup."""
        return self._jobs_by_group.get(key)

    def budget(self, uid: str) -> DisruptionBudgetObject | None:
        return self._objects[DISRUPTION_BUDGETS].by_uid.get(uid)

    def budgets_in(self, namespace: str) -> list[DisruptionBudgetObject]:
        known = self._objects[DISRUPTION_BUDGETS].by_uid
        return [known[uid] for uid in self._budgets_by_namespace.members(namespace)]

    def claim(self, key: str) -> ClaimObject | None:
        return self._objects[CLAIMS].by_key.get(key)

    def volume(self, name: str) -> PersistentVolumeObject | None:
        return self._objects[VOLUMES].by_key.get(name)

    def pod(self, uid: str) -> PodObject | None:
        return self._objects[PODS].by_uid.get(uid)

    def pods_of(self, group_key: str) -> list[PodObject]:
        known = self._objects[PODS].by_uid
        return [known[uid] for uid in self.pods_by_group.members(group_key)]

    def naming_queue(self, resource: Resource, queue: str) -> list[Any]:
        """Podgroups, jobs or pods that name this queue; "" gives those that name none."""
        known = self._objects[resource].by_uid
        return [known[uid] for uid in self._uids_by_queue[resource].members(queue)]

    @property
    def has_pending(self) -> bool:
        return any(self.pending.values()) or any(self.pending_keys.values())

    # News

    def take(self, event: Event) -> None:
        match event:
            case Listed():
                self._take_all(event.resource, event.values)
                self.listed.add(event.resource)
            case Changed():
                self._put(event.resource, event.value)
            case Removed():
                self._drop(event.resource, event.value.meta.uid)
            case Bookmark():
                pass
            case Lost() | Unreadable():
                return
        self.positions[event.resource.name] = event.resource_version

    def _take_all(self, resource: Resource, values: Iterable[Any]) -> None:
        """What is not in the list is gone."""
        there = set()
        for value in values:
            there.add(value.meta.uid)
            self._put(resource, value)
        for uid in self._objects[resource].by_uid.keys() - there:
            self._drop(resource, uid)

    def _put(self, resource: Resource, value: Any) -> None:
        before = self._objects[resource].put(value)
        if before == value:
            return
        self.touch(resource, value)
        if before is not None:
            self._unindex(resource, before)
        self._index(resource, value)

    def _drop(self, resource: Resource, uid: str) -> None:
        before = self._objects[resource].drop(uid)
        if before is None:
            return
        self.touch(resource, before)
        self._unindex(resource, before)

    def touch(self, resource: Resource, value: Any) -> None:
        """It is to be written, or removed if it is gone."""
        self.pending[resource].add(value.meta.uid)
        self.pending_keys[resource].add(value.meta.key)

    def touch_everything(self) -> None:
        """The database may hold anything: compare all of it."""
        for resource, objects in self._objects.items():
            for value in objects:
                self.touch(resource, value)
        self.pending_groups.update(self.pods_by_group.values())

    def clear_pending(self) -> None:
        self.pending.clear()
        self.pending_keys.clear()
        self.pending_groups.clear()
        self.pending_queues_of_namespaces.clear()
        self.pending_claims.clear()

    def _index(self, resource: Resource, value: Any) -> None:
        if resource in self._uids_by_queue:
            self._uids_by_queue[resource].add(_named_queue(value), value.meta.uid)
        if resource is PODS:
            self.pending_groups.add(group_key(value))
            self.pods_by_group.add(group_key(value), value.meta.uid)
            self.pods_by_node.add(value.node, value.meta.uid)
            self.pods_by_namespace.add(value.meta.namespace, value.meta.uid)
            for claim in value.claims:
                self.pods_by_claim.add(f"{value.meta.namespace}/{claim}", value.meta.uid)
        elif resource is CLAIMS:
            self._claims_by_volume.add(value.volume, value.meta.key)
            self.pending_claims.add(value.meta.key)
        elif resource is VOLUMES:
            self.pending_claims.update(self._claims_by_volume.members(value.meta.name))
        elif resource is DISRUPTION_BUDGETS:
            self._budgets_by_namespace.add(value.meta.namespace, value.meta.uid)
        elif resource is JOBS:
            self._jobs_by_group[value.group_key] = value
        elif resource is NAMESPACES and value.queue:
            self.pending_queues_of_namespaces.add(value.meta.name)

    def _unindex(self, resource: Resource, value: Any) -> None:
        if resource in self._uids_by_queue:
            self._uids_by_queue[resource].discard(_named_queue(value), value.meta.uid)
        if resource is PODS:
            self.pending_groups.add(group_key(value))
            self.pods_by_group.discard(group_key(value), value.meta.uid)
            self.pods_by_node.discard(value.node, value.meta.uid)
            self.pods_by_namespace.discard(value.meta.namespace, value.meta.uid)
            for claim in value.claims:
                self.pods_by_claim.discard(f"{value.meta.namespace}/{claim}", value.meta.uid)
        elif resource is CLAIMS:
            self._claims_by_volume.discard(value.volume, value.meta.key)
            self.pending_claims.add(value.meta.key)
        elif resource is VOLUMES:
            self.pending_claims.update(self._claims_by_volume.members(value.meta.name))
        elif resource is DISRUPTION_BUDGETS:
            self._budgets_by_namespace.discard(value.meta.namespace, value.meta.uid)
        elif resource is JOBS:
            del self._jobs_by_group[value.group_key]
        elif resource is NAMESPACES and value.queue:
            self.pending_queues_of_namespaces.add(value.meta.name)


def group_key(pod: PodObject) -> str:
    """Of the podgroup that it belongs to."""
    return f"{pod.meta.namespace}/{pod.group_name}"


def _named_queue(value: PodGroupObject | JobObject | PodObject) -> str:
    if isinstance(value, JobObject):
        return value.job.queue or ""
    return value.queue
