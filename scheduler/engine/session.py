"""The working copy of a snapshot: what actions ask and change, one step at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.queues import DequeueStrategy
from scheduler.domain.snapshot import Snapshot
from scheduler.domain.tables import IS_READY, Rows, Scores
from scheduler.domain.workloads import Phase, PodStatus
from scheduler.engine.arguments import choice, number
from scheduler.engine.dispatch import PluginDispatch
from scheduler.engine.future_places import FuturePlaces
from scheduler.engine.plugin import Key, Plugin
from scheduler.engine.policy import PluginConfig, Policy
from scheduler.engine.refusals import Refusal
from scheduler.engine.report.grouping import beyond_all_nodes
from scheduler.engine.state.gang import Gang, Role, ordinal
from scheduler.engine.state.nodes import NodeScores, Scorer, SessionNodeTable, fits
from scheduler.engine.state.queue_quotas import Quotas
from scheduler.engine.state.queue_specs import QueueSpecs
from scheduler.engine.state.queue_tree import SessionQueueTree
from scheduler.engine.state.queue_usage import QueueUsage
from scheduler.engine.statement import Operation, OperationType, Statement

RESERVATION_SESSIONS = 30
"""For how many sessions a place is kept for a pod that waits for it."""

_PENDING = int(
    PodStatus.PENDING
)  # members of an enum are slow to look up, and these are looked up for every pod


class Session(PluginDispatch):
    """One session.

    Actions ask it questions and open statements; plugins answer; nobody else changes anything.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        policy: Policy,
        plugins: Iterable[tuple[int, PluginConfig, Plugin]],
    ) -> None:
        super().__init__(policy, plugins)
        self.snapshot = snapshot
        self.queue_tree = SessionQueueTree.of(snapshot, hierarchical=self._is_hierarchical())
        self.specs = QueueSpecs.of(snapshot, self.queue_tree)
        self.queue_usage = QueueUsage(snapshot, self.queue_tree, self.specs)
        self.node_table = SessionNodeTable(snapshot)
        self.total = self.node_table.total
        self.request: Amounts = snapshot.classes.request
        self.role: list[int] = snapshot.classes.role.tolist()
        self.pod_classes = snapshot.pods.pod_class
        self.status = snapshot.pods.status.copy()
        self.nodes = snapshot.pods.node.copy()
        self.binds: list[Operation] = []
        self.evictions: list[Operation] = []
        self.waits: dict[int, int] = {}  # pod -> node, kept as reservation
        self.evicted: dict[int, int] = {}  # pod -> status before
        self.admitted: list[Gang] = []
        self.behind: dict[int, int] = {}  # podgroup -> its place in a line that does not move
        self.starving: dict[int, int] = {}  # podgroup -> session that first saw it starving
        self.shed_gangs: set[int] = set()
        self.preemption_attempts = 0  # how often victims were looked for
        self.refused_queues: dict[int, Refusal] = {}
        self.warnings: list[str] = []
        self.queue_warnings: defaultdict[int, list[str]] = defaultdict(list)
        self._gangs: dict[int, Gang] = {}
        self._node_scores: dict[tuple[int, int], NodeScores] = {}
        self.future_places = FuturePlaces(
            self, number(policy.configurations.get("allocate", {}), "setAside", 0)
        )
        self._asked: dict[int, list[tuple[int, int]]] = {}
        self._layer_keys: dict[int, tuple[int, Key]] = {}
        self._pod_keys: dict[int, tuple[Any, ...]] = {}
        self._count_tasks()
        self._open()

    def _count_tasks(self) -> None:
        counts = self.snapshot.aggregates.group_counts
        self.ready_counts = counts[:, IS_READY].sum(axis=1)
        self.pending_counts = counts[:, PodStatus.PENDING]
        self.placed_counts = self.ready_counts.copy()  # with those that have room promised
        self.task_counts = counts.sum(axis=1) - counts[:, PodStatus.GONE]

    def _open(self) -> None:
        for _, _, plugin in self._plugins:
            plugin.open(self)
        self._hold_reservations()

    @cached_property
    def quotas(self) -> Quotas | None:
        """The figures of the first queue plugin."""
        return next(
            (found for _, _, plugin in self._plugins if (found := plugin.quotas()) is not None),
            None,
        )

    # Gangs and pods

    def gang(self, row: int) -> Gang:
        found = self._gangs.get(row)
        if found is None:
            found = self._gangs[row] = Gang(self, row)
            if self.snapshot.groups.role_minimums[row]:
                self._count_roles(found)
        return found

    def is_known(self, row: int) -> bool:
        """Whether this session had to do with the podgroup so far."""
        return row in self._gangs

    def known_gangs(self) -> Iterable[Gang]:
        """The gangs that this session had to do with so far."""
        return self._gangs.values()

    def _count_roles(self, gang: Gang) -> None:
        """Only podgroups with minimums per role need this."""
        classes = self.snapshot.classes
        gang.roles = {
            classes.role_number(role): Role(minimum)
            for role, minimum in self.snapshot.groups.role_minimums[gang.row]
            if minimum > 0
        }
        pods = self.pods_of(gang.row)
        for status, pod_class in zip(
            self.status[pods].tolist(), self.pod_classes[pods].tolist(), strict=True
        ):
            counts = gang.roles.get(self.role[pod_class])
            if counts is not None:
                counts.ready += bool(IS_READY[status])
                counts.pending += status == PodStatus.PENDING

    def pods_of(self, row: int) -> Rows:
        """All pods of a podgroup."""
        order, starts = self._pods_by_group
        return order[starts[row] : starts[row + 1]]

    @cached_property
    def _pods_by_group(self) -> tuple[Rows, Rows]:
        group = self.snapshot.pods.group
        order = np.argsort(group, kind="stable")
        return order, np.searchsorted(group[order], np.arange(len(self.snapshot.groups) + 1))

    @cached_property
    def _pending_by_group(self) -> dict[int, list[int]]:
        """Pods without a place when the session opened, in task order; of podgroups that nobody
        tries only when they are asked for.
        """
        pods: dict[int, list[int]] = {}
        rows = np.flatnonzero(self.snapshot.pods.status == _PENDING)
        rows = rows[~self._beyond_all_nodes[self.snapshot.pods.group[rows]]]
        for row, group in zip(rows.tolist(), self.snapshot.pods.group[rows].tolist(), strict=True):
            pods.setdefault(group, []).append(row)
        self._pod_keys.update(zip(rows.tolist(), self.pod_keys(rows), strict=True))
        for members in pods.values():
            if len(members) > 1:
                members.sort(key=self._pod_keys.__getitem__)
        return pods

    def _members(self, gang: Gang) -> list[int]:
        """Its pods without a place when the session opened, in task order."""
        found = self._pending_by_group.get(gang.row)
        if found is None and self._beyond_all_nodes[gang.row]:
            pods = self.pods_of(gang.row)
            pending = pods[self.snapshot.pods.status[pods] == _PENDING].tolist()
            found = self._pending_by_group[gang.row] = sorted(pending, key=self.pod_key)
        return found or []

    def pending_pods(self, gang: Gang) -> list[int]:
        """Its pods without a place, held ones included, in task order."""
        members = self._members(gang)
        codes = self.status[members].tolist()
        return [
            pod
            for pod, code in zip(members, codes, strict=True)
            if code == _PENDING or pod in gang.held
        ]

    def unplaced_pods(self, gang: Gang) -> list[int]:
        """Its pods without a place or a promise of one, in task order."""
        members = self._members(gang)
        codes = self.status[members].tolist()
        return [pod for pod, code in zip(members, codes, strict=True) if code == _PENDING]

    def pod_key(self, pod: int) -> tuple[Any, ...]:
        """Task order: plugins, then the number in the name, creation time, name."""
        found = self._pod_keys.get(pod)
        if found is None:
            pods = self.snapshot.pods
            parts = (ordinal(pods.key[pod]), float(pods.created[pod]), pods.key[pod])
            found = self._pod_keys[pod] = (self.task_key(int(self.pod_classes[pod])), *parts)
        return found

    def pod_keys(self, pods: Rows) -> list[tuple[Any, ...]]:
        """The task order of many pods at once."""
        table = self.snapshot.pods
        names = [table.key[pod] for pod in pods.tolist()]
        pod_classes = self.pod_classes[pods].tolist()
        plugins = {pod_class: self.task_key(pod_class) for pod_class in set(pod_classes)}
        columns = zip(pod_classes, table.created[pods].tolist(), names, strict=True)
        return [
            (plugins[pod_class], ordinal(name), created, name)
            for pod_class, created, name in columns
        ]

    def active_gangs(self, among: Mask | None = None) -> list[Gang]:
        """Admitted gangs with pods that want a place and may find one, in queues that schedule;
        only podgroups that `among` marks.
        """
        served = self.may_be_served & (self.pending_counts > 0) & ~self._beyond_all_nodes
        rows = np.flatnonzero(served if among is None else served & among)
        return [
            gang for row in rows.tolist() if (gang := self.gang(row)).phase is not Phase.PENDING
        ]

    @cached_property
    def _beyond_all_nodes(self) -> Mask:
        return beyond_all_nodes(self)

    def starving_gangs(self) -> list[Gang]:
        """Active gangs that may be tried and are short of what they need; not those in a line that
        stands still.
        """
        short = (
            self.placed_counts < self.snapshot.groups.min_member if self.only_gangs_starve else None
        )
        gangs = (gang for gang in self.active_gangs(short) if gang.row not in self.behind)
        return [gang for gang in gangs if self.job_starving(gang) and self.refuse_job(gang) is None]

    def is_strict(self, queue: int) -> bool:
        """First in, first out: nobody overtakes a gang that can not go."""
        return self.queue_tree.queues[queue].spec.dequeue_strategy is DequeueStrategy.FIFO

    def gangs_to_admit(self) -> list[Gang]:
        rows = np.flatnonzero(self.may_be_served & (self.snapshot.groups.phase == Phase.PENDING))
        return [gang for row in rows.tolist() if (gang := self.gang(row)).phase is Phase.PENDING]

    def admit_all(self) -> None:
        """Without the action enqueue every gang is in."""
        for gang in self.gangs_to_admit():
            gang.phase = Phase.INQUEUE

    @cached_property
    def may_be_served(self) -> Mask:
        """Podgroups that nothing holds back as a whole: neither the state of their queue nor a
        hand.
        """
        groups = self.snapshot.groups
        served: Mask = groups.alive & self.scheduling_queue[groups.queue]
        for texts in (groups.on_hold, groups.not_permitted):
            if any(texts):
                served &= np.array([not text for text in texts], dtype=np.bool_)
        return served

    @cached_property
    def borrowed(self) -> set[int]:
        """Pods that run on borrowed room."""
        return set(np.flatnonzero(self.snapshot.pods.borrowed).tolist())

    @cached_property
    def scheduling_queue(self) -> Mask:
        """Queues whose gangs are subjects of a session; the last entry stands for "no queue"."""
        schedules = self.specs.schedules.copy()
        schedules[list(self.refused_queues)] = False
        return schedules

    @cached_property
    def best_effort(self) -> list[bool]:
        """By class: asks for nothing but a place."""
        flags: list[bool] = self.snapshot.classes.best_effort.tolist()
        return flags

    @cached_property
    def _any_best_effort(self) -> bool:
        return any(self.best_effort)

    def asks_for_nothing(self, pod: int) -> bool:
        return self._any_best_effort and self.best_effort[int(self.pod_classes[pod])]

    def asking_for_something(self, pods: list[int]) -> list[int]:
        """Those of these pods that do, in the same order."""
        if not self._any_best_effort:
            return pods
        return [pod for pod in pods if not self.asks_for_nothing(pod)]

    def size(self, gang: Gang) -> float:
        """The largest part of the cluster that the gang holds of any resource."""
        dims = np.flatnonzero((self.total > 0) & self.queue_usage.dims)
        return max((int(gang.allocated[dim]) / int(self.total[dim]) for dim in dims), default=0.0)

    def may_lose(self, queue: int) -> bool:
        """Whether reclaim may take anything from this queue."""
        row = self.queue_tree.queues[queue]
        return row.spec.reclaimable and not (self._protects_held and row.is_held)

    @cached_property
    def losing_leaves(self) -> Mask:
        """Leaves that reclaim may take something from."""
        losing: Mask = (
            self.specs.reclaimable_leaves & ~self.specs.held[:-1]
            if self._protects_held
            else self.specs.reclaimable_leaves
        )
        return losing

    @cached_property
    def _protects_held(self) -> bool:
        settings = self.policy.configurations.get("reclaim", {})
        return choice(settings, "suspendedVictims", ("protect", "allow")) == "protect"

    def _hold_reservations(self) -> None:
        """Places that earlier sessions promised stay promised, until the pod is tried anew or the
        promise runs out.

        One that can not be kept any more, because the node is gone or has become too small, is
        given back at once.
        """
        pods = self.snapshot.pods
        promised = np.flatnonzero(
            (pods.reserved_node >= 0) & (pods.status == PodStatus.PENDING)
        ).tolist()
        for pod in sorted(
            promised, key=lambda pod: (pods.reserved_until[pod], pods.key[pod])
        ):  # the oldest promise first
            if pods.reserved_until[pod] < self.snapshot.session:
                continue
            node = int(pods.reserved_node[pod])
            gang = self.gang(int(pods.group[pod]))
            if (
                gang.queue < 0
                or not self.scheduling_queue[gang.queue]
                or not self.node_table.ready[node]
            ):
                continue
            pod_class = int(self.pod_classes[pod])
            if not fits(self.node_table.future([node]), self.request[pod_class])[0]:
                continue
            statement = Statement(self)
            statement.pipeline(gang, pod_class, [pod], [node])
            gang.held[pod] = self.waits[pod] = node

    def is_behind(self, gang: Gang) -> int:
        """Its place in the line of a queue that does not move because of the gang before it; 0 if
        that is not so.
        """
        return self.behind.get(gang.row, 0)

    def stop_line(self, gangs: Iterable[Gang]) -> None:
        """A queue that is strictly first in, first out stands still: these gangs wait behind the
        one that could not go.
        """
        for position, gang in enumerate(gangs, start=2):
            self.behind[gang.row] = position

    def victims_for(self, gang: Gang) -> tuple[int, int]:
        """How many pods are on their way out to make room for this gang, and for how many sessions
        it is kept.
        """
        own = [pod for pod in self.pods_of(gang.row).tolist() if pod in self.waits]
        evicted = sum(operation.beneficiary is gang for operation in self.evictions)
        nodes = {self.waits[pod] for pod in own}
        leaving = np.isin(self.nodes, list(nodes)) & (self.status == PodStatus.RELEASING)
        left = min((self.expiry(pod) - self.snapshot.session for pod in own), default=0)
        return evicted or int(leaving.sum()), left

    def expiry(self, pod: int) -> int:
        """The last session that keeps the pod's place: an old promise keeps its end, a new one
        lasts its time.
        """
        pods = self.snapshot.pods
        now = self.snapshot.session
        is_old = pods.reserved_node[pod] == self.waits[pod] and pods.reserved_until[pod] >= now
        if is_old:
            return int(pods.reserved_until[pod])
        return now + RESERVATION_SESSIONS

    @property
    def limiting_checks(self) -> tuple[str, ...]:
        """The limits that allocate keeps a queue to."""
        if self.lends_idle_room:
            return ("deserved", "capability")
        return ("capability",)

    # Decisions

    def statement(self) -> Statement:
        return Statement(self)

    def decide(self, operation: Operation) -> None:
        """Makes an operation of a committed statement a decision."""
        if operation.type is OperationType.ALLOCATE:
            self.binds.append(operation)
        elif operation.type is OperationType.PIPELINE:
            self.waits.update(zip(operation.pods, operation.nodes, strict=True))
        elif operation.type is OperationType.EVICT:
            self.evictions.append(operation)
        else:
            for pod in operation.pods:
                operation.gang.held.pop(pod, None)
                self.waits.pop(pod, None)

    # Orders

    def layer_key(self, queue: int) -> Key:
        """Plugins in policy order; they are asked anew when what the queue uses has changed."""
        version = self.queue_usage.version[queue]
        found = self._layer_keys.get(queue)
        if found is None or found[0] != version:
            found = self._layer_keys[queue] = (version, super().layer_key(queue))
        return found[1]

    def queue_key(self, queue: int) -> tuple[Any, ...]:
        """Plugins in policy order, then creation time and name."""
        row = self.queue_tree.queues[queue]
        return (*self.layer_key(queue), row.created, row.spec.name)

    def job_key(self, gang: Gang) -> tuple[Any, ...]:
        return (*self.gang_rank(gang), gang.created, gang.key)

    def enqueued(self, gang: Gang) -> None:
        """The gang is admitted."""
        for ask in self._flat["job_enqueued"]:
            ask(gang)
        self.admitted.append(gang)
        gang.phase = Phase.INQUEUE

    @cached_property
    def queue_resources(self) -> list[tuple[int, str]]:
        """Column and name of the resources that queues are about, by name."""
        named = [
            (dim, name)
            for dim, name in enumerate(self.snapshot.resources)
            if self.queue_usage.dims[dim]
        ]
        return sorted(named, key=lambda pair: pair[1])

    # Nodes

    def asked(self, pod_class: int) -> list[tuple[int, int]]:
        """Column and amount of what a pod of this class asks of its queue."""
        found = self._asked.get(pod_class)
        if found is None:
            pairs = enumerate(self.request[pod_class].tolist())
            found = self._asked[pod_class] = [
                (dim, amount) for dim, amount in pairs if amount > 0 and self.queue_usage.dims[dim]
            ]
        return found

    def room_for(self, pod_class: int) -> int:
        """The best node that has or will have room for a pod of this class; -1 if there is none."""
        node_scores = self.node_scores(pod_class)
        node = node_scores.best_node()
        if node >= 0:
            return node
        return node_scores.best_node_later()

    def node_scores(self, pod_class: int, mask: int = 0) -> NodeScores:
        """All nodes against this class of pods; `mask` names gangs with a place in the future that
        the pods must leave free.
        """
        found = self._node_scores.get((pod_class, mask))
        if found is None:
            suitable = (
                self.suitable(pod_class) if not mask else self.node_scores(pod_class).suitable
            )
            block = self.future_places.block(mask) if mask else None
            found = self._node_scores[pod_class, mask] = NodeScores(
                self.node_table, pod_class, self.request[pod_class], suitable, self._scorer, block
            )
        return found

    def node_scores_for(self, gang: Gang, pod_class: int) -> NodeScores:
        """The same for pods of this gang, which must be gone when a gang that it would be in the
        way of has its place.
        """
        return self.node_scores(pod_class, self.future_places.mask_for(gang))

    def suitable(self, pod_class: int) -> Mask:
        mask = self.node_table.ready.copy()
        for ask in self._flat["suitable"]:
            nodes = ask(pod_class)
            if nodes is not None:
                mask &= nodes
        return mask

    @cached_property
    def _scorer(self) -> Scorer | None:
        """The sum of all scores, the unchanging part computed once per class; None where no plugin
        scores.
        """
        static = self._flat["static_score"]
        moving = self._flat["score"]
        if not static and not moving:
            return None
        fixed: dict[int, Scores] = {}

        def score(pod_class: int, used: Amounts, nodes: Rows) -> Scores:
            if pod_class not in fixed:
                fixed[pod_class] = _sum(
                    len(self.node_table.names), (ask(pod_class) for ask in static)
                )
            return fixed[pod_class][nodes] + _sum(
                len(nodes), (ask(pod_class, used, nodes) for ask in moving)
            )

        return score

    def close(self) -> None:
        for _, _, plugin in self._plugins:
            plugin.close()


def _sum(length: int, scores: Iterable[Scores | None]) -> Scores:
    total: Scores = np.zeros(length)
    for score in scores:
        if score is not None:
            total = total + score
    return total
