"""The working copy of a snapshot: what actions ask and change, one step at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from scheduler.domain.codes import PhaseCode, StatusCode
from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.queues import DequeueStrategy
from scheduler.domain.snapshot import Snapshot
from scheduler.domain.tables import IS_READY, Codes, Rows
from scheduler.domain.workloads import Phase
from scheduler.engine.arguments import choice, number
from scheduler.engine.decisions import Check, Grounds
from scheduler.engine.dispatch import PluginDispatch
from scheduler.engine.future_places import FuturePlaces
from scheduler.engine.plugin import Key, Plugin
from scheduler.engine.policy import PluginConfig, Policy
from scheduler.engine.refusals import Refusal
from scheduler.engine.reservations import hold_reservations
from scheduler.engine.state.gang import Gang, Role
from scheduler.engine.state.kept_nodes import ClassAtOpen, KeptNodes
from scheduler.engine.state.nodes import NodeScores, SessionNodeTable
from scheduler.engine.state.pod_rules import PodRuleCounts, RuledNodeScores
from scheduler.engine.state.queue_quotas import Quotas
from scheduler.engine.state.queue_specs import QueueSpecs
from scheduler.engine.state.queue_tree import SessionQueueTree
from scheduler.engine.state.queue_usage import QueueUsage
from scheduler.engine.state.tasks import Tasks
from scheduler.engine.state.unplaceable import beyond_all_nodes
from scheduler.engine.statement import Operation, OperationType, Statement


class Session(PluginDispatch):
    """One session. Actions ask it questions and open statements; plugins answer them.

    Only statements change what is placed where.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        policy: Policy,
        plugins: Iterable[tuple[int, PluginConfig, Plugin]],
        *,
        reporting: bool = True,
    ) -> None:
        super().__init__(policy, plugins)
        self.snapshot = snapshot
        self.reporting = reporting  # whether it must be told of each gang why it waits

        # 1. Queues: their tree, what their specs say, what they use
        self.queue_tree = SessionQueueTree.of(snapshot, hierarchical=self._is_hierarchical())
        self.specs = QueueSpecs.of(snapshot, self.queue_tree)
        self.queue_usage = QueueUsage(snapshot, self.queue_tree, self.specs)
        self.refused_queues: dict[int, Refusal] = {}
        self.warnings: list[str] = []
        self.queue_warnings: defaultdict[int, list[str]] = defaultdict(list)
        self._layer_keys: dict[int, tuple[int, Key]] = {}

        # 2. Nodes: what they have, what is used on them, how well they suit a class of pods
        self.node_table = SessionNodeTable(snapshot)
        self.total = self.node_table.total
        self._nodes_at_open = None
        if self.node_answers_last:
            self._nodes_at_open = KeptNodes.of(snapshot, policy).begin(self.node_table.used)
        self._node_scores: dict[tuple[int, int], NodeScores] = {}
        most_future_places = number(policy.configurations.get("allocate", {}), "setAside", 0)
        self.future_places = FuturePlaces(self, most_future_places)

        # 3. Pods and their classes: by pod its status and node, by class what one pod asks for
        self.status = snapshot.pods.status.copy()
        self.nodes = snapshot.pods.node.copy()
        self.pod_classes = snapshot.pods.pod_class
        self.request: Amounts = snapshot.classes.request
        self.role: list[int] = snapshot.classes.role.tolist()
        self._asked: dict[int, list[tuple[int, int]]] = {}

        # 4. Gangs: how many pods of each podgroup are ready, pending, placed or promised a place
        counts = snapshot.aggregates.group_counts
        self.ready_counts = counts[:, IS_READY].sum(axis=1)
        self.pending_counts = counts[:, StatusCode.PENDING]
        self.placed_counts = self.ready_counts.copy()
        self.task_counts = counts.sum(axis=1) - counts[:, StatusCode.GONE]
        self.allocated_by_gang: Amounts = snapshot.aggregates.group_allocated.copy()
        self.phases: Codes = snapshot.groups.phase.copy()
        self.tasks = Tasks(self)
        self._gangs: dict[int, Gang] = {}
        self.touched_gangs: list[int] = []  # every podgroup that changed, in order
        self.pod_rules = PodRuleCounts.of(self)  # None where no pod has rules about others

        # 5. Decisions: nothing so far
        self.binds: list[Operation] = []
        self.evictions: list[Operation] = []
        self.evicted_for: Counter[int] = Counter()  # podgroup -> how many made room for it
        self.grounds: dict[
            tuple[object, ...], Grounds
        ] = {}  # found so far, by what they follow from
        self.checks: dict[tuple[object, ...], tuple[Check, ...]] = {}  # the same, for reasons
        self.status_before_eviction: dict[int, int] = {}
        self.reserved_nodes: dict[int, int] = {}  # pod -> node that is kept for it
        self.positions_in_line: dict[int, int] = {}  # podgroup -> its place in a line that stopped
        self.starving: dict[int, int] = {}  # podgroup -> session that first saw it starving
        self.shed_gangs: set[int] = set()
        self.preemption_attempts = 0  # how often victims were looked for

        # 6. Plugins compute what they need, and promises of earlier sessions are held
        for _, _, plugin in self._plugins:
            plugin.open(self)
        hold_reservations(self)

    def close(self) -> None:
        for _, _, plugin in self._plugins:
            plugin.close()

    # Gangs

    def gang(self, row: int) -> Gang:
        found = self._gangs.get(row)
        if found is None:
            found = self._gangs[row] = Gang(self, row)
            if self.snapshot.groups.role_minimums[row]:
                self._count_roles(found)
        return found

    def gangs(self, rows: Rows) -> list[Gang]:
        return [self.gang(row) for row in rows.tolist()]

    def is_known(self, row: int) -> bool:
        """Whether this session has dealt with the podgroup so far."""
        return row in self._gangs

    def known_gangs(self) -> Iterable[Gang]:
        """The gangs that this session has dealt with so far."""
        return self._gangs.values()

    def _count_roles(self, gang: Gang) -> None:
        """Only podgroups with minimums per role need this."""
        for role, minimum in self.snapshot.groups.role_minimums[gang.row]:
            if minimum > 0:
                gang.roles[self.snapshot.classes.role_number(role)] = Role(minimum)
        pods = self.tasks.pods_of(gang.row)
        statuses = self.status[pods].tolist()
        classes = self.pod_classes[pods].tolist()
        for status, pod_class in zip(statuses, classes, strict=True):
            counts = gang.roles.get(self.role[pod_class])
            if counts is not None:
                counts.ready += bool(IS_READY[status])
                counts.pending += status == StatusCode.PENDING

    def active_rows(self, among: Mask | None = None) -> Rows:
        """Admitted podgroups with pods that want a place and may find one, in queues that schedule.

        Only those that `among` marks, if it is given.
        """
        active = self._may_be_tried & (self.phases != PhaseCode.PENDING)
        if among is not None:
            active &= among
        rows: Rows = active.nonzero()[0]
        return rows

    @cached_property
    def _may_be_tried(self) -> Mask:
        """Podgroups that had pods without a place when the session opened, and may be served."""
        waiting: Mask = self.may_be_served & (self.pending_counts > 0)
        return waiting & ~self.beyond_all_nodes

    def active_gangs(self, among: Mask | None = None) -> list[Gang]:
        """The same as gangs."""
        return self.gangs(self.active_rows(among))

    def starving_rows(self) -> Rows:
        """Active podgroups that may be short of what they need: `may_take_room` decides."""
        short = None
        if self.only_gangs_starve:
            short = self.placed_counts < self.snapshot.groups.min_member
        return self.active_rows(short)

    def starving_gangs(self) -> list[Gang]:
        """Active gangs that may be tried and are short of what they need.

        Not those that rules between pods bind: victims are chosen one by one for the room that
        they leave, and nobody looks what their going means for the rules.
        """
        gangs = [self.gang(row) for row in self.starving_rows().tolist()]
        return [gang for gang in gangs if self.may_take_room(gang) and not self._is_ruled(gang)]

    def _is_ruled(self, gang: Gang) -> bool:
        return self.pod_rules is not None and self.pod_rules.bind(gang)

    def may_take_room(self, gang: Gang) -> bool:
        """Not if it is in a line that stands still, has what it needs, or cannot be tried."""
        if gang.row in self.positions_in_line:
            return False
        if self.pod_rules is not None and self.pod_rules.want_company(gang):
            return False  # the next gang might make its company go
        return self.job_starving(gang) and self.refuse_job(gang) is None

    def rows_to_admit(self) -> Rows:
        """Podgroups that have not been admitted, in queues that schedule."""
        is_pending = (self.snapshot.groups.phase == PhaseCode.PENDING) & (
            self.phases == PhaseCode.PENDING
        )
        return np.flatnonzero(self.may_be_served & is_pending)

    def admit_all(self) -> None:
        """Without the action enqueue every gang is admitted."""
        self._set_inqueue(self.rows_to_admit())

    def set_phase(self, gang: Gang, phase: Phase) -> None:
        gang.phase = phase
        self.phases[gang.row] = phase

    def admit(self, gang: Gang) -> None:
        """Every plugin agreed that the gang may be enqueued."""
        for tell in self._flat["job_enqueued"]:
            tell(gang)
        self.set_phase(gang, Phase.INQUEUE)

    def admit_many(self, rows: Rows) -> None:
        """The same for podgroups of one queue, in this order."""
        for tell in self._flat["job_enqueued"]:
            tell.__self__.jobs_enqueued(rows)
        self._set_inqueue(rows)

    def _set_inqueue(self, rows: Rows) -> None:
        self.phases[rows] = PhaseCode.INQUEUE
        for row in rows.tolist():
            gang = self._gangs.get(row)
            if gang is not None:
                gang.phase = Phase.INQUEUE
                gang.refusal = None
        if self.reporting:
            self.gangs(rows)  # a report tells of each of them

    def stop_line(self, gangs: Iterable[Gang]) -> None:
        """A queue that is strictly first in, first out stands still: these gangs wait behind the
        one that could not go.
        """
        for position, gang in enumerate(gangs, start=2):
            self.positions_in_line[gang.row] = position

    def position_in_line(self, gang: Gang) -> int:
        """Its place in a line that stands still because of the gang at its head; 0 if it is in
        none.
        """
        return self.positions_in_line.get(gang.row, 0)

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
    def has_role_minimums(self) -> bool:
        """Whether any podgroup has minimums of roles."""
        return any(self.snapshot.groups.role_minimums)

    @cached_property
    def beyond_all_nodes(self) -> Mask:
        """Podgroups that no action needs to try: their pods do not even fit on empty nodes."""
        return beyond_all_nodes(self)

    @cached_property
    def borrowed(self) -> set[int]:
        """Pods that run on borrowed room."""
        return set(np.flatnonzero(self.snapshot.pods.borrowed).tolist())

    def dominant_share(self, gang: Gang) -> float:
        """The largest part of the cluster that the gang holds of any resource."""
        dims = np.flatnonzero((self.total > 0) & self.queue_usage.dims)
        parts = (int(gang.allocated[dim]) / int(self.total[dim]) for dim in dims)
        return max(parts, default=0.0)

    # Queues

    @cached_property
    def quotas(self) -> Quotas | None:
        """The figures of the first plugin that has any."""
        for _, _, plugin in self._plugins:
            found = plugin.quotas()
            if found is not None:
                return found
        return None

    def is_strict(self, queue: int) -> bool:
        """First in, first out: nobody overtakes a gang that cannot go."""
        return self.queue_tree.queues[queue].spec.dequeue_strategy is DequeueStrategy.FIFO

    @cached_property
    def scheduling_queue(self) -> Mask:
        """Queues whose gangs are subjects of a session; the last entry stands for "no queue"."""
        schedules = self.specs.schedules.copy()
        schedules[list(self.refused_queues)] = False
        return schedules

    @property
    def limiting_checks(self) -> tuple[str, ...]:
        """The limits that allocate keeps a queue to."""
        if self.lends_idle_room:
            return ("deserved", "capability")
        return ("capability",)

    def may_lose(self, queue: int) -> bool:
        """Whether reclaim may take anything from this queue."""
        row = self.queue_tree.queues[queue]
        return row.spec.reclaimable and not (self._protects_held and row.is_held)

    @cached_property
    def losing_leaves(self) -> Mask:
        """Leaves that reclaim may take something from."""
        losing: Mask = self.specs.reclaimable_leaves
        if self._protects_held:
            losing = losing & ~self.specs.held[:-1]
        return losing

    @cached_property
    def _protects_held(self) -> bool:
        settings = self.policy.configurations.get("reclaim", {})
        return choice(settings, "suspendedVictims", ("protect", "allow")) == "protect"

    @cached_property
    def queue_resources(self) -> list[tuple[int, str]]:
        """Column and name of the resources that queues are about, by name."""
        names = enumerate(self.snapshot.resources)
        named = [(dim, name) for dim, name in names if self.queue_usage.dims[dim]]
        return sorted(named, key=lambda pair: pair[1])

    def asked(self, pod_class: int) -> list[tuple[int, int]]:
        """Column and amount of what a pod of this class asks of its queue."""
        found = self._asked.get(pod_class)
        if found is None:
            pairs = enumerate(self.request[pod_class].tolist())
            dims = self.queue_usage.dims
            found = [(dim, amount) for dim, amount in pairs if amount > 0 and dims[dim]]
            self._asked[pod_class] = found
        return found

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
        """Plugins in policy order, then creation time and name."""
        return (*self.gang_rank(gang), gang.created, gang.key)

    # Nodes

    def node_scores(self, pod_class: int, mask: int = 0) -> NodeScores:
        """All nodes against this class of pods.

        `mask` names gangs with a place in the future that the pods must leave free.
        """
        found = self._node_scores.get((pod_class, mask))
        if found is None:
            found = self._node_scores[pod_class, mask] = self._new_scores(pod_class, mask)
        return found

    def _new_scores(self, pod_class: int, mask: int) -> NodeScores:
        found = NodeScores
        if self.is_bound_by_rules(pod_class):
            found = RuledNodeScores
        request = self.request[pod_class]
        if mask:
            suitable = self.node_scores(pod_class).suitable
            block = self.future_places.block(mask)
            scores = found(self.node_table, pod_class, request, suitable, self.scorer, block)
        else:
            kept = self._kept_scores(pod_class)
            suitable = kept.about.suitable if kept else self._suitable_nodes(pod_class)
            scores = found(self.node_table, pod_class, request, suitable, self.scorer, kept=kept)
        if isinstance(scores, RuledNodeScores):
            assert self.pod_rules is not None
            scores.rules = self.pod_rules
        return scores

    def _kept_scores(self, pod_class: int) -> ClassAtOpen | None:
        if self._nodes_at_open is None:
            return None
        return self._nodes_at_open.about(pod_class, lambda: self._suitable_nodes(pod_class))

    def _suitable_nodes(self, pod_class: int) -> Mask:
        return self.suitable_nodes(pod_class, self.node_table.ready)

    def is_bound_by_rules(self, pod_class: int) -> bool:
        """Whether it depends on other pods where pods of this class may go."""
        return self.pod_rules is not None and bool(self.pod_rules.bound[pod_class])

    def allows_on(self, pod_class: int, node: int, *, later: bool = False) -> bool:
        """Whether the rules between pods allow a pod of this class on the node."""
        return self.pod_rules is None or self.pod_rules.allow(pod_class, node, later=later)

    def node_scores_for(self, gang: Gang, pod_class: int) -> NodeScores:
        """The same for pods of this gang.

        They must be gone when a gang that they would be in the way of has its place.
        """
        return self.node_scores(pod_class, self.future_places.mask_for(gang))

    def room_for(self, pod_class: int) -> int:
        """The best node that has or will have room for a pod of this class; -1 if there is none."""
        node_scores = self.node_scores(pod_class)
        node = node_scores.best_node()
        if node >= 0:
            return node
        return node_scores.best_node_later()

    # Decisions

    def statement(self) -> Statement:
        self.future_places.make_up()  # they follow from how things were before
        return Statement(self)

    def decide(self, operation: Operation) -> None:
        """Makes an operation of a committed statement a decision."""
        if operation.type is OperationType.ALLOCATE:
            self.binds.append(operation)
        elif operation.type is OperationType.EVICT:
            self.evictions.append(operation)
            if operation.beneficiary is not None:
                self.evicted_for[operation.beneficiary.row] += 1
        elif operation.type is OperationType.PIPELINE:
            self.reserved_nodes.update(zip(operation.pods, operation.nodes, strict=True))
        else:
            for pod in operation.pods:
                operation.gang.held.pop(pod, None)
                self.reserved_nodes.pop(pod, None)
