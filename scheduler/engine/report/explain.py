"""Why a podgroup has not started: the first reason in order of precedence, with every check."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.domain.reasons import REASONS, ReasonCode, reason_entry
from scheduler.engine.decisions import Reason
from scheduler.engine.report.checks import checks_of, needed_classes
from scheduler.engine.report.findings import Finding, Question
from scheduler.engine.report.held_back import (
    another_scheduler_decides,
    awaiting_evaluation,
    behind_others,
    hierarchy_invalid,
    left_out_by_policy,
    not_enough_tasks,
    not_permitted,
    not_supported,
    on_hold,
    queue_closed,
    queue_not_found,
    queue_not_leaf,
    queue_suspended,
    scheduling_paused,
)
from scheduler.engine.report.lacking_room import (
    cluster_busy,
    fragmented,
    gang_incomplete,
    over_deserved,
    pod_rules_not_met,
    reclaim_in_progress,
    reserved_for_guarantees,
    short_of_quota,
)
from scheduler.engine.report.too_large import exceeds_capability, exceeds_cluster, no_node_fits
from scheduler.engine.reservations import leaving_for, sessions_left
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang

QUESTIONS: Mapping[ReasonCode, Question] = {
    ReasonCode.ON_HOLD: on_hold,
    ReasonCode.SCHEDULING_PAUSED: scheduling_paused,
    ReasonCode.ANOTHER_SCHEDULER_DECIDES: another_scheduler_decides,
    ReasonCode.QUEUE_NOT_FOUND: queue_not_found,
    ReasonCode.QUEUE_NOT_LEAF: queue_not_leaf,
    ReasonCode.QUEUE_CLOSED: queue_closed,
    ReasonCode.QUEUE_SUSPENDED: queue_suspended,
    ReasonCode.HIERARCHY_INVALID: hierarchy_invalid,
    ReasonCode.NOT_PERMITTED: not_permitted,
    ReasonCode.NOT_ENOUGH_TASKS: not_enough_tasks,
    ReasonCode.NOT_SUPPORTED: not_supported,
    ReasonCode.EXCEEDS_CAPABILITY: exceeds_capability,
    ReasonCode.EXCEEDS_CLUSTER: exceeds_cluster,
    ReasonCode.NO_NODE_FITS: no_node_fits,
    ReasonCode.RECLAIM_IN_PROGRESS: reclaim_in_progress,
    ReasonCode.WAITING_FOR_QUOTA: short_of_quota,
    ReasonCode.RESERVED_FOR_GUARANTEES: reserved_for_guarantees,
    ReasonCode.POD_RULES_NOT_MET: pod_rules_not_met,
    ReasonCode.OVER_DESERVED_NOT_RECLAIMABLE: over_deserved,
    ReasonCode.GANG_INCOMPLETE: gang_incomplete,
    ReasonCode.FRAGMENTED: fragmented,
    ReasonCode.CLUSTER_BUSY: cluster_busy,
    ReasonCode.BEHIND_OTHERS: behind_others,
    ReasonCode.LEFT_OUT_BY_POLICY: left_out_by_policy,
    ReasonCode.AWAITING_EVALUATION: awaiting_evaluation,
}
"""What is asked for each reason, in the order of `REASONS`.

Questions about a queue are asked only when it exists, because QueueNotFound comes before them.
"""


def explain(session: Session, gang: Gang) -> Reason:
    """The first finding in order of precedence, with every check that was made."""
    code, message, figures = _first_finding(session, gang)
    if not reason_entry(code).is_about_room:
        return Reason(code, message, figures)
    if reason_entry(code).lacks_room and _counts_what_is_not_done(session):
        message = f"{message} This counts what Fumarole would start before it."
    return Reason(code, message, figures, checks_of(session, gang))


def _counts_what_is_not_done(session: Session) -> bool:
    """The session has placed others first. Where it only watches, they have no places."""
    return session.snapshot.is_watched and bool(session.binds)


def _first_finding(session: Session, gang: Gang) -> Finding:
    for entry in REASONS:
        found = QUESTIONS[entry.code](session, gang)
        if found is not None:
            return found
    return awaiting_evaluation(session, gang)


def is_impossible(session: Session, gang: Gang) -> bool:
    """It asks for more than its queue may ever use, than the cluster has, or than any node has.

    This is also true of gangs for which another reason comes first.
    """
    if gang.queue < 0:
        return True
    questions = (exceeds_capability, exceeds_cluster, no_node_fits)
    return any(ask(session, gang) is not None for ask in questions)


def signature(session: Session, gang: Gang) -> tuple[object, ...]:
    """Gangs with the same signature have the same reason in this session."""
    groups = session.snapshot.groups
    texts = (groups.on_hold[gang.row], groups.not_permitted[gang.row])
    state = (
        gang.queue,
        gang.phase,
        gang.ready,
        gang.waiting,
        gang.pending,
        gang.min_member,
        gang.tasks,
        gang.failed,
        gang.placeable,
        gang.blocked,
        gang.refusal,
    )
    classes = needed_classes(session, gang)
    needs = (groups.min_resources[gang.row].tobytes(), *classes)
    if gang.roles or session.position_in_line(gang):
        return (*texts, *state, *needs, gang.key)  # like no other
    if not gang.waiting:
        return (*texts, *state, *needs)
    if classes or gang.ready + gang.waiting < gang.min_member:
        return (*texts, *state, *needs, gang.key)
    # All its pods have a place: what is said of it is for whom it waits, and for how long.
    return (*texts, *state, *needs, leaving_for(session, gang), sessions_left(session, gang))
