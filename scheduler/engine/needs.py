"""What a waiting podgroup needs to start, and every test of it against queues, cluster and nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from scheduler.domain.nodes import Amounts
from scheduler.domain.queues import ROOT
from scheduler.engine.decisions import Check, ReasonCode
from scheduler.engine.job import Job
from scheduler.engine.session import Session
from scheduler.engine.specs import NO_LIMIT


def missing_pods(session: Session, job: Job) -> list[int]:
    """The pods that its gang still needs a place for, in task order."""
    return session.unplaced_pods(job)[: max(1, job.min_member - job.ready - job.waiting)]


def needed(session: Session, job: Job) -> Amounts:
    """What the rest of the gang asks for at once: minResources for a job that is not let in yet, else the pods themselves."""
    groups = session.snapshot.groups
    pods = missing_pods(session, job)
    by_minimum = groups.has_min_resources[job.row] and (job.is_waiting_outside or not pods)
    amounts: Amounts = groups.min_resources[job.row] if by_minimum else session.request[session.kinds[pods]].sum(axis=0)
    return amounts


def kinds_of(session: Session, job: Job) -> list[int]:
    """The classes of the pods still needed, each once, in task order."""
    return list(dict.fromkeys(int(session.kinds[pod]) for pod in missing_pods(session, job)))


def checks_of(session: Session, job: Job) -> tuple[Check, ...]:
    """Every test, level by level from the queue up, then the cluster, then the nodes."""
    need = needed(session, job)
    found = [*_queue_checks(session, job, need), *_cluster_checks(session, need)]
    for kind in kinds_of(session, job):
        found.extend(_node_checks(session, kind))
    return tuple(found)


def _asked(session: Session, need: Amounts) -> list[tuple[int, str]]:
    return [(int(dim), session.snapshot.resources[dim]) for dim in np.flatnonzero((need > 0) & session.book.dims)]


def _queue_checks(session: Session, job: Job, need: Amounts) -> Iterator[Check]:
    quotas = session.quotas
    if quotas is None:
        return
    for row in session.forest.path(job.queue).tolist():
        yield from _level_checks(session, job, need, row, "capability", quotas.real_capability[row])
        if row == job.queue:
            yield from _level_checks(session, job, need, row, "deserved", quotas.deserved[row])


def _level_checks(session: Session, job: Job, need: Amounts, row: int, name: str, limit: Amounts) -> Iterator[Check]:
    level, used = session.forest.names[row], session.book.allocated[row]
    told = _told_at_the_door(job) if name == "capability" else {}
    for dim, resource in _asked(session, need):
        if (level, resource) in told:
            yield told[level, resource]
        elif limit[dim] < NO_LIMIT:
            passed = bool(need[dim] + used[dim] <= limit[dim])
            yield Check(name, level, resource, int(need[dim]), int(limit[dim]), int(used[dim]), passed)


def _told_at_the_door(job: Job) -> dict[tuple[str, str], Check]:
    """The tests that enqueue turned the job away with, as they stood then: the list must say what the sentence says."""
    refusal = job.refusal
    if refusal is None or refusal.code is ReasonCode.CLUSTER_BUSY:
        return {}
    return {
        (short.level, short.resource): Check(
            "capability", short.level, short.resource, short.need, short.limit, short.used - short.lent, passed=False
        )
        for short in refusal.shortfalls
    }


def _cluster_checks(session: Session, need: Amounts) -> Iterator[Check]:
    used = session.floor.used.sum(axis=1)
    for dim, resource in _asked(session, need):
        passed = bool(need[dim] + used[dim] <= session.total[dim])
        yield Check("cluster", ROOT, resource, int(need[dim]), int(session.total[dim]), int(used[dim]), passed)


def _node_checks(session: Session, kind: int) -> Iterator[Check]:
    """One pod of each class against the node with the most room for what it asks."""
    node = roomiest_node(session, kind)
    if node < 0:
        return
    request, allocatable, free = session.request[kind], session.floor.allocatable[:, node], session.floor.free([node])[:, 0]
    for dim, resource in _asked(session, request):
        passed = bool(request[dim] <= free[dim])
        used = int(allocatable[dim] - free[dim])
        yield Check("node", session.floor.names[node], resource, int(request[dim]), int(allocatable[dim]), used, passed)


def roomiest_node(session: Session, kind: int) -> int:
    """The suitable node that comes closest to holding a pod of this class; the first by name among equals; -1 without any."""
    nodes = np.flatnonzero(session.board(kind).suitable)
    if not len(nodes):
        return -1
    request, free = session.request[kind], session.floor.free(nodes)
    covered = np.full(len(nodes), np.inf)
    for dim in np.flatnonzero(request > 0):
        covered = np.minimum(covered, free[dim] / request[dim])
    return int(nodes[covered.argmax()])


def fits_some_node(session: Session, kind: int) -> bool:
    """Whether any suitable node could hold a pod of this class if it were empty."""
    return session.board(kind).fits_an_empty_node
