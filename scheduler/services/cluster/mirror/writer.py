"""Everything that was heard since the last time, written in one transaction.

What is removed goes first, the pods before what they refer to; then everything else, what others
refer to first. So names that were given again find their places free.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from scheduler.clusters.kubernetes.resources import (
    JOBS,
    NAMESPACES,
    NODES,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
)
from scheduler.clusters.kubernetes.values import PodGroupObject, PodObject
from scheduler.domain.queues import DEFAULT
from scheduler.models import Job, Namespace, Node, Pod, PodGroup, PriorityClass
from scheduler.services.cluster.mirror import object_rows
from scheduler.services.cluster.mirror.classes import class_ids
from scheduler.services.cluster.mirror.membership import Membership
from scheduler.services.cluster.mirror.queues import queue_table, remove_queues, write_queues
from scheduler.services.cluster.mirror.store import Store, group_key
from scheduler.services.cluster.mirror.table import Row, Table, stored_uid
from scheduler.services.cluster.mirror.taken import TakenRoom

BUILT_IN_NAMESPACES = frozenset({DEFAULT})


@dataclass(slots=True)
class WrittenRows:
    """What one transaction changed, by the names that open pages know it by."""

    queues: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
    podgroups: set[str] = field(default_factory=set)  # namespace/name
    others: int = 0

    @property
    def anything(self) -> bool:
        return bool(self.queues or self.nodes or self.podgroups or self.others)


class MirrorWriter:
    """Remembers what is in the tables; `load` reads it, after a start or a failure."""

    def __init__(self, store: Store, scheduler_names: Collection[str]) -> None:
        self._store = store
        self._membership = Membership(store, scheduler_names)
        self._taken = TakenRoom()
        self.namespaces = Table(Namespace, "name", object_rows.NAMESPACE_COLUMNS)
        self.priority_classes = Table(PriorityClass, "name", object_rows.PRIORITY_CLASS_COLUMNS)
        self.queues = queue_table()
        self.nodes = Table(Node, "name", object_rows.NODE_COLUMNS, fixed={"kind": ""})
        self.jobs = Table(Job, "uid", object_rows.JOB_COLUMNS, fixed=_NEW_JOB)
        self.podgroups = Table(PodGroup, "uid", object_rows.PODGROUP_COLUMNS, fixed=_NEW_PODGROUP)
        self.pods = Table(Pod, "uid", object_rows.POD_COLUMNS, fixed=_NEW_POD)
        self._group_uids: dict[str, str] = {}  # of podgroups that have rows, by namespace/name
        self._was_just_loaded = False

    def load(self) -> None:
        """Compare everything at the next write: the database may hold anything."""
        for table in self._tables():
            table.load()
        self._group_uids = {_key_of(row): uid for uid, row in self.podgroups.items()}
        self._store.touch_everything()
        self._was_just_loaded = True

    def _tables(self) -> tuple[Table, ...]:
        return (
            self.namespaces,
            self.priority_classes,
            self.queues,
            self.nodes,
            self.jobs,
            self.podgroups,
            self.pods,
        )

    def write(self) -> WrittenRows:
        """Inside of a transaction. If it fails, `load` has to be called before the next."""
        self._membership.look_again()
        work = _Work.of(self._store)
        if self._was_just_loaded:
            work.add_stored(self)
        self._spread(work)
        written = WrittenRows()
        pods = self._wanted_pods(work)
        groups = self._wanted_groups(work)
        self._remove(work, pods, groups, written)
        self._write_objects(work, written)
        self._write_groups(groups, written)
        self._write_pods(pods, written)
        self._was_just_loaded = False
        return written

    # What else has to be looked at

    def _spread(self, work: _Work) -> None:
        """What a change means for others: a podgroup that comes takes its pods in, and so on."""
        store = self._store
        if _come_or_gone(self.queues, work.queues, store.queue):
            work.group_keys.update(store.objects(PODGROUPS).by_key)
            work.group_keys.update(store.pods_by_group)
            work.job_uids.update(store.objects(JOBS).by_uid)
        if work.namespaces or work.priority_classes or work.job_uids:
            work.group_keys.update(self._groups_that_follow(work))
        for key in work.group_keys:
            if self._group_uids.get(key) != self._wanted_uid(key):
                work.pod_uids.update(store.pods_by_group.get(key, ()))
        for name in _come_or_gone(self.nodes, work.nodes, store.node):
            work.pod_uids.update(store.pods_by_node.get(name, ()))

    def _groups_that_follow(self, work: _Work) -> set[str]:
        """Podgroups of these namespaces, priority classes and jobs."""
        found = set()
        for key in self._store.pods_by_group:
            if key.partition("/")[0] in work.namespaces:
                found.add(key)
        for group in self._store.objects(PODGROUPS):
            if self._follows(group, work):
                found.add(group.meta.key)
        return found

    def _follows(self, group: PodGroupObject, work: _Work) -> bool:
        owner = group.meta.owner
        if owner is not None and owner.uid in work.job_uids:
            return True
        if group.meta.namespace in work.namespaces:
            return True
        # one that names no class has the default one, which may be any of them
        classes = work.priority_classes
        return bool(classes) and (not group.priority_class or group.priority_class in classes)

    def _wanted_uid(self, key: str) -> str | None:
        """Under which stored uid a podgroup is to have a row; None where it is to have none."""
        group = self._store.podgroup(key)
        if group is not None:
            if self._membership.queue_of(group) is None:
                return None
            return stored_uid(group.meta.uid)
        if self._membership.made_group(key) is None:
            return None
        return stored_uid(key)

    # Wanted

    def _wanted_pods(self, work: _Work) -> dict[str, PodObject | None]:
        """By stored uid: the pod that is to have a row, or None.

        All others are counted on their nodes.
        """
        wanted: dict[str, PodObject | None] = dict.fromkeys(work.stored_pods)
        for uid in work.pod_uids:
            pod = self._store.pod(uid)
            if pod is not None and self._membership.has_row(pod):
                wanted[stored_uid(uid)] = pod
                work.nodes.update(self._taken.drop(uid))
                continue
            wanted[stored_uid(uid)] = None
            if pod is not None and pod.takes_room:
                work.nodes.update(self._taken.put(uid, pod.node, pod.requests))
            else:
                work.nodes.update(self._taken.drop(uid))
        return wanted

    def _wanted_groups(self, work: _Work) -> dict[str, str | None]:
        """By stored uid: the key of the podgroup that is to have a row, or None."""
        wanted: dict[str, str | None] = dict.fromkeys(work.stored_groups)
        for key in work.group_keys:
            before = self._group_uids.get(key)
            if before is not None:
                wanted[before] = None
            uid = self._wanted_uid(key)
            if uid is not None:
                wanted[uid] = key
        return wanted

    # Writing

    def _remove(
        self,
        work: _Work,
        pods: dict[str, PodObject | None],
        groups: dict[str, str | None],
        written: WrittenRows,
    ) -> None:
        lost = [uid for uid, pod in pods.items() if pod is None and uid in self.pods]
        written.podgroups |= self._keys_of_groups(self.pods.row(uid)["podgroup_id"] for uid in lost)
        self.pods.delete(lost)
        gone = [uid for uid, key in groups.items() if key is None and uid in self.podgroups]
        written.podgroups |= {_key_of(self.podgroups.row(uid)) for uid in gone}
        self._delete_podgroups(gone)
        self._delete_jobs(work, written)
        store = self._store
        written.nodes |= self.nodes.delete(name for name in work.nodes if not store.node(name))
        written.queues |= remove_queues(store, self.queues, work.queues)
        written.others += len(
            self.priority_classes.delete(
                name for name in work.priority_classes if not store.priority_class(name)
            )
        )
        gone_namespaces = work.namespaces - BUILT_IN_NAMESPACES
        written.others += len(
            self.namespaces.delete(name for name in gone_namespaces if not store.namespace(name))
        )

    def _keys_of_groups(self, ids: Iterable[int]) -> set[str]:
        wanted = set(ids)
        if not wanted:
            return set()
        return {
            _key_of(row) for uid, row in self.podgroups.items() if self.podgroups.ids[uid] in wanted
        }

    def _delete_podgroups(self, uids: Collection[str]) -> None:
        """And the rows of their pods, if any are left."""
        ids = {self.podgroups.ids[uid] for uid in uids}
        if not ids:
            return
        for uid in uids:
            self._group_uids.pop(_key_of(self.podgroups.row(uid)), None)
        self.pods.delete([uid for uid, row in self.pods.items() if row["podgroup_id"] in ids])
        self.podgroups.delete(uids)

    def _delete_jobs(self, work: _Work, written: WrittenRows) -> None:
        """Podgroups of theirs that stay for a moment stand for themselves."""
        known = self._store.objects(JOBS).by_uid
        gone = {stored_uid(uid) for uid in work.job_uids if uid not in known}
        if work.stored_jobs:
            gone |= work.stored_jobs - {stored_uid(uid) for uid in known}
        gone = {uid for uid in gone if uid in self.jobs}
        if not gone:
            return
        ids = {self.jobs.ids[uid] for uid in gone}
        orphans = {}
        for uid, row in self.podgroups.items():
            if row["job_id"] in ids:
                orphans[uid] = {**row, "job_id": None}
        self.podgroups.write(orphans)
        written.podgroups |= {_key_of(self.jobs.row(uid)) for uid in gone}
        self.jobs.delete(gone)

    def _write_objects(self, work: _Work, written: WrittenRows) -> None:
        store = self._store
        namespaces = {}
        for name in work.namespaces:
            if namespace := store.namespace(name):
                namespaces[name] = object_rows.namespace_row(namespace)
        written.others += len(self.namespaces.write(namespaces))
        written.others += len(self._write_priority_classes(work.priority_classes))
        if work.queues:
            # a queue that comes or goes may move others: all of them are compared
            names = {queue.meta.name for queue in store.objects(QUEUES)}
            written.queues |= write_queues(store, self.queues, names)
        nodes = {}
        for name in work.nodes:
            if node := store.node(name):
                nodes[name] = object_rows.node_row(node, self._taken.on(name))
        written.nodes |= self.nodes.write(nodes)
        jobs = {}
        for uid in work.job_uids:
            if (job := store.job(uid)) and (queue := self.queues.ids.get(job.job.queue or DEFAULT)):
                jobs[stored_uid(uid)] = object_rows.job_row(job, queue)
        changed = self.jobs.write(jobs)
        written.podgroups |= {_key_of(jobs[uid]) for uid in changed}

    def _write_priority_classes(self, names: Collection[str]) -> set[str]:
        """The one that stops being the default goes first: there is at most one."""
        rows = {}
        for name in names:
            if value := self._store.priority_class(name):
                rows[name] = object_rows.priority_class_row(value)
        others = {name: row for name, row in rows.items() if not row["global_default"]}
        changed = self.priority_classes.write(others)
        default = sorted(name for name, row in rows.items() if row["global_default"])
        return changed | self.priority_classes.write({name: rows[name] for name in default[:1]})

    def _write_groups(self, groups: dict[str, str | None], written: WrittenRows) -> None:
        rows = {uid: self._group_row(key) for uid, key in groups.items() if key is not None}
        for uid in self.podgroups.write(rows):
            key = _key_of(rows[uid])
            self._group_uids[key] = uid
            written.podgroups.add(key)

    def _group_row(self, key: str) -> Row:
        pods = [pod for pod in self._store.pods_of(key) if self._membership.is_for_us(pod)]
        group = self._store.podgroup(key)
        if group is None:
            made = self._membership.made_group(key)
            assert made is not None
            row = object_rows.made_group_row(made, self.queues.ids[made.queue])
            return {**row, **object_rows.follows_from_pods("", made.min_member, pods)}
        queue = self._membership.queue_of(group)
        assert queue is not None
        row = object_rows.podgroup_row(
            group,
            queue_id=self.queues.ids[queue],
            job_id=self._job_id(group),
            priority=self._priority_of(group),
        )
        return {**row, **object_rows.follows_from_pods(group.phase, group.min_member, pods)}

    def _job_id(self, group: PodGroupObject) -> int | None:
        """Of the job that made it. Only the one that is named after the job is the job's own."""
        owner = group.meta.owner
        job = None
        if owner is not None:
            job = self._store.job(owner.uid)
        if job is None or group.meta.name not in (f"{job.meta.name}-{job.meta.uid}", job.meta.name):
            return None
        return self.jobs.ids.get(stored_uid(job.meta.uid))

    def _priority_of(self, group: PodGroupObject) -> int:
        named = self._store.priority_class(group.priority_class)
        if named is not None:
            return named.value
        for value in self._store.objects(PRIORITY_CLASSES):
            if value.global_default:
                return int(value.value)
        return 0

    def _write_pods(self, wanted: dict[str, PodObject | None], written: WrittenRows) -> None:
        pods = {uid: pod for uid, pod in wanted.items() if pod is not None}
        classes = class_ids(pods)
        groups = self._group_ids(pods.values())
        rows = {}
        for uid, pod in pods.items():
            rows[uid] = object_rows.pod_row(
                pod,
                podgroup_id=groups[group_key(pod)],
                pod_class_id=classes[uid],
                node_ids=self.nodes.ids,
            )
        for uid in self.pods.write(rows):
            written.podgroups.add(group_key(pods[uid]))

    def _group_ids(self, pods: Iterable[PodObject]) -> dict[str, int]:
        found = {}
        for key in {group_key(pod) for pod in pods}:
            found[key] = self.podgroups.ids[self._group_uids[key]]
        return found


def _key_of(row: Row) -> str:
    return f"{row['namespace']}/{row['name']}"


def _come_or_gone(
    table: Table, names: Iterable[str], known: Callable[[str], object | None]
) -> set[str]:
    return {name for name in names if (name in table) != (known(name) is not None)}


@dataclass(slots=True)
class _Work:
    """What is to be compared: names of what has no namespace, uids and keys of the rest.

    What begins with `stored_` is as the database keeps it; nothing may be known of it.
    """

    namespaces: set[str]
    priority_classes: set[str]
    queues: set[str]
    nodes: set[str]
    job_uids: set[str]
    group_keys: set[str]
    pod_uids: set[str]
    stored_jobs: set[str] = field(default_factory=set)
    stored_groups: set[str] = field(default_factory=set)
    stored_pods: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, store: Store) -> _Work:
        return cls(
            namespaces=set(store.pending_keys[NAMESPACES]),
            priority_classes=set(store.pending_keys[PRIORITY_CLASSES]),
            queues=set(store.pending_keys[QUEUES]),
            nodes=set(store.pending_keys[NODES]),
            job_uids=set(store.pending[JOBS]),
            group_keys={*store.pending_keys[PODGROUPS], *store.pending_groups},
            pod_uids=set(store.pending[PODS]),
        )

    def add_stored(self, writer: MirrorWriter) -> None:
        """Rows of objects that went while nobody listened."""
        self.namespaces.update(writer.namespaces.keys())
        self.priority_classes.update(writer.priority_classes.keys())
        self.queues.update(writer.queues.keys())
        self.nodes.update(writer.nodes.keys())
        self.stored_jobs.update(writer.jobs.keys())
        self.stored_groups.update(writer.podgroups.keys())
        self.stored_pods.update(writer.pods.keys())


_NEW_JOB: Row = {
    "owner": "",
    "owner_user_id": None,
    "phase_since": None,
    "task_retries": {},
    "started_at": None,
    "finished_at": None,
}
_NEW_PODGROUP: Row = {
    "owner": "",
    "sla_waiting_seconds": None,
    "stopping": False,
    "conditions": [],
    "pod_conditions": [],
    "reason_code": "",
    "reason_message": "",
    "reason_figures": {},
    "reason_checks": [],
    "reason_session": None,
    "starving_since": None,
    "evictions": 0,
    "expected_seconds": None,
    "enqueued_at": None,
    "started_at": None,
    "finished_at": None,
}
_NEW_POD: Row = {
    "borrowed": False,
    "reserved_node_id": None,
    "reserved_until": None,
    "run_seconds": None,
    "planned_exit_code": 0,
    "unwanted": False,
}
