"""Shed: a gang that ran, fell below its minimum and cannot get back to it gives up the rest, which
it only wastes.
"""

from __future__ import annotations

import numpy as np

from scheduler.domain.codes import PhaseCode
from scheduler.domain.nodes import Amounts
from scheduler.domain.tables import IS_ALLOCATED
from scheduler.domain.workloads import Phase
from scheduler.engine.arguments import boolean, number
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang

REASON = "StarvingInOverusedQueue"


def shed(session: Session) -> None:
    """Lowest priority first, as long as the queue is overused.

    What reclaim broke in this session goes at once, others after a grace. Where reclaim and preempt
    break no gangs, shed waits for a session in which they evict nobody.
    """
    may_evict = not (_spares_gangs(session) and session.evictions)
    grace = number(session.policy.configurations.get("shed", {}), "graceSessions", 3)
    starving = sorted(
        _starving(session), key=lambda gang: (not gang.broken, gang.priority, gang.key)
    )
    seen = set()
    for gang in starving:
        if gang.broken:
            _give_up(session, gang)
        elif _is_stuck(session, gang):
            since = _since(session, gang)
            seen.add(gang.row)
            session.starving[gang.row] = since
            if may_evict and session.snapshot.session - since >= grace:
                _give_up(session, gang)
    _forget_others(session, seen)


def _spares_gangs(session: Session) -> bool:
    """Whether reclaim evicts gangs whole, or members beyond their minimum."""
    return boolean(session.policy.configurations.get("reclaim", {}), "wholeGangs", False)


def _starving(session: Session) -> list[Gang]:
    """Gangs that did run, are short of their minimum, and still hold something, in queues that
    schedule.
    """
    groups = session.snapshot.groups
    counts = session.snapshot.aggregates.group_counts
    ran = (
        ((groups.phase == PhaseCode.RUNNING) | (groups.phase == PhaseCode.UNKNOWN))
        & groups.alive
        & session.scheduling_queue[groups.queue]
    )
    short = (session.ready_counts < groups.min_member) & (counts[:, IS_ALLOCATED].sum(axis=1) > 0)
    rows = {
        *np.flatnonzero(ran & short).tolist(),
        *(operation.gang.row for operation in session.evictions),
    }
    gangs = (session.gang(row) for row in sorted(rows) if ran[row])
    return [
        gang
        for gang in gangs
        if gang.ready + gang.waiting < gang.min_member and len(_held_pods(session, gang))
    ]


def _held_pods(session: Session, gang: Gang) -> list[int]:
    return [
        pod for pod in session.tasks.pods_of(gang.row).tolist() if IS_ALLOCATED[session.status[pod]]
    ]


def _is_stuck(session: Session, gang: Gang) -> bool:
    """Its queue has all that it deserves of what the gang asks for, and what the gang misses is
    beyond that and fits on no node.
    """
    quotas = session.quotas
    if quotas is None:
        return False
    missing, pod_classes = _missing(session, gang)
    allocated = session.queue_usage.allocated[gang.queue]
    deserved = quotas.deserved[gang.queue]
    asked = (missing > 0) & session.queue_usage.dims
    overused = bool((deserved <= allocated)[asked].all())
    beyond = bool((allocated + missing > deserved)[asked].any())
    may_borrow = session.may_borrow(gang.queue)
    return (
        overused
        and beyond
        and not (may_borrow and any(session.room_for(pod_class) >= 0 for pod_class in pod_classes))
    )


def _missing(session: Session, gang: Gang) -> tuple[Amounts, set[int]]:
    """The request of the pods that the gang still needs; pods not made again yet are taken to be
    like those it has.
    """
    needed = gang.min_member - gang.ready - gang.waiting
    pods = session.tasks.unplaced_pods(gang)[:needed]
    pod_classes = [int(session.pod_classes[pod]) for pod in pods]
    pod_classes += [int(session.pod_classes[_held_pods(session, gang)[0]])] * (needed - len(pods))
    total: Amounts = session.request[pod_classes].sum(axis=0)
    return total, set(pod_classes)


def _since(session: Session, gang: Gang) -> int:
    since = int(session.snapshot.groups.starving_since[gang.row])
    if since >= 0:
        return since
    return session.snapshot.session


def _give_up(session: Session, gang: Gang) -> None:
    with session.statement() as statement:
        for pod in sorted(_held_pods(session, gang), key=session.tasks.pod_key, reverse=True):
            statement.evict(gang, pod, "shed", None)
        statement.commit()
    session.set_phase(gang, Phase.PENDING)
    session.shed_gangs.add(gang.row)
    session.starving[gang.row] = -1


def _forget_others(session: Session, seen: set[int]) -> None:
    """Whoever was noted as starving and no longer is starts anew next time."""
    noted = session.snapshot.groups.starving_since >= 0
    for row in np.flatnonzero(noted & session.snapshot.groups.alive).tolist():
        if row not in seen:
            session.starving[row] = -1
