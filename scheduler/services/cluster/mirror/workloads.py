"""Jobs, podgroups and pods: which of them are to have rows, and what is in those."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from scheduler.clusters.kubernetes.resources import JOBS, PRIORITY_CLASSES
from scheduler.clusters.kubernetes.values import PodGroupObject, PodObject
from scheduler.domain.queues import DEFAULT
from scheduler.models import PodGroup
from scheduler.services.cluster.mirror import object_rows, own_columns
from scheduler.services.cluster.mirror.budgets import budgets_of
from scheduler.services.cluster.mirror.classes import class_ids
from scheduler.services.cluster.mirror.membership import KnownGroup, Membership
from scheduler.services.cluster.mirror.pod_rules import RuleWatch
from scheduler.services.cluster.mirror.running_times import note_runs
from scheduler.services.cluster.mirror.store import Store, group_key
from scheduler.services.cluster.mirror.table import Row, stored_uid
from scheduler.services.cluster.mirror.tables import MirrorTables, shown_key
from scheduler.services.cluster.mirror.work import Work
from scheduler.services.cluster.mirror.written import WrittenRows

WantedGroups = dict[str, KnownGroup | None]
WantedPods = dict[str, PodObject | None]
"""By stored uid: what is to have a row, or None."""


class Workloads:
    def __init__(
        self,
        store: Store,
        tables: MirrorTables,
        membership: Membership,
        watch: RuleWatch,
        *,
        schedules: bool = False,
    ) -> None:
        self._store = store
        self._tables = tables
        self._membership = membership
        self._schedules = schedules
        self._watch = watch

    def wanted_groups(self, work: Work) -> WantedGroups:
        wanted: WantedGroups = dict.fromkeys(work.stored_groups)
        for key in work.group_keys:
            if before := self._tables.uid_of_group(key):
                wanted[before] = None
        for key in work.group_keys:
            if group := self._membership.group(key):
                wanted[stored_uid(group.uid)] = group
        return wanted

    # Removing

    def remove(
        self, work: Work, pods: WantedPods, groups: WantedGroups, written: WrittenRows
    ) -> None:
        """Pods before what they refer to."""
        tables = self._tables
        lost = [uid for uid, pod in pods.items() if pod is None and uid in tables.pods]
        written.podgroups |= tables.groups_with_ids(
            tables.pods.row(uid)["podgroup_id"] for uid in lost
        )
        tables.pods.delete(lost)
        self._remove_groups(groups, written)
        self._remove_jobs(work, written)

    def _remove_groups(self, groups: WantedGroups, written: WrittenRows) -> None:
        """And the rows of their pods, if any are left."""
        gone = [uid for uid, group in groups.items() if self._is_to_go(uid, group)]
        for uid in gone:
            written.podgroups.add(shown_key(self._tables.podgroups.row(uid)))
            self._tables.pods.delete(self._tables.pods_in_group(uid))
        self._tables.podgroups.delete(gone)

    def _is_to_go(self, uid: str, group: KnownGroup | None) -> bool:
        """One that is to have another name is made anew: somebody else may take the old one."""
        podgroups = self._tables.podgroups
        if uid not in podgroups:
            return False
        return group is None or podgroups.row(uid)["name"] != group.name

    def _remove_jobs(self, work: Work, written: WrittenRows) -> None:
        """Their podgroups have no rows any more."""
        jobs = self._tables.jobs
        known = self._store.objects(JOBS).by_uid
        gone = {stored_uid(uid) for uid in work.job_uids if uid not in known}
        if work.stored_jobs:
            gone |= work.stored_jobs - {stored_uid(uid) for uid in known}
        gone = {uid for uid in gone if uid in jobs}
        written.podgroups |= {shown_key(jobs.row(uid)) for uid in gone}
        jobs.delete(gone)

    # Jobs

    def write_jobs(self, work: Work, written: WrittenRows) -> None:
        rows = {}
        for uid in work.job_uids:
            job = self._store.job(uid)
            if job is None or self._membership.is_of_others(job):
                continue
            queue_id = self._tables.queues.ids.get(job.job.queue or DEFAULT)
            if queue_id is not None:
                rows[stored_uid(uid)] = object_rows.job_row(job, queue_id)
        note_runs(self._tables.jobs, rows)
        for uid in self._tables.jobs.write(rows):
            written.podgroups.add(shown_key(rows[uid]))

    # Podgroups

    def write_groups(self, groups: WantedGroups, written: WrittenRows) -> None:
        rows = {}
        for uid, group in groups.items():
            if group is not None:
                rows[uid] = self._group_row(uid, group)
        ended = []
        for uid in self._tables.podgroups.write(rows):
            written.podgroups.add(shown_key(rows[uid]))
            if rows[uid]["phase"] == "Completed":
                ended.append(self._tables.podgroups.ids[uid])
        _forget_reasons(ended)
        if self._schedules:
            self._reopen(groups)

    def _reopen(self, groups: WantedGroups) -> None:
        alive = []
        for uid, group in groups.items():
            if group is not None and own_columns.is_alive(self._pods_of(group)):
                alive.append(self._tables.podgroups.ids[uid])
        own_columns.reopen_podgroups(alive)

    def _pods_of(self, group: KnownGroup) -> list[PodObject]:
        return [pod for pod in self._store.pods_of(group.key) if self._membership.is_for_us(pod)]

    def _group_row(self, uid: str, group: KnownGroup) -> Row:
        pods = self._pods_of(group)
        told_phase, row = self._own_part(group)
        namespace, _, object_name = group.key.partition("/")
        return {
            **row,
            **object_rows.follows_from_pods(told_phase, row["min_member"], pods),
            "uid": uid,
            "namespace": namespace,
            "name": group.name,
            "object_name": object_name,
            "queue_id": self._tables.queues.ids[group.queue],
            "job_id": self._job_id(group),
        }

    def _own_part(self, group: KnownGroup) -> tuple[str, dict[str, Any]]:
        """The phase that the cluster tells, and the columns that follow from the object alone."""
        if podgroup := group.podgroup:
            priority = self._priority_of_podgroup(podgroup)
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
        return self._tables.jobs.ids.get(stored_uid(group.job.meta.uid))

    def _priority_of_podgroup(self, podgroup: PodGroupObject) -> int:
        """A native one may have none: then its pods say it."""
        if podgroup.priority is not None:
            return podgroup.priority
        first = self._membership.first_pod(podgroup.key)
        if podgroup.is_native and not podgroup.priority_class and first is not None:
            return first.priority
        return self._priority_of(podgroup.priority_class)

    def _priority_of(self, class_name: str) -> int:
        named = self._store.priority_class(class_name)
        if named is not None:
            return named.value
        for value in self._store.objects(PRIORITY_CLASSES):
            if value.global_default:
                return int(value.value)
        return 0

    # Pods

    def write_pods(self, wanted: WantedPods, written: WrittenRows) -> None:
        pods = {uid: pod for uid, pod in wanted.items() if pod is not None}
        classes = class_ids(pods, self._watch, self._store)
        groups = self._group_ids(pods.values())
        rows = {}
        for uid, pod in pods.items():
            rows[uid] = object_rows.pod_row(
                pod,
                podgroup_id=groups[group_key(pod)],
                pod_class_id=classes[uid],
                node_ids=self._tables.nodes.ids,
                budgets=budgets_of(pod, self._store),
            )
        for uid in self._tables.pods.write(rows):
            group = self._membership.group(group_key(pods[uid]))
            assert group is not None
            written.podgroups.add(f"{pods[uid].meta.namespace}/{group.name}")

    def _group_ids(self, pods: Iterable[PodObject]) -> dict[str, int]:
        found = {}
        for key in {group_key(pod) for pod in pods}:
            uid = self._tables.uid_of_group(key)
            assert uid is not None
            found[key] = self._tables.podgroups.ids[uid]
        return found


def _forget_reasons(ids: Collection[int]) -> None:
    """Of podgroups that have ended: no session looks at them any more."""
    if not ids:
        return
    PodGroup.objects.filter(pk__in=ids).exclude(reason_code="").update(
        reason_code="", reason_message="", reason_figures={}, reason_checks=[]
    )
