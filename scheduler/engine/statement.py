"""Placements and evictions that are tried together, and kept whole or undone whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING

from scheduler.domain.nodes import Amounts
from scheduler.domain.tables import NO_NODE
from scheduler.domain.workloads import PodStatus
from scheduler.engine.state.gang import Job

if TYPE_CHECKING:
    from scheduler.engine.session import Session

_PENDING, _ALLOCATED = int(PodStatus.PENDING), int(PodStatus.ALLOCATED)
_PIPELINED, _RELEASING = int(PodStatus.PIPELINED), int(PodStatus.RELEASING)


class Kind(Enum):
    ALLOCATE = "allocate"
    PIPELINE = "pipeline"
    EVICT = "evict"
    UNHOLD = "unhold"


@dataclass(slots=True, eq=False)
class Operation:
    """`pods` of one class of one job, each on its node. `before` are the sums of the victim's queue when it was evicted."""

    kind: Kind
    job: Job
    pods: Sequence[int]
    pod_class: int
    nodes: Sequence[int]
    borrowed: bool = False
    before: Amounts | None = None
    beneficiary: Job | None = None
    action: str = ""


class Statement:
    """Each operation takes effect at once; leaving the block without `commit` or `keep` undoes them all, last first."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.operations: list[Operation] = []
        self._before: list[
            list[int] | None
        ] = []  # the names that the sums had before each operation; None where they never will again

    def __enter__(self) -> Statement:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.discard()

    def allocate(
        self,
        job: Job,
        pod_class: int,
        pods: Sequence[int],
        nodes: Sequence[int],
        *,
        borrowed: bool = False,
    ) -> None:
        self._do(Operation(Kind.ALLOCATE, job, pods, pod_class, nodes, borrowed))

    def pipeline(self, job: Job, pod_class: int, pods: Sequence[int], nodes: Sequence[int]) -> None:
        """The pods wait for room that is being released on these nodes."""
        self._do(Operation(Kind.PIPELINE, job, pods, pod_class, nodes))

    def evict(self, job: Job, pod: int, action: str, beneficiary: Job | None) -> None:
        session = self.session
        before = session.book.allocated[job.queue].copy()
        operation = Operation(
            Kind.EVICT,
            job,
            [pod],
            int(session.kinds[pod]),
            [int(session.nodes[pod])],
            before=before,
        )
        operation.beneficiary, operation.action = beneficiary, action
        self._do(operation)

    def unhold(self, job: Job) -> None:
        """Gives back what earlier sessions promised to pods of this job: they are about to be tried anew."""
        for pod, node in job.held.items():
            self._do(Operation(Kind.UNHOLD, job, [pod], int(self.session.kinds[pod]), [node]))

    def _do(self, operation: Operation) -> None:
        self._before.append(self.session.book.names(operation.job.queue))
        _APPLY[operation.kind](self.session, operation, 1)
        self.operations.append(operation)

    @property
    def mark(self) -> int:
        """A point to which `discard` can go back."""
        return len(self.operations)

    @property
    def waits_for_room(self) -> bool:
        """Whether somebody has to go, or is going, for it; if not, allocate can do without it."""
        if any(operation.kind is Kind.EVICT for operation in self.operations):
            return True
        floor, request = self.session.floor, self.session.request
        waits = (operation for operation in self.operations if operation.kind is Kind.PIPELINE)
        return any(
            (floor.idle([node])[:, 0] < request[operation.pod_class]).any()
            for operation in waits
            for node in operation.nodes
        )

    def discard(self, mark: int = 0) -> None:
        """Undoes everything since the mark."""
        while len(self.operations) > mark:
            operation, names = self.operations.pop(), self._before.pop()
            _APPLY[operation.kind](self.session, operation, -1)
            if names is not None:
                self.session.book.go_back(operation.job.queue, names)

    def undo(self, operation: Operation) -> None:
        """Takes one operation back, wherever it is."""
        position = self.operations.index(operation)
        del self.operations[position], self._before[position]
        self._before[position:] = [None] * (len(self._before) - position)
        _APPLY[operation.kind](self.session, operation, -1)

    def redo(self, operation: Operation) -> None:
        self._do(operation)

    def commit(self) -> None:
        """Binds and evictions become decisions of the session; what is pipelined becomes a reservation."""
        for operation in self.operations:
            self.session.decide(operation)
        self.operations, self._before = [], []

    def keep(self) -> None:
        """Nothing is bound, but the places stay promised: the job waits for the last of its room."""
        for operation in self.operations:
            if operation.kind is Kind.ALLOCATE:
                _allocate(self.session, operation, -1)
                operation.kind = Kind.PIPELINE
                _pipeline(self.session, operation, 1)
        self.commit()


def _allocate(session: Session, operation: Operation, sign: int) -> None:
    session.floor.use(operation.nodes, session.request[operation.pod_class], sign)
    count = sign * len(operation.pods)
    _count(session, operation, sign, ready=count, pending=-count)
    _mark(session, operation, _ALLOCATED if sign > 0 else _PENDING, sign)


def _pipeline(session: Session, operation: Operation, sign: int) -> None:
    session.floor.promise(operation.nodes, session.request[operation.pod_class], sign)
    count = sign * len(operation.pods)
    _count(session, operation, sign, waiting=count, pending=-count)
    _mark(session, operation, _PIPELINED if sign > 0 else _PENDING, sign)


def _unhold(session: Session, operation: Operation, sign: int) -> None:
    _pipeline(session, operation, -sign)


def _evict(session: Session, operation: Operation, sign: int) -> None:
    (pod,), (node,) = operation.pods, operation.nodes
    if node >= 0:
        session.floor.release(operation.nodes, session.request[operation.pod_class], sign)
    _count(session, operation, -sign, ready=-sign)
    if sign > 0:
        session.evicted[pod] = int(session.status[pod])
        session.status[pod] = _RELEASING
    else:
        session.status[pod] = session.evicted.pop(pod)


def _count(session: Session, operation: Operation, sign: int, **moved: int) -> None:
    """What the pods ask for counts for their job, and for its queue at every level; the pods move between the job's counts."""
    job, amount = operation.job, session.request[operation.pod_class] * (sign * len(operation.pods))
    job.allocated += amount
    job.count(session.role[operation.pod_class], **moved)
    job.rank = None
    session.ready_counts[job.row], session.placed_counts[job.row] = (
        job.ready,
        job.ready + job.waiting,
    )
    session.book.allocate(job.queue, amount)


def _mark(session: Session, operation: Operation, status: int, sign: int) -> None:
    session.status[operation.pods] = status
    session.nodes[operation.pods] = operation.nodes if sign > 0 else NO_NODE


_APPLY = {
    Kind.ALLOCATE: _allocate,
    Kind.PIPELINE: _pipeline,
    Kind.EVICT: _evict,
    Kind.UNHOLD: _unhold,
}
