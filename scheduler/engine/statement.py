"""Placements and evictions that are tried together, and kept whole or undone whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from scheduler.domain.nodes import Amounts
from scheduler.domain.tables import NO_NODE
from scheduler.domain.workloads import PodStatus
from scheduler.engine.grounds import Choice, Exchange, note_exchanges
from scheduler.engine.state.gang import Gang

if TYPE_CHECKING:
    from scheduler.engine.decisions import Grounds
    from scheduler.engine.session import Session

_PENDING = int(PodStatus.PENDING)
_ALLOCATED = int(PodStatus.ALLOCATED)
_PIPELINED = int(PodStatus.PIPELINED)
_RELEASING = int(PodStatus.RELEASING)


class OperationType(Enum):
    ALLOCATE = "allocate"
    PIPELINE = "pipeline"
    EVICT = "evict"
    UNHOLD = "unhold"


@dataclass(slots=True, eq=False)
class Operation:
    """`pods` of one class of one gang, each on its node.

    `before` are the sums of the victim's queue when it was evicted. `choice` and `exchange` tell
    what an eviction was decided by.
    """

    type: OperationType
    gang: Gang
    pods: Sequence[int]
    pod_class: int
    nodes: Sequence[int]
    borrowed: bool = False
    before: Amounts | None = None
    beneficiary: Gang | None = None
    action: str = ""
    choice: Choice | None = None
    exchange: Exchange | None = None
    grounds: Grounds | None = None  # found when a report asks for them

    @property
    def sign(self) -> int:
        """Whether its queue has more by it, or less."""
        if self.type in (OperationType.EVICT, OperationType.UNHOLD):
            return -1
        return 1


class Statement:
    """Each operation takes effect at once; leaving the block without `commit` or `keep` undoes them
    all, last first.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.operations: list[Operation] = []
        # The versions that the sums had before each operation; None where they cannot come back.
        self._before: list[list[int] | None] = []

    def __enter__(self) -> Statement:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.discard()

    def allocate(
        self,
        gang: Gang,
        pod_class: int,
        pods: Sequence[int],
        nodes: Sequence[int],
        *,
        borrowed: bool = False,
    ) -> None:
        self._do(Operation(OperationType.ALLOCATE, gang, pods, pod_class, nodes, borrowed))

    def pipeline(
        self, gang: Gang, pod_class: int, pods: Sequence[int], nodes: Sequence[int]
    ) -> None:
        """The pods wait for room that is being released on these nodes."""
        self._do(Operation(OperationType.PIPELINE, gang, pods, pod_class, nodes))

    def evict(
        self,
        gang: Gang,
        pod: int,
        action: str,
        beneficiary: Gang | None,
        choice: Choice | None = None,
    ) -> None:
        session = self.session
        before = session.queue_usage.allocated[gang.queue].copy()
        operation = Operation(
            OperationType.EVICT,
            gang,
            [pod],
            int(session.pod_classes[pod]),
            [int(session.nodes[pod])],
            before=before,
        )
        operation.beneficiary = beneficiary
        operation.action = action
        operation.choice = choice
        self._do(operation)

    def evict_alike(
        self,
        pods: Sequence[int],
        action: str,
        beneficiary: Gang,
        *,
        taker_class: int | None = None,
        choice: Choice | None = None,
    ) -> None:
        """The same for pods of one class and one queue, in this order; sums change once.

        If a pod of `taker_class` is to have its place after each of them, their sums say so.
        """
        session = self.session
        pod_class = int(session.pod_classes[pods[0]])
        gangs = [session.gang(row) for row in session.snapshot.pods.group[pods].tolist()]
        queue = gangs[0].queue
        request = session.request[pod_class]
        moved = -request
        if taker_class is not None and beneficiary.queue == queue:
            moved = session.request[taker_class] - request
        before = session.queue_usage.allocated[queue] + moved * np.arange(len(pods))[:, None]
        nodes = session.nodes[pods].tolist()
        losing: dict[Gang, int] = {}
        for gang, pod, node, sums in zip(gangs, pods, nodes, before, strict=True):
            operation = Operation(OperationType.EVICT, gang, [pod], pod_class, [node], before=sums)
            operation.beneficiary = beneficiary
            operation.action = action
            operation.choice = choice
            self.operations.append(operation)
            losing[gang] = losing.get(gang, 0) + 1
        # Only the state before all of them has a name that can come back.
        self._before.append(session.queue_usage.names(queue))
        self._before.extend([None] * (len(pods) - 1))
        session.node_table.release(nodes, request, 1)
        if session.pod_rules is not None:
            session.pod_rules.release(pod_class, nodes, 1)
        session.queue_usage.allocate(queue, request * -len(pods))
        _count_evicted(session, losing, pod_class)
        statuses = session.status[pods].tolist()
        session.status_before_eviction.update(zip(pods, statuses, strict=True))
        session.status[pods] = _RELEASING

    def unhold(self, gang: Gang) -> None:
        """Gives back what earlier sessions promised to pods of this gang: they are about to be
        tried anew.
        """
        for pod, node in gang.held.items():
            self._do(
                Operation(
                    OperationType.UNHOLD, gang, [pod], int(self.session.pod_classes[pod]), [node]
                )
            )

    def _do(self, operation: Operation) -> None:
        self._before.append(self.session.queue_usage.names(operation.gang.queue))
        _APPLY[operation.type](self.session, operation, 1)
        self.operations.append(operation)

    @property
    def mark(self) -> int:
        """A point to which `discard` can go back."""
        return len(self.operations)

    def victims_since(self, mark: int) -> list[Gang]:
        """The gangs of pods evicted since the mark, one for each pod."""
        operations = self.operations[mark:]
        return [item.gang for item in operations if item.type is OperationType.EVICT]

    @property
    def waits_for_room(self) -> bool:
        """Whether somebody has to go, or is going, for it; if not, allocate can do without it."""
        if any(operation.type is OperationType.EVICT for operation in self.operations):
            return True
        node_table = self.session.node_table
        request = self.session.request
        waits = (
            operation for operation in self.operations if operation.type is OperationType.PIPELINE
        )
        return any(
            (node_table.idle([node])[:, 0] < request[operation.pod_class]).any()
            for operation in waits
            for node in operation.nodes
        )

    def discard(self, mark: int = 0) -> None:
        """Undoes everything since the mark."""
        while len(self.operations) > mark:
            operation = self.operations.pop()
            names = self._before.pop()
            _APPLY[operation.type](self.session, operation, -1)
            if names is not None:
                self.session.queue_usage.go_back(operation.gang.queue, names)

    def undo(self, operation: Operation) -> None:
        """Takes one operation back, wherever it is."""
        position = self.operations.index(operation)
        del self.operations[position], self._before[position]
        self._before[position:] = [None] * (len(self._before) - position)
        _APPLY[operation.type](self.session, operation, -1)

    def redo(self, operation: Operation) -> None:
        self._do(operation)

    def commit(self) -> None:
        """Binds and evictions become decisions of the session; what is pipelined becomes a
        reservation.
        """
        note_exchanges(self.session, self.operations)
        for operation in self.operations:
            self.session.decide(operation)
        self.operations = []
        self._before = []

    def keep(self) -> None:
        """Nothing is bound, but the places stay promised until the gang has all of them."""
        for operation in self.operations:
            if operation.type is OperationType.ALLOCATE:
                _allocate(self.session, operation, -1)
                operation.type = OperationType.PIPELINE
                _pipeline(self.session, operation, 1)
        self.commit()


def _allocate(session: Session, operation: Operation, sign: int) -> None:
    session.node_table.use(operation.nodes, session.request[operation.pod_class], sign)
    if session.pod_rules is not None:
        session.pod_rules.place(operation.pod_class, operation.nodes, sign)
    count = sign * len(operation.pods)
    _count(session, operation, sign, ready=count, pending=-count)
    _mark(session, operation, _ALLOCATED if sign > 0 else _PENDING, sign)


def _pipeline(session: Session, operation: Operation, sign: int) -> None:
    session.node_table.promise(operation.nodes, session.request[operation.pod_class], sign)
    if session.pod_rules is not None:
        session.pod_rules.place(operation.pod_class, operation.nodes, sign)
    count = sign * len(operation.pods)
    _count(session, operation, sign, waiting=count, pending=-count)
    _mark(session, operation, _PIPELINED if sign > 0 else _PENDING, sign)


def _unhold(session: Session, operation: Operation, sign: int) -> None:
    _pipeline(session, operation, -sign)


def _evict(session: Session, operation: Operation, sign: int) -> None:
    (pod,) = operation.pods
    (node,) = operation.nodes
    if node >= 0:
        session.node_table.release(operation.nodes, session.request[operation.pod_class], sign)
        if session.pod_rules is not None:
            session.pod_rules.release(operation.pod_class, operation.nodes, sign)
    _count(session, operation, -sign, ready=-sign)
    if sign > 0:
        session.status_before_eviction[pod] = int(session.status[pod])
        session.status[pod] = _RELEASING
    else:
        session.status[pod] = session.status_before_eviction.pop(pod)


def _count(session: Session, operation: Operation, sign: int, **moved: int) -> None:
    """What the pods ask for counts for their gang, and for its queue at every level; the pods move
    between the gang's counts.
    """
    count = sign * len(operation.pods)
    count_for_gang(session, operation.gang, operation.pod_class, count, **moved)
    amount = session.request[operation.pod_class] * count
    session.queue_usage.allocate(operation.gang.queue, amount)


def count_for_gang(session: Session, gang: Gang, pod_class: int, count: int, **moved: int) -> None:
    gang.allocated += session.request[pod_class] * count
    gang.count(session.role[pod_class], **moved)
    gang.rank = None
    session.touched_gangs.append(gang.row)
    session.ready_counts[gang.row] = gang.ready
    session.placed_counts[gang.row] = gang.ready + gang.waiting


def _count_evicted(session: Session, losing: Mapping[Gang, int], pod_class: int) -> None:
    """The same for many gangs at once, each of which loses so many pods of the class."""
    rows = [gang.row for gang in losing]
    counts = np.array(list(losing.values()))
    session.allocated_by_gang[rows] -= session.request[pod_class] * counts[:, None]
    session.ready_counts[rows] -= counts
    session.placed_counts[rows] -= counts
    session.touched_gangs.extend(rows)
    role = session.role[pod_class]
    for gang, count in losing.items():
        gang.count(role, ready=-count)
        gang.rank = None


def _mark(session: Session, operation: Operation, status: int, sign: int) -> None:
    session.status[operation.pods] = status
    session.nodes[operation.pods] = operation.nodes if sign > 0 else NO_NODE


_APPLY = {
    OperationType.ALLOCATE: _allocate,
    OperationType.PIPELINE: _pipeline,
    OperationType.EVICT: _evict,
    OperationType.UNHOLD: _unhold,
}
