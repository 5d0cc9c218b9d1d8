"""What has been heard of the cluster, and which of it is still to be written. Knows no database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from scheduler.clusters.kubernetes.resources import (
    JOBS,
    NAMESPACES,
    NODES,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    Resource,
)
from scheduler.clusters.kubernetes.values import (
    JobObject,
    NamespaceObject,
    NodeObject,
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

    Pods can also be found by their podgroup and by their node.
    """

    def __init__(self) -> None:
        self._objects: dict[Resource, Objects] = defaultdict(Objects)
        self.pods_by_group: dict[str, set[str]] = defaultdict(set)
        self.pods_by_node: dict[str, set[str]] = defaultdict(set)
        self.pending: dict[Resource, set[str]] = defaultdict(set)
        # names that are to be looked at again, where the object itself is gone
        self.pending_keys: dict[Resource, set[str]] = defaultdict(set)
        # podgroups that pods came to, or left
        self.pending_groups: set[str] = set()
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
        return self._objects[PODGROUPS].by_key.get(key)

    def job(self, uid: str) -> JobObject | None:
        return self._objects[JOBS].by_uid.get(uid)

    def job_named(self, key: str) -> JobObject | None:
        return self._objects[JOBS].by_key.get(key)

    def job_of_group(self, key: str) -> JobObject | None:
        """The job whose podgroup has this name, whether or not there is such a podgroup."""
        return self._jobs_by_group.get(key)

    def pod(self, uid: str) -> PodObject | None:
        return self._objects[PODS].by_uid.get(uid)

    def pods_of(self, group_key: str) -> list[PodObject]:
        known = self._objects[PODS].by_uid
        return [known[uid] for uid in self.pods_by_group.get(group_key, ())]

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
        if resource is PODS:
            self._unindex_pod(before)
            self._index_pod(value)
        elif resource is JOBS:
            self._jobs_by_group[value.group_key] = value

    def _drop(self, resource: Resource, uid: str) -> None:
        before = self._objects[resource].drop(uid)
        if before is None:
            return
        self.touch(resource, before)
        if resource is PODS:
            self._unindex_pod(before)
        elif resource is JOBS:
            del self._jobs_by_group[before.group_key]

    def touch(self, resource: Resource, value: Any) -> None:
        """It is to be written, or removed if it is gone."""
        self.pending[resource].add(value.meta.uid)
        self.pending_keys[resource].add(value.meta.key)

    def touch_everything(self) -> None:
        """The database may hold anything: compare all of it."""
        for resource, objects in self._objects.items():
            for value in objects:
                self.touch(resource, value)
        self.pending_groups.update(self.pods_by_group)

    def clear_pending(self) -> None:
        self.pending.clear()
        self.pending_keys.clear()
        self.pending_groups.clear()

    def _index_pod(self, pod: PodObject) -> None:
        self.pending_groups.add(group_key(pod))
        self.pods_by_group[group_key(pod)].add(pod.meta.uid)
        if pod.node:
            self.pods_by_node[pod.node].add(pod.meta.uid)

    def _unindex_pod(self, pod: PodObject | None) -> None:
        if pod is None:
            return
        self.pending_groups.add(group_key(pod))
        _discard(self.pods_by_group, group_key(pod), pod.meta.uid)
        _discard(self.pods_by_node, pod.node, pod.meta.uid)


def group_key(pod: PodObject) -> str:
    """Of the podgroup that it belongs to."""
    return f"{pod.meta.namespace}/{pod.group_name}"


def _discard(index: dict[str, set[str]], key: str, uid: str) -> None:
    members = index.get(key)
    if members is None:
        return
    members.discard(uid)
    if not members:
        del index[key]
