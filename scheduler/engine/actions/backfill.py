"""Backfill: places for pods that ask for nothing, then idle room past a queue's deserved that
nobody else can use.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from scheduler.domain.codes import StatusCode
from scheduler.domain.nodes import Mask
from scheduler.engine.arguments import boolean
from scheduler.engine.ordering import GangLines, QueueLine
from scheduler.engine.placement import Allowance, Placement, TaskLine
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang
from scheduler.engine.statement import Statement


def backfill(session: Session) -> None:
    """Configuration: `beyondDeserved` true."""
    best_effort_first(session)
    if (
        boolean(session.policy.configurations.get("backfill", {}), "beyondDeserved", True)
        and session.lends_idle_room
    ):
        beyond_deserved(session)


def best_effort_first(session: Session) -> None:
    """Pods without a request, whole gangs or none, in queue, gang and task order."""
    if not session.tasks.any_best_effort:
        return
    for gang in _in_order(session, best_effort=True):
        pods = best_effort_pods(session, gang)
        with session.statement() as statement:
            _place_all(session, statement, gang, pods, session.allocatable, borrowed=False)
            if session.job_ready(gang):
                statement.commit()


def best_effort_pods(session: Session, gang: Gang) -> list[int]:
    return [pod for pod in session.tasks.unplaced_pods(gang) if session.tasks.asks_for_nothing(pod)]


def beyond_deserved(session: Session) -> None:
    """Under proportion: gangs that their queue's share has no room for borrow what is idle.

    First what gangs need to start, then surplus.
    """
    for needs_gang in (True, False):
        for gang in _in_order(session, best_effort=False):
            if session.job_ready(gang) is needs_gang:
                continue
            pods = session.tasks.asking_for_something(session.tasks.unplaced_pods(gang))
            with session.statement() as statement:
                _place_all(session, statement, gang, pods, session.borrowable, borrowed=True)
                if session.job_ready(gang):
                    statement.commit()


def _in_order(session: Session, *, best_effort: bool) -> Iterator[Gang]:
    """Gangs with such pods, queue by queue; the order follows what was placed so far."""
    active = session.active_gangs(_with_pods_that(session, best_effort))
    gangs = GangLines.of(
        session,
        (
            gang
            for gang in active
            if _has_any(session, gang, best_effort) and session.refuse_job(gang) is None
        ),
    )
    line = QueueLine(session, gangs.queues())
    while (queue := line.best()) >= 0:
        gang = gangs.pop(queue)
        if gang is None:
            line.leave(queue)
            continue
        yield gang
        line.enter(queue)


def _with_pods_that(session: Session, best_effort: bool) -> Mask:
    """Podgroups with such pods that have no place."""
    pods = np.flatnonzero(session.status == StatusCode.PENDING)
    wanted = pods[session.snapshot.classes.best_effort[session.pod_classes[pods]] == best_effort]
    mask = np.zeros(len(session.snapshot.groups), dtype=np.bool_)
    mask[session.snapshot.pods.group[wanted]] = True
    return mask


def _has_any(session: Session, gang: Gang, best_effort: bool) -> bool:
    if gang.row in session.positions_in_line and not best_effort:
        return False
    return any(
        session.tasks.asks_for_nothing(pod) is best_effort
        for pod in session.tasks.unplaced_pods(gang)
    )


def _place_all(
    session: Session,
    statement: Statement,
    gang: Gang,
    pods: list[int],
    allowance: Allowance,
    *,
    borrowed: bool,
) -> None:
    """As many as there is idle room for."""
    line = TaskLine(session, pods)
    while line:
        placement = Placement(session, statement, gang, line, allowance, later=False)
        placement.borrowed = borrowed
        left = len(line)
        placement.run()
        if len(line) == left:
            return
