"""What a waiting gang needs to start, and every check of it against queues, cluster and nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

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

Shortfalls = dict[tuple[str, str], Shortfall]
"""What enqueue found when it refused the gang, by level and resource."""


class Asked(NamedTuple):
    """One resource that is asked for."""

    dim: int
    resource: str
    amount: int


# What the gang needs


def needed_pods(session: Session, gang: Gang) -> list[int]:
    """The pods that the gang still needs a place for; the next one if it has its minimum."""
    if gang.only_class < 0:
        return session.tasks.missing_pods(gang, at_least=1)
    for pod in session.tasks.unplaced_pods(gang):
        if session.pod_classes[pod] == gang.only_class:
            return [pod]
    return []


def needed_amounts(session: Session, gang: Gang) -> Amounts:
    """What the rest of the gang asks for at once.

    That is minResources for a gang that is not admitted yet, else what its pods ask for.
    """
    groups = session.snapshot.groups
    pods = needed_pods(session, gang)
    if groups.has_min_resources[gang.row] and (gang.awaits_admission or not pods):
        minimum: Amounts = groups.min_resources[gang.row]
        return minimum
    amounts: Amounts = session.request[session.pod_classes[pods]].sum(axis=0)
    return amounts


def needed_classes(session: Session, gang: Gang) -> list[int]:
    """The classes of the pods still needed, each once, in task order."""
    classes = session.pod_classes[needed_pods(session, gang)].tolist()
    return list(dict.fromkeys(classes))


def _asked(session: Session, need: Amounts) -> list[Asked]:
    names = session.snapshot.resources
    dims = np.flatnonzero((need > 0) & session.queue_usage.dims)
    return [Asked(dim, names[dim], int(need[dim])) for dim in dims.tolist()]


# The checks


def checks_of(session: Session, gang: Gang) -> tuple[Check, ...]:
    """Every check, level by level from the queue up, then the cluster, then the nodes.

    Gangs that ask for the same share them, unless enqueue refused one with figures of its own.
    """
    asked = _asked(session, needed_amounts(session, gang))
    pod_classes = needed_classes(session, gang)
    if gang.refusal is not None:
        return _new_checks(session, gang, asked, pod_classes)
    key = (session.queue_usage.state, gang.queue, *asked, *pod_classes)
    if key not in session.checks:
        session.checks[key] = _new_checks(session, gang, asked, pod_classes)
    return session.checks[key]


def _new_checks(
    session: Session, gang: Gang, asked: list[Asked], pod_classes: list[int]
) -> tuple[Check, ...]:
    found = [*_queue_checks(session, gang, asked), *_cluster_checks(session, asked)]
    for pod_class in pod_classes:
        found.extend(_node_checks(session, pod_class))
    return tuple(found)


def _queue_checks(session: Session, gang: Gang, asked: list[Asked]) -> Iterator[Check]:
    quotas = session.quotas
    if quotas is None:
        return
    found = _found_by_enqueue(gang)
    for row in session.queue_tree.path_list(gang.queue):
        limit = quotas.real_capability[row]
        yield from _level_checks(session, found, asked, row, "capability", limit)
        if row == gang.queue:
            yield from _level_checks(session, {}, asked, row, "deserved", quotas.deserved[row])


def _found_by_enqueue(gang: Gang) -> Shortfalls:
    """The checks that enqueue refused the gang with, as they were then.

    The list must show the figures of the sentence.
    """
    refusal = gang.refusal
    if refusal is None or refusal.code is ReasonCode.CLUSTER_BUSY:
        return {}
    return {(short.level, short.resource): short for short in refusal.shortfalls}


def _level_checks(
    session: Session,
    found: Shortfalls,
    asked: list[Asked],
    row: int,
    name: str,
    limit: Amounts,
) -> Iterator[Check]:
    level = session.queue_tree.names[row]
    allocated = session.queue_usage.allocated[row].tolist()
    limits = limit.tolist()
    for dim, resource, need in asked:
        short = found.get((level, resource))
        if short is None and limits[dim] < NO_LIMIT:
            short = Shortfall(resource, level, need, limits[dim], allocated[dim])
        if short is not None:
            yield level_check(session, row, dim, name, short)


def level_check(session: Session, row: int, dim: int, name: str, given: Shortfall) -> Check:
    """With what is in use and promised there, as every other check has it.

    What was counted beyond that is reserved for gangs admitted before.
    """
    holdings = holdings_of(session)
    used = int(holdings.in_use[row, dim])
    leaving = int(holdings.leaving[row, dim])
    promised = int(holdings.promised[row, dim])
    return Check(
        name=name,
        level=given.level,
        resource=given.resource,
        need=given.need,
        limit=given.limit,
        used=used,
        free=given.limit - given.used + given.lent,
        promised=promised,
        leaving=leaving + given.lent,
        admitted=max(0, given.used - (used - leaving) - promised),
    )


def _cluster_checks(session: Session, asked: list[Asked]) -> Iterator[Check]:
    nodes = holdings_of(session).nodes
    for dim, resource, need in asked:
        yield Check(
            name="cluster",
            level=ROOT,
            resource=resource,
            need=need,
            limit=nodes.total[dim],
            used=nodes.used[dim],
            free=nodes.free[dim],
            promised=nodes.promised[dim],
            leaving=nodes.leaving[dim],
        )


def _node_checks(session: Session, pod_class: int) -> Iterator[Check]:
    """One pod of the class against the node with the most room for it."""
    node = roomiest_node(session, pod_class)
    if node < 0:
        return
    table = session.node_table
    free = table.free([node])[:, 0]
    for dim, resource, need in _asked(session, session.request[pod_class]):
        yield Check(
            name="node",
            level=table.names[node],
            resource=resource,
            need=need,
            limit=int(table.allocatable[dim, node]),
            used=int(table.used[dim, node]),
            free=int(free[dim]),
            promised=int(table.promised[dim, node]),
            leaving=int(table.releasing[dim, node]),
        )


# Nodes


def roomiest_node(session: Session, pod_class: int) -> int:
    """The suitable node that comes closest to holding a pod of this class; -1 without any."""
    return session.node_scores(pod_class).roomiest_node()


def fits_some_node(session: Session, pod_class: int) -> bool:
    """Whether any suitable node could hold a pod of this class if it were empty."""
    return session.node_scores(pod_class).fits_an_empty_node


def largest_node(session: Session, pod_class: int) -> int:
    """The suitable node that would come closest to holding a pod of this class if it were empty.

    -1 without any.
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
    """By column, on how many suitable nodes one more pod of this class lacks the resource.

    All pods that fit are taken to have their place.
    """
    request = session.request[pod_class]
    free = session.node_table.free()
    free = free - request[:, None] * copies(free, request)
    suitable = session.node_scores(pod_class).suitable
    counts: dict[int, int] = {}
    for dim in np.flatnonzero(request > 0).tolist():
        counts[dim] = int((suitable & (free[dim] < request[dim])).sum())
    return counts


def scarcest_resource(session: Session, gang: Gang) -> int:
    """The column of the resource that keeps the gang waiting.

    That is what most nodes are short of for the first class that lacks places.
    """
    counts = nodes_short_of(session, _first_class_without_places(session, gang))
    return max(counts, key=lambda dim: counts[dim])


def _first_class_without_places(session: Session, gang: Gang) -> int:
    classes: list[int] = session.pod_classes[needed_pods(session, gang)].tolist()
    for pod_class in dict.fromkeys(classes):
        if _places(session, pod_class) < classes.count(pod_class):
            return pod_class
    return classes[0]


def _places(session: Session, pod_class: int) -> int:
    """How many pods of the class all suitable nodes take now."""
    fitting = copies(session.node_table.free(), session.request[pod_class])
    return int(fitting[session.node_scores(pod_class).suitable].sum())
