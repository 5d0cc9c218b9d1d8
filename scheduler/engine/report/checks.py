"""What a waiting podgroup needs to start, and every test of it against queues, cluster and nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from scheduler.domain.nodes import Amounts
from scheduler.domain.queues import ROOT
from scheduler.domain.reasons import ReasonCode
from scheduler.engine.decisions import Check
from scheduler.engine.refusals import Shortfall
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang
from scheduler.engine.state.holdings import holdings_of
from scheduler.engine.state.nodes import copies
from scheduler.engine.state.queue_specs import NO_LIMIT

Asked = tuple[int, str, int]
"""Column, name and amount of a resource that is asked for."""

Told = dict[tuple[str, str], Shortfall]
"""What was found when the gang was turned away, by level and resource."""


def missing_pods(session: Session, gang: Gang) -> list[int]:
    """The pods that its gang still needs a place for, in task order."""
    return session.tasks.unplaced_pods(gang)[: max(1, gang.min_member - gang.ready - gang.waiting)]


def needed(session: Session, gang: Gang) -> Amounts:
    """What the rest of the gang asks for at once: minResources for a gang that is not admitted yet,
    else the pods themselves.
    """
    groups = session.snapshot.groups
    pods = missing_pods(session, gang)
    by_minimum = groups.has_min_resources[gang.row] and (gang.is_waiting_outside or not pods)
    amounts: Amounts = (
        groups.min_resources[gang.row]
        if by_minimum
        else session.request[session.pod_classes[pods]].sum(axis=0)
    )
    return amounts


def pod_classes_of(session: Session, gang: Gang) -> list[int]:
    """The classes of the pods still needed, each once, in task order."""
    return list(dict.fromkeys(int(session.pod_classes[pod]) for pod in missing_pods(session, gang)))


def checks_of(session: Session, gang: Gang) -> tuple[Check, ...]:
    """Every test, level by level from the queue up, then the cluster, then the nodes."""
    asked = _asked(session, needed(session, gang))
    found = [*_queue_checks(session, gang, asked), *_cluster_checks(session, asked)]
    for pod_class in pod_classes_of(session, gang):
        found.extend(_node_checks(session, pod_class))
    return tuple(found)


def _asked(session: Session, need: Amounts) -> list[Asked]:
    amounts = need.tolist()
    return [
        (dim, session.snapshot.resources[dim], amounts[dim])
        for dim in np.flatnonzero((need > 0) & session.queue_usage.dims).tolist()
    ]


def _queue_checks(session: Session, gang: Gang, asked: list[Asked]) -> Iterator[Check]:
    quotas = session.quotas
    if quotas is None:
        return
    told = _found_by_enqueue(gang)
    for row in session.queue_tree.path_list(gang.queue):
        yield from _level_checks(
            session, told, asked, row, "capability", quotas.real_capability[row]
        )
        if row == gang.queue:
            yield from _level_checks(session, {}, asked, row, "deserved", quotas.deserved[row])


def _level_checks(
    session: Session, told: Told, asked: list[Asked], row: int, name: str, limit: Amounts
) -> Iterator[Check]:
    level = session.queue_tree.names[row]
    allocated = session.queue_usage.allocated[row].tolist()
    limits = limit.tolist()
    for dim, resource, need in asked:
        if (level, resource) in told:
            yield level_check(session, row, dim, name, told[level, resource])
        elif limits[dim] < NO_LIMIT:
            yield level_check(
                session,
                row,
                dim,
                name,
                Shortfall(resource, level, need, limits[dim], allocated[dim]),
            )


def level_check(session: Session, row: int, dim: int, name: str, given: Shortfall) -> Check:
    """With what is in use and promised there, as every other check has it; what was counted beyond
    that is for gangs admitted before.
    """
    holdings = holdings_of(session)
    used = int(holdings.in_use[row, dim])
    leaving = int(holdings.leaving[row, dim])
    promised = int(holdings.promised[row, dim])
    admitted = max(0, given.used - (used - leaving) - promised)
    free = given.limit - given.used + given.lent
    return Check(
        name,
        given.level,
        given.resource,
        given.need,
        given.limit,
        used,
        free,
        promised,
        leaving=leaving + given.lent,
        admitted=admitted,
    )


def _found_by_enqueue(gang: Gang) -> Told:
    """The tests that enqueue turned the gang away with, as they stood then: the list must say what
    the sentence says.
    """
    refusal = gang.refusal
    if refusal is None or refusal.code is ReasonCode.CLUSTER_BUSY:
        return {}
    return {(short.level, short.resource): short for short in refusal.shortfalls}


def _cluster_checks(session: Session, asked: list[Asked]) -> Iterator[Check]:
    nodes = holdings_of(session).nodes
    for dim, resource, need in asked:
        yield Check(
            "cluster",
            ROOT,
            resource,
            need,
            limit=nodes.total[dim],
            used=nodes.used[dim],
            free=nodes.free[dim],
            promised=nodes.promised[dim],
            leaving=nodes.leaving[dim],
        )


def _node_checks(session: Session, pod_class: int) -> Iterator[Check]:
    """One pod of each class against the node with the most room for what it asks."""
    node = roomiest_node(session, pod_class)
    if node < 0:
        return
    node_table = session.node_table
    name = node_table.names[node]
    free = node_table.free([node])[:, 0].tolist()
    limits, used, promised, leaving = (
        amounts[:, node].tolist()
        for amounts in (
            node_table.allocatable,
            node_table.used,
            node_table.promised,
            node_table.releasing,
        )
    )
    for dim, resource, need in _asked(session, session.request[pod_class]):
        yield Check(
            "node",
            name,
            resource,
            need,
            limits[dim],
            used[dim],
            free[dim],
            promised[dim],
            leaving[dim],
        )


def roomiest_node(session: Session, pod_class: int) -> int:
    """The suitable node that comes closest to holding a pod of this class; -1 without any."""
    return session.node_scores(pod_class).roomiest_node()


def fits_some_node(session: Session, pod_class: int) -> bool:
    """Whether any suitable node could hold a pod of this class if it were empty."""
    return session.node_scores(pod_class).fits_an_empty_node


def largest_node(session: Session, pod_class: int) -> int:
    """The suitable node that would come closest to holding a pod of this class if it were empty; -1
    without any.
    """
    nodes = np.flatnonzero(session.node_scores(pod_class).suitable)
    if not len(nodes):
        return -1
    request = session.request[pod_class]
    covered = np.full(len(nodes), np.inf)
    for dim in np.flatnonzero(request > 0):
        covered = np.minimum(covered, session.node_table.allocatable[dim, nodes] / request[dim])
    return int(nodes[covered.argmax()])


def nodes_short_of(session: Session, pod_class: int) -> dict[int, int]:
    """By column, on how many suitable nodes one more pod of this class lacks the resource, when all
    that fit have their place.
    """
    request = session.request[pod_class]
    free = session.node_table.free()
    free = free - request[:, None] * copies(free, request)
    suitable = session.node_scores(pod_class).suitable
    return {
        int(dim): int((suitable & (free[dim] < request[dim])).sum())
        for dim in np.flatnonzero(request > 0)
    }


def scarce(session: Session, gang: Gang) -> int:
    """The column of the resource that keeps the gang waiting: what most nodes are short of for the
    first class that lacks places.
    """
    pod_classes = [int(session.pod_classes[pod]) for pod in missing_pods(session, gang)]
    pod_class = next(
        (
            pod_class
            for pod_class in dict.fromkeys(pod_classes)
            if _places(session, pod_class) < pod_classes.count(pod_class)
        ),
        pod_classes[0],
    )
    counts = nodes_short_of(session, pod_class)
    return max(counts, key=lambda dim: counts[dim])


def _places(session: Session, pod_class: int) -> int:
    node_scores = session.node_scores(pod_class)
    return int(
        copies(session.node_table.free(), session.request[pod_class])[node_scores.suitable].sum()
    )
