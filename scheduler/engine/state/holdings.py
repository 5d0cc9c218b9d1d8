"""What pods hold on nodes and what is promised to pods that wait: counted as nodes count it, by
queue and up the tree.

The sums that limits are compared with (`QueueBook.allocated`) follow Volcano: a promised place
counts there, a pod that is leaving does not. People ask another question, what is in use, and the
answer must be the same for the nodes, the root queue and every queue.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from scheduler.domain.codes import StatusCode
from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import IS_ALLOCATED, Ints, Rows
from scheduler.engine.session import Session
from scheduler.engine.state.nodes import SessionNodeTable
from scheduler.engine.state.queue_tree import SessionQueueTree


@dataclass(frozen=True, slots=True)
class NodeSums:
    """By resource, over all nodes that are ready.

    `free` is what is idle now and promised to nobody.
    """

    total: list[int]
    used: list[int]
    leaving: list[int]
    promised: list[int]
    free: list[int]


@dataclass(frozen=True, eq=False)
class Holdings:
    """Queues by resources.

    `in_use` is what pods hold on nodes: bound, running or leaving. `leaving` is the part of it that
    is on its way out, or on a node that does not answer. `promised` is room that is kept for pods
    that wait.
    """

    in_use: Amounts
    leaving: Amounts
    promised: Amounts
    nodes: NodeSums


def holdings_of(session: Session) -> Holdings:
    """As things stand now. Asked for many gangs in a row, so it is kept until something changes."""
    kept: tuple[int, Holdings] | None = session.__dict__.get("_holdings")
    if kept is None or kept[0] != session.queue_usage.state:
        kept = session.__dict__["_holdings"] = (session.queue_usage.state, _holdings(session))
    return kept[1]


def _holdings(session: Session) -> Holdings:
    status = session.status
    is_on_node = session.nodes >= 0
    leaving = _by_queue(
        session, ((status == StatusCode.RELEASING) | (status == StatusCode.UNKNOWN)) & is_on_node
    )
    promised = _by_queue(session, status == StatusCode.PIPELINED)
    nowhere = _by_queue(session, IS_ALLOCATED[status] & ~is_on_node)
    booked = (
        session.queue_usage.allocated
        if session.queue_tree.hierarchical
        else _up_the_tree(session, session.queue_usage.allocated)
    )
    return Holdings(
        booked - promised - nowhere + leaving, leaving, promised, _node_sums(session.node_table)
    )


def _node_sums(node_table: SessionNodeTable) -> NodeSums:
    free = node_table.free()[:, node_table.ready].clip(min=0)
    parts = (
        node_table.allocatable,
        node_table.used,
        node_table.releasing,
        node_table.promised,
        free,
    )
    return NodeSums(*(amounts.sum(axis=1).tolist() for amounts in parts))


def _by_queue(session: Session, pods: Mask) -> Amounts:
    """What these pods ask for, summed into their queues and up the tree."""
    rows = np.flatnonzero(pods)
    return by_queue(
        session, session.snapshot.pods.group[rows], session.request[session.pod_classes[rows]]
    )


def by_queue(session: Session, groups: Ints | Rows, amounts: Amounts) -> Amounts:
    """An amount for each of these podgroups, summed into their queues and up the tree."""
    table = session.snapshot.groups
    known = table.alive[groups] & (table.queue[groups] >= 0)
    sums = np.zeros((len(session.queue_tree), len(session.snapshot.resources)), dtype=np.int64)
    np.add.at(sums, table.queue[groups[known]], amounts[known])
    return _up_the_tree(session, sums)


def _up_the_tree(session: Session, sums: Amounts) -> Amounts:
    """Also where the policy takes the queues as a flat set: the tree is there all the same, and
    root stands for the cluster.
    """
    tree = SessionQueueTree.of(session.snapshot, hierarchical=True)
    whole = np.zeros((len(tree), sums.shape[1]), dtype=np.int64)
    whole[: len(sums)] = sums
    tree.add_up(whole)
    return whole[: len(sums)]


def asked_for(session: Session, never: Collection[int]) -> Amounts:
    """What pods that wait ask for and are not promised, of all podgroups but these, which can never
    run.
    """
    pods = session.snapshot.pods
    pending = session.snapshot.aggregates.group_pending.copy()
    pending[list(never)] = 0
    given = _by_queue(
        session, (pods.status == StatusCode.PENDING) & (session.status != StatusCode.PENDING)
    )
    asking = np.flatnonzero(pending.any(axis=1))
    asked: Amounts = np.maximum(0, by_queue(session, asking, pending[asking]) - given)
    return asked
