"""Everything that was heard since the last time, written in one transaction.

What is removed goes first, the pods before what they refer to; then everything else, what others
refer to first. So names that were given again find their places free.
"""

from __future__ import annotations

from collections.abc import Collection

from scheduler.clusters.kubernetes.resources import PODS, QUEUES
from scheduler.clusters.kubernetes.values import PodObject
from scheduler.services.cluster.mirror import own_columns
from scheduler.services.cluster.mirror.membership import Membership
from scheduler.services.cluster.mirror.plain_objects import PlainObjects
from scheduler.services.cluster.mirror.pod_rules import ForeignPodsOnNodes, RuleWatch
from scheduler.services.cluster.mirror.queues import remove_queues, write_queues
from scheduler.services.cluster.mirror.store import Store
from scheduler.services.cluster.mirror.table import stored_uid
from scheduler.services.cluster.mirror.tables import MirrorTables
from scheduler.services.cluster.mirror.taken import TakenRoom
from scheduler.services.cluster.mirror.work import Consequences, Work
from scheduler.services.cluster.mirror.workloads import WantedPods, Workloads
from scheduler.services.cluster.mirror.written import WrittenRows


class MirrorWriter:
    """Remembers what is in the tables; `load` reads it, after a start or a failure."""

    def __init__(
        self,
        store: Store,
        scheduler_names: Collection[str],
        *,
        follows_status: bool = False,
        schedules: bool = False,
    ) -> None:
        """With `follows_status` Volcano opens and closes queues, and tells so in their status.

        With `schedules` pods are placed here: sessions and dispatch write to mirrored rows, too.
        """
        self._store = store
        self._follows_status = follows_status
        self._schedules = schedules
        self._membership = Membership(store, scheduler_names, schedules=schedules)
        self._taken = TakenRoom()
        self._tables = MirrorTables(schedules=schedules)
        self._consequences = Consequences(store, self._tables, self._membership)
        self._watch = RuleWatch(scheduler_names)
        self._foreign = ForeignPodsOnNodes(self._watch)
        self._plain_objects = PlainObjects(store, self._tables, self._taken, self._foreign)
        self._workloads = Workloads(
            store, self._tables, self._membership, self._watch, schedules=schedules
        )
        self._was_just_loaded = False

    def load(self) -> None:
        """Compare everything at the next write: the database may hold anything."""
        self._tables.load()
        self._store.touch_everything()
        self._was_just_loaded = True

    def pod_id(self, uid: str) -> int | None:
        """Of the row of this pod; None if it has none."""
        return self._tables.pods.ids.get(stored_uid(uid))

    def write(self) -> WrittenRows:
        """Inside of a transaction. If it fails, `load` has to be called before the next."""
        self._membership.look_again()
        work = Work.of(self._store)
        if self._was_just_loaded:
            work.add_stored(self._tables)
        self._consequences.add_to(work)
        self._follow_rules(work)
        pods = self._wanted_pods(work)
        written = WrittenRows()
        self._write_all(work, pods, written)
        self._was_just_loaded = False
        return written

    def _write_all(self, work: Work, pods: WantedPods, written: WrittenRows) -> None:
        groups = self._workloads.wanted_groups(work)
        self._workloads.remove(work, pods, groups, written)
        self._plain_objects.remove(work, written)
        written.queues |= remove_queues(self._store, self._tables.queues, work.queues)
        self._plain_objects.write(work, written)
        self._write_queues(work, written)
        self._workloads.write_jobs(work, written)
        self._workloads.write_groups(groups, written)
        self._workloads.write_pods(pods, written)

    def _follow_rules(self, work: Work) -> None:
        """If rules between pods look at other labels now, all pods are looked at again."""
        changed = [(uid, self._store.pod(uid)) for uid in work.pod_uids]
        if self._watch.follow(changed):
            work.pod_uids.update(self._store.objects(PODS).by_uid)

    def _wanted_pods(self, work: Work) -> WantedPods:
        """Those that are to have rows. All others are counted on their nodes."""
        wanted: WantedPods = dict.fromkeys(work.stored_pods)
        for uid in work.pod_uids:
            pod = self._store.pod(uid)
            if pod is not None and self._membership.has_row(pod):
                wanted[stored_uid(uid)] = pod
                work.nodes.update(self._taken.drop(uid))
                work.nodes.update(self._foreign.drop(uid))
            else:
                wanted[stored_uid(uid)] = None
                work.nodes.update(self._count(uid, pod))
        if self._schedules:
            self._keep_room_of_bound(work, wanted)
        return wanted

    def _keep_room_of_bound(self, work: Work, wanted: WantedPods) -> None:
        """A pod may lose its podgroup while it is being bound: its room is kept all the same."""
        losing = {}
        for uid in work.pod_uids:
            pod = self._store.pod(uid)
            row = stored_uid(uid)
            if pod is None or pod.node or pod.meta.deleted:
                continue
            if wanted[row] is None and row in self._tables.pods:
                losing[row] = pod
        for uid, node in own_columns.nodes_of_bound(losing):
            pod = losing[uid]
            work.nodes.update(self._taken.put(pod.meta.uid, node, pod.requests))

    def _count(self, uid: str, pod: PodObject | None) -> set[str]:
        """The nodes whose sums changed."""
        if pod is not None and pod.takes_room:
            touched = self._taken.put(uid, pod.node, pod.requests)
            return touched | self._foreign.put(uid, pod)
        return self._taken.drop(uid) | self._foreign.drop(uid)

    def _write_queues(self, work: Work, written: WrittenRows) -> None:
        """A queue that comes or goes may move others: all of them are compared."""
        if work.queues:
            names = {queue.meta.name for queue in self._store.objects(QUEUES)}
            written.queues |= write_queues(
                self._store, self._tables.queues, names, follows_status=self._follows_status
            )
