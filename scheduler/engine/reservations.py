"""Places that are kept for pods from one session to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from scheduler.domain.codes import StatusCode
from scheduler.engine.state.gang import Gang
from scheduler.engine.state.nodes import fits
from scheduler.engine.statement import Statement

if TYPE_CHECKING:
    from scheduler.engine.session import Session

RESERVATION_SESSIONS = 30
"""For how many sessions a place is kept for a pod that waits for it."""


def hold_reservations(session: Session) -> None:
    """Places that earlier sessions promised stay promised until the pod is tried anew, or the
    promise runs out.

    A promise is given up at once when its node is gone or has become too small, or when its gang
    may not start now.
    """
    for pod in _promised_pods(session):
        node = int(session.snapshot.pods.reserved_node[pod])
        gang = session.gang(int(session.snapshot.pods.group[pod]))
        pod_class = int(session.pod_classes[pod])
        if _can_be_held(session, gang, pod_class, node):
            Statement(session).pipeline(gang, pod_class, [pod], [node])
            gang.held[pod] = node
            session.reserved_nodes[pod] = node


def _promised_pods(session: Session) -> list[int]:
    """Pods whose promise has not run out, the oldest promise first."""
    pods = session.snapshot.pods
    waiting = (pods.reserved_node >= 0) & (pods.status == StatusCode.PENDING)
    promised = np.flatnonzero(waiting).tolist()
    promised.sort(key=lambda pod: (pods.reserved_until[pod], pods.key[pod]))
    return [pod for pod in promised if pods.reserved_until[pod] >= session.snapshot.session]


def _can_be_held(session: Session, gang: Gang, pod_class: int, node: int) -> bool:
    if not session.may_be_served[gang.row] or session.refuse_job(gang) is not None:
        return False
    if not session.node_table.ready[node]:
        return False
    return bool(fits(session.node_table.future([node]), session.request[pod_class])[0])


def last_sessions_of(session: Session, pods: Sequence[int]) -> list[int]:
    """The last session that keeps the place of each pod. An old promise keeps its end."""
    if not pods:
        return []  # without a look at the time: such a session comes to the same at any other
    table = session.snapshot.pods
    now = session.snapshot.session
    rows = np.array(pods, dtype=np.intp)
    nodes = np.array([session.reserved_nodes[pod] for pod in pods], dtype=np.intp)
    until = table.reserved_until[rows]
    is_old = (until >= now) & (table.reserved_node[rows] == nodes)
    found: list[int] = np.where(is_old, until, now + RESERVATION_SESSIONS).tolist()
    return found


def leaving_for(session: Session, gang: Gang) -> int:
    """How many pods are on their way out to make room for this gang."""
    evicted = session.evicted_for[gang.row]
    if evicted:
        return evicted
    nodes = {session.reserved_nodes[pod] for pod in _reserved_pods(session, gang)}
    is_leaving = np.isin(session.nodes, list(nodes)) & (session.status == StatusCode.RELEASING)
    return int(is_leaving.sum())


def sessions_left(session: Session, gang: Gang) -> int:
    """For how many more sessions the places of this gang are kept."""
    pods = _reserved_pods(session, gang)
    if not pods:
        return 0
    return min(last_sessions_of(session, pods)) - session.snapshot.session


def _reserved_pods(session: Session, gang: Gang) -> list[int]:
    pods = session.tasks.pods_of(gang.row).tolist()
    return [pod for pod in pods if pod in session.reserved_nodes]
