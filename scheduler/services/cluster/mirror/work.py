"""What one transaction of the mirror has to look at: what changed, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from scheduler.clusters.kubernetes.resources import (
    DISRUPTION_BUDGETS,
    JOBS,
    NAMESPACES,
    NATIVE_PODGROUPS,
    NODES,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
)
from scheduler.domain.native_groups import stored_name
from scheduler.services.cluster.mirror.membership import Membership
from scheduler.services.cluster.mirror.store import Store, group_key
from scheduler.services.cluster.mirror.table import Table, stored_uid
from scheduler.services.cluster.mirror.tables import MirrorTables, object_key, shown_key


@dataclass(slots=True)
class Work:
    """Names of what has no namespace, uids and keys of the rest.

    What begins with `stored_` is as the database keeps it; nothing may be known of it.
    """

    namespaces: set[str]
    priority_classes: set[str]
    queues: set[str]
    nodes: set[str]
    budget_uids: set[str]
    job_uids: set[str]
    group_keys: set[str]
    pod_uids: set[str]
    stored_budgets: set[str] = field(default_factory=set)
    stored_jobs: set[str] = field(default_factory=set)
    stored_groups: set[str] = field(default_factory=set)
    stored_pods: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, store: Store) -> Work:
        return cls(
            namespaces=set(store.pending_keys[NAMESPACES]),
            priority_classes=set(store.pending_keys[PRIORITY_CLASSES]),
            queues=set(store.pending_keys[QUEUES]),
            nodes=set(store.pending_keys[NODES]),
            budget_uids=set(store.pending[DISRUPTION_BUDGETS]),
            job_uids=set(store.pending[JOBS]),
            group_keys={
                *store.pending_keys[PODGROUPS],
                *map(native_key, store.pending_keys[NATIVE_PODGROUPS]),
                *store.pending_groups,
            },
            pod_uids=set(store.pending[PODS]),
        )

    def add_stored(self, tables: MirrorTables) -> None:
        """Rows of objects that went while nobody listened."""
        self.namespaces.update(tables.namespaces.keys())
        self.priority_classes.update(tables.priority_classes.keys())
        self.queues.update(tables.queues.keys())
        self.nodes.update(tables.nodes.keys())
        self.stored_budgets.update(tables.budgets.keys())
        self.stored_jobs.update(tables.jobs.keys())
        self.stored_groups.update(tables.podgroups.keys())
        self.stored_pods.update(tables.pods.keys())


class Consequences:
    """What a change means for others: a podgroup that comes takes its pods in, and so on.

    Found by indexes, so that a change costs what follows from it. Only a changed priority class, or
    another queue for a whole namespace, makes it walk through all podgroups.
    """

    def __init__(self, store: Store, tables: MirrorTables, membership: Membership) -> None:
        self._store = store
        self._tables = tables
        self._membership = membership

    def add_to(self, work: Work) -> None:
        store = self._store
        for name in self._changed_queues(work.queues):
            self._add_what_names_queue(name, work)
        if store.pending_queues_of_namespaces or work.priority_classes:
            work.group_keys.update(self._groups_that_follow(work))
        work.group_keys.update(self._groups_of_jobs(work.job_uids))
        self._add_groups_of_namesakes(work.group_keys)
        for key in work.group_keys:
            if not self._has_its_row(key):
                work.pod_uids.update(store.pods_by_group.members(key))
        for name in _come_or_gone(self._tables.nodes, work.nodes, store.node):
            work.pod_uids.update(store.pods_by_node.members(name))
        for claim in store.pending_claims:
            work.pod_uids.update(store.pods_by_claim.members(claim))
        for uid in work.budget_uids:
            self._add_pods_of_budget(uid, work)

    # Queues

    def _changed_queues(self, names: Iterable[str]) -> set[str]:
        """Those that come or go, or that another queue has taken the name of."""
        return {name for name in names if self._uid_in_cluster(name) != self._uid_in_table(name)}

    def _uid_in_cluster(self, name: str) -> str | None:
        queue = self._store.queue(name)
        if queue is None:
            return None
        return stored_uid(queue.meta.uid)

    def _uid_in_table(self, name: str) -> str | None:
        if name not in self._tables.queues:
            return None
        return str(self._tables.queues.row(name)["uid"])

    def _add_what_names_queue(self, name: str, work: Work) -> None:
        self._add_named(name, work)
        for namespace in self._store.objects(NAMESPACES):
            if namespace.queue == name:
                self._add_named("", work, namespace.meta.name)

    def _add_named(self, queue: str, work: Work, namespace: str | None = None) -> None:
        """What names this queue itself, everywhere or in one namespace."""

        def found(resource: Any) -> Iterable[Any]:
            for value in self._store.naming_queue(resource, queue):
                if namespace is None or value.meta.namespace == namespace:
                    yield value

        for kind in (PODGROUPS, NATIVE_PODGROUPS):
            work.group_keys.update(podgroup.key for podgroup in found(kind))
        for job in found(JOBS):
            work.job_uids.add(job.meta.uid)
        for pod in found(PODS):
            work.group_keys.add(group_key(pod))

    # Podgroups

    def _groups_that_follow(self, work: Work) -> set[str]:
        """Podgroups of these priority classes, or in namespaces that have another queue."""
        found = set()
        namespaces = self._store.pending_queues_of_namespaces
        for key in self._store.pods_by_group.values():
            if key.partition("/")[0] in namespaces:
                found.add(key)
        for group in self._store.podgroups():
            has_class = _has_class_of(group.priority_class, work.priority_classes)
            if has_class or group.meta.namespace in namespaces:
                found.add(group.key)
        for job in self._store.objects(JOBS):
            if _has_class_of(job.job.priority_class, work.priority_classes):
                found.add(job.group_key)
        return found

    def _groups_of_jobs(self, uids: Iterable[str]) -> set[str]:
        """Where their podgroups are, and where they were."""
        found = set()
        podgroups = self._tables.podgroups
        for uid in uids:
            if job := self._store.job(uid):
                found |= {job.group_key, job.meta.key}
            if (row_uid := stored_uid(uid)) in podgroups:
                row = podgroups.row(row_uid)
                found |= {object_key(row), shown_key(row)}
        return found

    def _add_groups_of_namesakes(self, keys: set[str]) -> None:
        """A podgroup of the same name as a job changes how the job's own one is called.

        A native podgroup has its name only if nobody else has it.
        """
        new = set(keys)
        while new:
            found = set()
            for key in new:
                for job in (self._store.job_named(key), self._store.job_of_group(key)):
                    if job is not None:
                        found |= {job.group_key, job.meta.key}
                if self._store.podgroup(native_key(key)) is not None:
                    found.add(native_key(key))
            new = found - keys
            keys |= new

    def _has_its_row(self, key: str) -> bool:
        """Whether the podgroup has a row already, under the name that it is to have."""
        before = self._tables.uid_of_group(key)
        group = self._membership.group(key)
        if before is None or group is None:
            return before is None and group is None
        row = self._tables.podgroups.row(before)
        return before == stored_uid(group.uid) and row["name"] == group.name

    # Budgets

    def _add_pods_of_budget(self, uid: str, work: Work) -> None:
        """All of its namespace, unless only figures have changed."""
        budget = self._store.budget(uid)
        row_uid = stored_uid(uid)
        before = None
        if row_uid in self._tables.budgets:
            before = self._tables.budgets.row(row_uid)
        if budget is not None and before is not None and before["selector"] == budget.selector:
            return
        namespace = ""
        if budget is not None:
            namespace = budget.meta.namespace
        elif before is not None:
            namespace = before["namespace"]
        work.pod_uids.update(self._store.pods_by_namespace.members(namespace))


def native_key(key: str) -> str:
    """Of the native podgroup of this namespace and name."""
    namespace, _, name = key.partition("/")
    return f"{namespace}/{stored_name(name)}"


def _has_class_of(name: str, classes: Collection[str]) -> bool:
    """One that names no class has the default one, which may be any of them."""
    return bool(classes) and (not name or name in classes)


def _come_or_gone(
    table: Table, names: Iterable[str], known: Callable[[str], object | None]
) -> set[str]:
    return {name for name in names if (name in table) != (known(name) is not None)}
