"""Everything that was heard since the last time, written in one transaction.

What is removed goes first, the pods before what they refer to; then everything else, what others
refer to first. So names that were given again find their places free.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from scheduler.clusters.kubernetes.resources import (
    JOBS,
    NAMESPACES,
    NODES,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
)
from scheduler.clusters.kubernetes.values import PodObject
from scheduler.domain.queues import DEFAULT
from scheduler.models import Job, Namespace, Node, Pod, PodGroup, PriorityClass
from scheduler.services.cluster.mirror import object_rows
from scheduler.services.cluster.mirror.classes import class_ids
from scheduler.services.cluster.mirror.membership import KnownGroup, Membership
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

    def __init__(
        self, store: Store, scheduler_names: Collection[str], *, follows_status: bool = False
    ) -> None:
        """With `follows_status` Volcano opens and closes queues, and tells so in their status."""
        self._store = store
        self._follows_status = follows_status
        self._membership = Membership(store, scheduler_names)
        self._taken = TakenRoom()
        self.namespaces = Table(Namespace, "name", object_rows.NAMESPACE_COLUMNS)
        self.priority_classes = Table(PriorityClass, "name", object_rows.PRIORITY_CLASS_COLUMNS)
        self.queues = queue_table()
        self.nodes = Table(Node, "name", object_rows.NODE_COLUMNS, fixed={"kind": ""})
        self.jobs = Table(Job, "uid", object_rows.JOB_COLUMNS, fixed=_NEW_JOB)
        self.podgroups = Table(PodGroup, "uid", object_rows.PODGROUP_COLUMNS, fixed=_NEW_PODGROUP)
        self.pods = Table(Pod, "uid", object_rows.POD_COLUMNS, fixed=_NEW_POD)
        self._group_uids: dict[str, str] = {}  # of podgroups that have rows, by their keys
        self._was_just_loaded = False

    def load(self) -> None:
        """Compare everything at the next write: the database may hold anything."""
        for table in self._tables():
            table.load()
        self._group_uids = {_object_key(row): uid for uid, row in self.podgroups.items()}
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
        if work.namespaces or work.priority_classes:
            work.group_keys.update(self._groups_that_follow(work))
        work.group_keys.update(self._groups_of_jobs(work.job_uids))
        self._add_groups_of_namesakes(work.group_keys)
        for key in work.group_keys:
            if not self._has_its_row(key):
                work.pod_uids.update(store.pods_by_group.get(key, ()))
        for name in _come_or_gone(self.nodes, work.nodes, store.node):
            work.pod_uids.update(store.pods_by_node.get(name, ()))

    def _groups_that_follow(self, work: _Work) -> set[str]:
        """Podgroups of these namespaces and priority classes."""
        found = set()
        for key in self._store.pods_by_group:
            if key.partition("/")[0] in work.namespaces:
                found.add(key)
        for group in self._store.objects(PODGROUPS):
            has_class = _has_class_of(group.priority_class, work.priority_classes)
            if has_class or group.meta.namespace in work.namespaces:
                found.add(group.meta.key)
        for job in self._store.objects(JOBS):
            if _has_class_of(job.job.priority_class, work.priority_classes):
                found.add(job.group_key)
        return found

    def _groups_of_jobs(self, uids: Iterable[str]) -> set[str]:
        """Where their podgroups are, and where they were."""
        found = set()
        for uid in uids:
            if job := self._store.job(uid):
                found |= {job.group_key, job.meta.key}
            if (row_uid := stored_uid(uid)) in self.podgroups:
                found.add(_object_key(self.podgroups.row(row_uid)))
        return found

    def _add_groups_of_namesakes(self, keys: set[str]) -> None:
        """A podgroup of the same name as a job changes how the job's own one is called."""
        new = set(keys)
        while new:
            found = set()
            for key in new:
                for job in (self._store.job_named(key), self._store.job_of_group(key)):
                    if job is not None:
                        found |= {job.group_key, job.meta.key}
            new = found - keys
            keys |= new

    def _has_its_row(self, key: str) -> bool:
        """Whether the podgroup has a row already, under the name that it is to have."""
        before = self._group_uids.get(key)
        group = self._membership.group(key)
        if before is None or group is None:
            return before is None and group is None
        return before == stored_uid(group.uid) and self.podgroups.row(before)["name"] == group.name

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

    def _wanted_groups(self, work: _Work) -> dict[str, KnownGroup | None]:
        """By stored uid: the podgroup that is to have a row, or None."""
        wanted: dict[str, KnownGroup | None] = dict.fromkeys(work.stored_groups)
        for key in work.group_keys:
            if before := self._group_uids.get(key):
                wanted[before] = None
        for key in work.group_keys:
            if group := self._membership.group(key):
                wanted[stored_uid(group.uid)] = group
        return wanted

    # Writing

    def _remove(
        self,
        work: _Work,
        pods: dict[str, PodObject | None],
        groups: dict[str, KnownGroup | None],
        written: WrittenRows,
    ) -> None:
        lost = [uid for uid, pod in pods.items() if pod is None and uid in self.pods]
        written.podgroups |= self._keys_of_groups(self.pods.row(uid)["podgroup_id"] for uid in lost)
        self.pods.delete(lost)
        gone = [uid for uid, group in groups.items() if self._is_to_go(uid, group)]
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

    def _is_to_go(self, uid: str, group: KnownGroup | None) -> bool:
        """One that is to have another name is made anew: somebody else may take the old one."""
        if uid not in self.podgroups:
            return False
        return group is None or self.podgroups.row(uid)["name"] != group.name

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
            self._group_uids.pop(_object_key(self.podgroups.row(uid)), None)
        self.pods.delete([uid for uid, row in self.pods.items() if row["podgroup_id"] in ids])
        self.podgroups.delete(uids)

    def _delete_jobs(self, work: _Work, written: WrittenRows) -> None:
        """Their podgroups have no rows any more."""
        known = self._store.objects(JOBS).by_uid
        gone = {stored_uid(uid) for uid in work.job_uids if uid not in known}
        if work.stored_jobs:
            gone |= work.stored_jobs - {stored_uid(uid) for uid in known}
        gone = {uid for uid in gone if uid in self.jobs}
        if not gone:
            return
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
            written.queues |= write_queues(
                store, self.queues, names, follows_status=self._follows_status
            )
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

    def _write_groups(self, groups: dict[str, KnownGroup | None], written: WrittenRows) -> None:
        rows = {}
        for uid, group in groups.items():
            if group is not None:
                rows[uid] = self._group_row(uid, group)
                if uid in self.podgroups:
                    self._group_uids.pop(_object_key(self.podgroups.row(uid)), None)
        for uid, row in rows.items():
            self._group_uids[_object_key(row)] = uid
        ended = []
        for uid in self.podgroups.write(rows):
            written.podgroups.add(_key_of(rows[uid]))
            if rows[uid]["phase"] == "Completed":
                ended.append(self.podgroups.ids[uid])
        _forget_reasons(ended)

    def _group_row(self, uid: str, group: KnownGroup) -> Row:
        pods = [pod for pod in self._store.pods_of(group.key) if self._membership.is_for_us(pod)]
        told_phase, row = self._own_part(group)
        namespace, _, object_name = group.key.partition("/")
        return {
            **row,
            **object_rows.follows_from_pods(told_phase, row["min_member"], pods),
            "uid": uid,
            "namespace": namespace,
            "name": group.name,
            "object_name": object_name,
            "queue_id": self.queues.ids[group.queue],
            "job_id": self._job_id(group),
        }

    def _own_part(self, group: KnownGroup) -> tuple[str, dict[str, Any]]:
        """The phase that the cluster tells, and the columns that follow from the object alone."""
        if podgroup := group.podgroup:
            priority = self._priority_of(podgroup.priority_class)
            return podgroup.phase, object_rows.podgroup_row(podgroup, priority)
        if job := group.job:
            priority = self._priority_of(job.job.priority_class)
            phase = object_rows.podgroup_phase_of_job(job)
            return phase, object_rows.podgroup_row_of_job(job, priority)
        assert group.made is not None
        return "", object_rows.made_group_row(group.made)

    def _job_id(self, group: KnownGroup) -> int | None:
        if group.job is None:
            return None
        return self.jobs.ids.get(stored_uid(group.job.meta.uid))

    def _priority_of(self, class_name: str) -> int:
        named = self._store.priority_class(class_name)
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
            group = self._membership.group(group_key(pods[uid]))
            assert group is not None
            written.podgroups.add(f"{pods[uid].meta.namespace}/{group.name}")

    def _group_ids(self, pods: Iterable[PodObject]) -> dict[str, int]:
        found = {}
        for key in {group_key(pod) for pod in pods}:
            found[key] = self.podgroups.ids[self._group_uids[key]]
        return found


def _forget_reasons(ids: Collection[int]) -> None:
    """Of podgroups that have ended: no session looks at them any more."""
    if not ids:
        return
    PodGroup.objects.filter(pk__in=ids).exclude(reason_code="").update(
        reason_code="", reason_message="", reason_figures={}, reason_checks=[]
    )


def _key_of(row: Row) -> str:
    """As pages name it."""
    return f"{row['namespace']}/{row['name']}"


def _object_key(row: Row) -> str:
    """As the cluster names it."""
    return f"{row['namespace']}/{row['object_name']}"


def _has_class_of(name: str, classes: Collection[str]) -> bool:
    """One that names no class has the default one, which may be any of them."""
    return bool(classes) and (not name or name in classes)


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
