"""Reasons that hold a gang back whatever room there is: its queue, the policy, or a person."""

from __future__ import annotations

from scheduler.domain.plans import counted
from scheduler.domain.queues import QueueState
from scheduler.domain.reasons import ReasonCode
from scheduler.engine.plugins.gang import is_short_of_gang
from scheduler.engine.report.checks import needed_classes
from scheduler.engine.report.findings import Finding
from scheduler.engine.reservations import leaving_for
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang


def on_hold(session: Session, gang: Gang) -> Finding | None:
    text = session.snapshot.groups.on_hold[gang.row]
    if not text:
        return None
    return Finding(ReasonCode.ON_HOLD, f"On hold: {text}.", {"reason": text})


def scheduling_paused(session: Session, gang: Gang) -> Finding | None:
    if not session.snapshot.paused:
        return None
    message = "Scheduling is paused for the whole cluster."
    return Finding(ReasonCode.SCHEDULING_PAUSED, message, {})


def another_scheduler_decides(session: Session, gang: Gang) -> Finding | None:
    """This session would start it. But it only watches, and nothing that it decides is done."""
    if not session.snapshot.is_watched:
        return None
    if is_short_of_gang(gang):
        return _room_would_be_made(session, gang)
    pods = counted(gang.ready, "pod")
    message = (
        "Fumarole would start it now. It only watches this cluster: "
        f"another scheduler has yet to place its {pods}."
    )
    return Finding(ReasonCode.ANOTHER_SCHEDULER_DECIDES, message, {"pods": gang.ready})


def _room_would_be_made(session: Session, gang: Gang) -> Finding | None:
    """It would get a place once others have left, of whom some would have to be evicted."""
    if not gang.waiting or gang.ready + gang.waiting < gang.min_member:
        return None
    leaving = leaving_for(session, gang)
    others = "others"
    if leaving:
        others = counted(leaving, "other pod")
    message = (
        f"Fumarole would start it as soon as {others} had left. It only watches this cluster: "
        "it evicts nothing, and another scheduler decides."
    )
    figures = {"pods": gang.ready + gang.waiting, "victims": leaving}
    return Finding(ReasonCode.ANOTHER_SCHEDULER_DECIDES, message, figures)


def queue_not_found(session: Session, gang: Gang) -> Finding | None:
    if gang.queue >= 0:
        return None
    return Finding(ReasonCode.QUEUE_NOT_FOUND, "Its queue does not exist.", {})


def queue_not_leaf(session: Session, gang: Gang) -> Finding | None:
    tree = session.queue_tree
    if tree.is_leaf(gang.queue):
        return None
    name = tree.names[gang.queue]
    children = [tree.names[row] for row in tree.children[gang.queue]]
    message = (
        f"Queue {name} has queues below it ({', '.join(children)}); "
        "only queues without children run jobs."
    )
    return Finding(ReasonCode.QUEUE_NOT_LEAF, message, {"queue": name, "children": children})


def queue_closed(session: Session, gang: Gang) -> Finding | None:
    queue = session.queue_tree.queues[gang.queue]
    if queue.state not in (QueueState.CLOSED, QueueState.UNKNOWN):
        return None
    state = queue.state.value
    message = f"Queue {queue.name} is {state.lower()}."
    return Finding(ReasonCode.QUEUE_CLOSED, message, {"queue": queue.name, "state": state})


def queue_suspended(session: Session, gang: Gang) -> Finding | None:
    queue = session.queue_tree.queues[gang.queue]
    if not queue.is_held:
        return None
    suspended = queue.held_by or queue.name
    message = f"Queue {queue.name} is held: {suspended} above it is suspended."
    if suspended == queue.name:
        message = f"Queue {suspended} is suspended."
    figures = {"queue": queue.name, "suspendedBy": suspended}
    return Finding(ReasonCode.QUEUE_SUSPENDED, message, figures)


def hierarchy_invalid(session: Session, gang: Gang) -> Finding | None:
    refusal = session.refused_queues.get(gang.queue)
    if refusal is None:
        return None
    message = f"The queue tree is not valid: {refusal.message}."
    return Finding(ReasonCode.HIERARCHY_INVALID, message, {"problem": refusal.message})


def not_permitted(session: Session, gang: Gang) -> Finding | None:
    text = session.snapshot.groups.not_permitted[gang.row]
    refusal = gang.refusal
    if not text and refusal is not None and refusal.code is ReasonCode.NOT_PERMITTED:
        text = refusal.message
    if not text:
        return None
    return Finding(ReasonCode.NOT_PERMITTED, f"Not permitted: {text}.", {"reason": text})


def not_enough_tasks(session: Session, gang: Gang) -> Finding | None:
    if gang.awaits_admission:
        return None
    refusal = session.refuse_job(gang)
    if refusal is None:
        return None
    there = gang.ready + gang.waiting + gang.pending
    needed = counted(gang.min_member, "pod")
    message = f"Has {there} of the {needed} that its gang needs ({refusal.message})."
    figures = {"pods": there, "minMember": gang.min_member, "detail": refusal.message}
    return Finding(refusal.code, message, figures)


def not_supported(session: Session, gang: Gang) -> Finding | None:
    """Its pods ask for something that no session can honour, so they are not placed."""
    classes = session.snapshot.classes.values
    for pod_class in needed_classes(session, gang):
        fields = classes[pod_class].constraint.unsupported
        if fields:
            message = f"Its pods ask for what is not supported here: {', '.join(fields)}."
            return Finding(ReasonCode.NOT_SUPPORTED, message, {"fields": list(fields)})
    return None


def behind_others(session: Session, gang: Gang) -> Finding | None:
    position = session.position_in_line(gang)
    if not position:
        return None
    name = session.queue_tree.names[gang.queue]
    message = f"Number {position} in the line of {name}, behind a job that cannot start yet."
    return Finding(ReasonCode.BEHIND_OTHERS, message, {"position": position, "queue": name})


def left_out_by_policy(session: Session, gang: Gang) -> Finding | None:
    """No action of the policy would ever start it."""
    if session.has_action("allocate"):
        return None
    if session.has_action("backfill") and session.lends_idle_room:
        return None
    if not session.tasks.asking_for_something(session.tasks.pending_pods(gang)):
        return None
    actions = ", ".join(session.policy.actions)
    message = (
        f"No session starts it: the policy has no allocate action (its actions are {actions})."
    )
    return Finding(ReasonCode.LEFT_OUT_BY_POLICY, message, {"missing": "allocate"})


def awaiting_evaluation(session: Session, gang: Gang) -> Finding:
    leaving = gang.tasks - gang.ready - gang.waiting - gang.pending
    if leaving <= 0:
        message = "No action of this session tried it; the next one looks at it again."
        return Finding(ReasonCode.AWAITING_EVALUATION, message, {})
    verb = "is" if leaving == 1 else "are"
    message = (
        f"{leaving} of its pods {verb} still leaving; it is looked at again when they are gone."
    )
    return Finding(ReasonCode.AWAITING_EVALUATION, message, {"leaving": leaving})
