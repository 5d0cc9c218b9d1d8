"""Why a podgroup has not started: one code, the figures behind it, and a sentence for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from scheduler.domain.nodes import Amounts
from scheduler.domain.plans import counted
from scheduler.domain.queues import QueueState
from scheduler.domain.reasons import REASONS, ReasonCode, reason_entry
from scheduler.domain.resources import format_quantity
from scheduler.engine.decisions import Check, Reason
from scheduler.engine.refusals import Shortfall
from scheduler.engine.report.checks import (
    checks_of,
    fits_some_node,
    largest_node,
    level_check,
    needed,
    pod_classes_of,
    roomiest_node,
    scarce,
)
from scheduler.engine.reservations import leaving_for, sessions_left
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang
from scheduler.engine.state.holdings import holdings_of

Finding = tuple[ReasonCode, str, Mapping[str, object]]
Question = Callable[[Session, Gang], Finding | None]


def explain(session: Session, gang: Gang) -> Reason:
    """The first finding in order of precedence, with every check that was made."""
    code, message, figures = _first_finding(session, gang)
    if not reason_entry(code).is_about_room:
        return Reason(code, message, figures)
    return Reason(code, message, figures, checks_of(session, gang))


def _first_finding(session: Session, gang: Gang) -> Finding:
    for entry in REASONS:
        found = _QUESTIONS[entry.code](session, gang)
        if found is not None:
            return found
    return _awaiting_evaluation(session, gang)


def is_impossible(session: Session, gang: Gang) -> bool:
    """It asks for more than its queue may ever use, than the cluster has, or than any node has:
    also where something else is said first.
    """
    if gang.queue < 0:
        return True
    return any(
        ask(session, gang) is not None
        for ask in (_exceeds_capability, _exceeds_cluster, _no_node_fits)
    )


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
        gang.refusal,
    )
    own = (gang.key,) if gang.roles or gang.waiting or session.position_in_line(gang) else ()
    return (
        *texts,
        *state,
        groups.min_resources[gang.row].tobytes(),
        *pod_classes_of(session, gang),
        *own,
    )


def quantity(resource: str, amount: int) -> str:
    """For people: "4 cpu", "16Gi memory"."""
    return f"{format_quantity(resource, amount)} {resource}"


def _on_hold(session: Session, gang: Gang) -> Finding | None:
    text = session.snapshot.groups.on_hold[gang.row]
    if not text:
        return None
    return (ReasonCode.ON_HOLD, f"On hold: {text}.", {"reason": text})


def _paused(session: Session, gang: Gang) -> Finding | None:
    if not session.snapshot.paused:
        return None
    return (ReasonCode.SCHEDULING_PAUSED, "Scheduling is paused for the whole cluster.", {})


def _queue_not_found(session: Session, gang: Gang) -> Finding | None:
    if not gang.queue < 0:
        return None
    return (ReasonCode.QUEUE_NOT_FOUND, "Its queue does not exist.", {})


def _queue_not_leaf(session: Session, gang: Gang) -> Finding | None:
    if session.queue_tree.is_leaf(gang.queue):
        return None
    name = session.queue_tree.names[gang.queue]
    children = [session.queue_tree.names[row] for row in session.queue_tree.children[gang.queue]]
    message = f"Queue {name} has queues below it ({', '.join(children)}); only queues without children run jobs."
    return ReasonCode.QUEUE_NOT_LEAF, message, {"queue": name, "children": children}


def _queue_closed(session: Session, gang: Gang) -> Finding | None:
    queue = session.queue_tree.queues[gang.queue]
    if queue.state not in (QueueState.CLOSED, QueueState.UNKNOWN):
        return None
    return (
        ReasonCode.QUEUE_CLOSED,
        f"Queue {queue.name} is {queue.state.value.lower()}.",
        {"queue": queue.name, "state": queue.state.value},
    )


def _queue_suspended(session: Session, gang: Gang) -> Finding | None:
    queue = session.queue_tree.queues[gang.queue]
    if not queue.is_held:
        return None
    by = queue.held_by or queue.name
    message = (
        f"Queue {by} is suspended."
        if by == queue.name
        else f"Queue {queue.name} is held: {by} above it is suspended."
    )
    return ReasonCode.QUEUE_SUSPENDED, message, {"queue": queue.name, "suspendedBy": by}


def _hierarchy_invalid(session: Session, gang: Gang) -> Finding | None:
    refusal = session.refused_queues.get(gang.queue)
    if not refusal:
        return None
    return (
        ReasonCode.HIERARCHY_INVALID,
        f"The queue tree is not valid: {refusal.message}.",
        {"problem": refusal.message},
    )


def _not_permitted(session: Session, gang: Gang) -> Finding | None:
    text = session.snapshot.groups.not_permitted[gang.row]
    if not text and gang.refusal is not None and gang.refusal.code is ReasonCode.NOT_PERMITTED:
        text = gang.refusal.message
    if not text:
        return None
    return (ReasonCode.NOT_PERMITTED, f"Not permitted: {text}.", {"reason": text})


def _not_enough_tasks(session: Session, gang: Gang) -> Finding | None:
    refusal = None if gang.is_waiting_outside else session.refuse_job(gang)
    if refusal is None:
        return None
    there = gang.ready + gang.waiting + gang.pending
    message = f"Has {there} of the {counted(gang.min_member, 'pod')} that its gang needs ({refusal.message})."
    return (
        refusal.code,
        message,
        {"pods": there, "minMember": gang.min_member, "detail": refusal.message},
    )


def _exceeds_capability(session: Session, gang: Gang) -> Finding | None:
    """No matter what else runs, some level's capability is too small."""
    quotas = session.quotas
    if quotas is None:
        return None
    root = session.queue_tree.root
    need = needed(session, gang)
    for row in session.queue_tree.path_list(gang.queue):
        limit = quotas.real_capability[row]
        over = _first_over(session, need, limit)
        if (
            over is not None
            and (row != root or session.queue_tree.queues[row].spec.capability)
            and _is_own_limit(session, row, over)
        ):
            return _limit_finding(ReasonCode.EXCEEDS_CAPABILITY, session, row, over, need, limit)
    return None


def _is_own_limit(session: Session, row: int, dim: int) -> bool:
    """Whether the queue, and not the size of the cluster, sets this limit."""
    quotas = session.quotas
    return quotas is not None and bool(quotas.real_capability[row, dim] < session.total[dim])


def _exceeds_cluster(session: Session, gang: Gang) -> Finding | None:
    need = needed(session, gang)
    over = _first_over(session, need, session.total)
    if over is None:
        return None
    name = session.snapshot.resources[over]
    message = f"Needs {quantity(name, int(need[over]))} at once; the whole cluster has {format_quantity(name, int(session.total[over]))}."
    return (
        ReasonCode.EXCEEDS_CLUSTER,
        message,
        _beyond(name, "root", int(need[over]), int(session.total[over])),
    )


def _first_over(session: Session, need: Amounts, limit: Amounts) -> int | None:
    over = np.flatnonzero((need > limit) & session.queue_usage.dims)
    if not len(over):
        return None
    return int(over[0])


def _limit_finding(
    code: ReasonCode, session: Session, row: int, dim: int, need: Amounts, limit: Amounts
) -> Finding:
    name = session.snapshot.resources[dim]
    level = session.queue_tree.names[row]
    message = f"Needs {quantity(name, int(need[dim]))} at once; {level} may never use more than {format_quantity(name, int(limit[dim]))}."
    return code, message, _beyond(name, level, int(need[dim]), int(limit[dim]))


def _beyond(resource: str, level: str, need: int, limit: int) -> dict[str, object]:
    """Figures of a limit that no waiting can help with: what is free below it does not matter."""
    return {
        "resource": resource,
        "level": level,
        "need": need,
        "limit": limit,
        "short": need - limit,
    }


def _figures(check: Check, gang: Gang) -> dict[str, object]:
    """What a test found, and how many of the gang's pods had a place when it was tried."""
    return {
        "resource": check.resource,
        "level": check.level,
        "need": check.need,
        "limit": check.limit,
        "used": check.used,
        "promised": check.promised,
        "leaving": check.leaving,
        "admitted": check.admitted,
        "free": check.free,
        "short": check.short,
        **_placeable(gang),
    }


def _placeable(gang: Gang) -> dict[str, object]:
    """Nothing for a gang that was not tried: nobody knows."""
    if not gang.failed:
        return {}
    return {"placeable": gang.placeable, "minMember": gang.min_member}


def _no_node_fits(session: Session, gang: Gang) -> Finding | None:
    for pod_class in pod_classes_of(session, gang):
        if not fits_some_node(session, pod_class):
            return _node_finding(session, pod_class)
    return None


def _node_finding(session: Session, pod_class: int) -> Finding:
    """A pod that no node could hold even if it were empty."""
    suitable = session.node_scores(pod_class).suitable
    counts: dict[str, object] = {"nodes": len(suitable), "suitable": int(suitable.sum())}
    if not suitable.any():
        return (
            ReasonCode.NO_NODE_FITS,
            f"No node is suitable: {_unsuitable_words(session)}.",
            counts,
        )
    node = largest_node(session, pod_class)
    asked = [
        (dim, name)
        for dim, name in enumerate(session.snapshot.resources)
        if session.request[pod_class, dim] > 0 and name != "pods"
    ]
    asks = ", ".join(quantity(name, int(session.request[pod_class, dim])) for dim, name in asked)
    has = {name: int(session.node_table.allocatable[dim, node]) for dim, name in asked}
    message = (
        f"A pod needs {asks}, more than any suitable node has; the largest is {session.node_table.names[node]} "
        f"with {', '.join(quantity(name, amount) for name, amount in has.items())}."
    )
    return (
        ReasonCode.NO_NODE_FITS,
        message,
        {**counts, "largest": session.node_table.names[node], "has": has},
    )


def _unsuitable_words(session: Session) -> str:
    """Why none of the nodes will do, each node counted once."""
    nodes = session.snapshot.nodes
    is_cordoned = nodes.ready & nodes.unschedulable
    others = int((nodes.ready & ~is_cordoned).sum())
    matches = "matches its selector, affinity and tolerations"
    if others == len(nodes):
        return f"none of {len(nodes)} {matches}"
    counts = {"not ready": int((~nodes.ready).sum()), "cordoned": int(is_cordoned.sum())}
    parts = [
        f"{count} {'is' if count == 1 else 'are'} {word}" for word, count in counts.items() if count
    ]
    parts += [f"none of the other {others} {matches}"] if others else []
    return f"of {len(nodes)}, {', '.join(parts)}"


def _reclaim_in_progress(session: Session, gang: Gang) -> Finding | None:
    """Its room is promised, and pods are on their way out of it."""
    if not gang.waiting or gang.ready + gang.waiting < gang.min_member:
        return None
    victims = leaving_for(session, gang)
    left = sessions_left(session, gang)
    going = (
        f"{victims} {'pod' if victims == 1 else 'pods'} to go"
        if victims
        else "the last of the room"
    )
    wait = "has a place and waits" if gang.waiting == 1 else "have a place and wait"
    kept = counted(left, "more session")
    message = (
        f"Room is being made: {gang.waiting} of its pods {wait} for {going}; it is kept for {kept}."
    )
    return (
        ReasonCode.RECLAIM_IN_PROGRESS,
        message,
        {"waiting": gang.waiting, "victims": victims, "graceLeft": left},
    )


def _refused_by_enqueue(session: Session, gang: Gang) -> Finding | None:
    """Enqueue turned it away: by its queue or one above, or by the cluster as a whole."""
    refusal = gang.refusal
    if refusal is None or not refusal.shortfalls:
        return None
    short = refusal.shortfalls[0]
    if refusal.code is ReasonCode.CLUSTER_BUSY:
        return _overcommitted(short, gang)
    row = session.queue_tree.rows[short.level]
    dim = session.snapshot.resources.index(short.resource)
    if session.queue_tree.root >= 0 and not _is_own_limit(session, row, dim):
        return _busy_finding(_root_check(session, dim, short), gang)
    return _short_finding(
        ReasonCode.WAITING_FOR_QUOTA, level_check(session, row, dim, "capability", short), gang
    )


def _root_check(session: Session, dim: int, short: Shortfall) -> Check:
    """The same for the whole cluster: a queue that may use all of it has no limit that could be
    named.
    """
    root = session.queue_tree.root
    queue_usage = session.queue_usage
    used = int(queue_usage.allocated[root, dim] + queue_usage.inqueue[root, dim])
    whole = replace(
        short,
        level=session.queue_tree.names[root],
        limit=int(session.total[dim]),
        used=max(used, short.used),
    )
    return level_check(session, root, dim, "capability", whole)


def _overcommitted(short: Shortfall, gang: Gang) -> Finding:
    amount = partial(format_quantity, short.resource)
    free = short.limit - short.used
    check = Check(
        "overcommit",
        short.level,
        short.resource,
        short.need,
        short.limit,
        0,
        free,
        admitted=short.used,
    )
    message = (
        f"Needs {quantity(short.resource, short.need)} at once; the cluster has {amount(max(0, free))} still reservable "
        f"({amount(short.limit)} free with what overcommit adds, {amount(short.used)} reserved for jobs admitted before). "
        f"{amount(check.short)} short."
    )
    return ReasonCode.CLUSTER_BUSY, message, _figures(check, gang)


def _short_finding(
    code: ReasonCode, check: Check, gang: Gang, quota: str = "capability"
) -> Finding:
    """A queue that is full, or has too little left."""
    amount = partial(format_quantity, check.resource)
    message = (
        f"Needs {quantity(check.resource, check.need)} at once; {check.level} has {amount(max(0, check.free))} free "
        f"under its {quota} of {amount(check.limit)} ({use_words(check)}). {amount(check.short)} short."
    )
    return code, message, _figures(check, gang)


def use_words(check: Check) -> str:
    """ "5 in use, 2 promised, 1 of it leaving": what is held and what is kept are told apart, here
    as everywhere.
    """
    amount = partial(format_quantity, check.resource)
    words = [f"{amount(check.used)} in use"]
    words += [f"{amount(check.promised)} promised"] if check.promised else []
    words += (
        [f"{amount(check.admitted)} reserved for jobs admitted before"] if check.admitted else []
    )
    words += [f"{amount(check.leaving)} of that on loan or leaving"] if check.leaving else []
    return ", ".join(words)


def _waiting_for_quota(session: Session, gang: Gang) -> Finding | None:
    """Allocate found the queue, or one above it, at its capability."""
    if gang.failed != "quota":
        return None
    return _quota_finding(session, gang, ReasonCode.WAITING_FOR_QUOTA)


_QUOTA_WORDS = {"deserved": "deserved share"}


def _quota_finding(session: Session, gang: Gang, code: ReasonCode) -> Finding | None:
    """The first level that is full.

    A queue that may use the whole cluster is not: that the cluster is full is another reason.
    """
    failed = [
        check
        for check in checks_of(session, gang)
        if not check.passed and check.name in session.limiting_checks
    ]
    check = next((check for check in failed if not _is_cluster(session, check)), None)
    if check is None:
        return None
    return _short_finding(code, check, gang, _QUOTA_WORDS.get(check.name, check.name))


def _is_cluster(session: Session, check: Check) -> bool:
    """The queue may use all that there is: not its limit is in the way, but what the cluster has."""
    row = session.queue_tree.rows[check.level]
    dim = session.snapshot.resources.index(check.resource)
    return check.name == "capability" and not _is_own_limit(session, row, dim)


def _lacks_room(session: Session, gang: Gang) -> bool:
    """It was tried, and neither its queue nor one above stood in the way."""
    return bool(gang.failed) and (
        gang.failed == "room" or _waiting_for_quota(session, gang) is None
    )


def _over_deserved(session: Session, gang: Gang) -> Finding | None:
    """The cluster is full, and the queue has what it deserves: it can not take from others."""
    if (
        not _lacks_room(session, gang)
        or not session.has_action("reclaim")
        or session.quotas is None
    ):
        return None
    if any(
        session.preemptive(gang.queue, pod_class) for pod_class in pod_classes_of(session, gang)
    ):
        return None
    check = next(
        (
            check
            for check in checks_of(session, gang)
            if check.name == "deserved" and not check.passed
        ),
        None,
    )
    if check is None:
        return None
    return _deserved_finding(check, gang)


def _deserved_finding(check: Check, gang: Gang) -> Finding:
    amount = partial(format_quantity, check.resource)
    message = (
        f"Needs {quantity(check.resource, check.need)} at once and nothing suitable is idle; {check.level} deserves "
        f"{amount(check.limit)} ({use_words(check)}), so it cannot reclaim from others."
    )
    return ReasonCode.OVER_DESERVED_NOT_RECLAIMABLE, message, _figures(check, gang)


def _gang_incomplete(session: Session, gang: Gang) -> Finding | None:
    if not _lacks_room(session, gang) or not 0 < gang.placeable < gang.min_member:
        return None
    message = f"There is room for {gang.placeable} of the {gang.min_member} pods that must start together."
    resource = session.snapshot.resources[scarce(session, gang)]
    return ReasonCode.GANG_INCOMPLETE, message, {"resource": resource, **_placeable(gang)}


def _fragmented(session: Session, gang: Gang) -> Finding | None:
    """Enough is free in all, but no node has enough of it."""
    need = needed(session, gang)
    free = np.array(holdings_of(session).nodes.free)
    if not _lacks_room(session, gang) or not bool(
        (need <= free)[(need > 0) & session.queue_usage.dims].all()
    ):
        return None
    dim = scarce(session, gang)
    pod_class = pod_classes_of(session, gang)[0]
    node = roomiest_node(session, pod_class)
    request = int(session.request[pod_class, dim])
    name = session.snapshot.resources[dim]
    there = int(session.node_table.free([node])[dim, 0])
    amount = partial(format_quantity, name)
    message = (
        f"{quantity(name, int(free[dim]))} are free in all, but in pieces: a pod needs {amount(request)} on one node, "
        f"and {session.node_table.names[node]} has {amount(there)}."
    )
    figures = {
        "resource": name,
        "freeInAll": int(free[dim]),
        "need": request,
        "largest": there,
        **_placeable(gang),
    }
    return ReasonCode.FRAGMENTED, message, figures


def _cluster_busy(session: Session, gang: Gang) -> Finding | None:
    if not _lacks_room(session, gang):
        return None
    failed = next(
        (
            check
            for check in checks_of(session, gang)
            if check.name == "cluster" and not check.passed
        ),
        None,
    )
    if failed is None:
        resource = session.snapshot.resources[scarce(session, gang)]
        return (
            ReasonCode.CLUSTER_BUSY,
            "No node has room for it now.",
            {"resource": resource, **_placeable(gang)},
        )
    return _busy_finding(failed, gang)


def _busy_finding(check: Check, gang: Gang) -> Finding:
    name = check.resource
    message = (
        f"Needs {quantity(name, check.need)} at once; the cluster has {format_quantity(name, max(0, check.free))} free of "
        f"{format_quantity(name, check.limit)} ({use_words(check)}). {format_quantity(name, check.short)} short."
    )
    return ReasonCode.CLUSTER_BUSY, message, _figures(check, gang)


def _behind_others(session: Session, gang: Gang) -> Finding | None:
    position = session.position_in_line(gang)
    if not position:
        return None
    name = session.queue_tree.names[gang.queue]
    message = f"Number {position} in the line of {name}, behind a job that can not start yet."
    return ReasonCode.BEHIND_OTHERS, message, {"position": position, "queue": name}


def _left_out_by_policy(session: Session, gang: Gang) -> Finding | None:
    """Not that it was not looked at: no action of the policy would ever start it."""
    if session.has_action("allocate") or not session.tasks.asking_for_something(
        session.tasks.pending_pods(gang)
    ):
        return None
    if session.has_action("backfill") and session.lends_idle_room:
        return None
    actions = ", ".join(session.policy.actions)
    message = (
        f"No session starts it: the policy has no allocate action (its actions are {actions})."
    )
    return ReasonCode.LEFT_OUT_BY_POLICY, message, {"missing": "allocate"}


def _awaiting_evaluation(session: Session, gang: Gang) -> Finding:
    leaving = gang.tasks - gang.ready - gang.waiting - gang.pending
    if leaving > 0:
        message = f"{leaving} of its pods {'is' if leaving == 1 else 'are'} still leaving; it is looked at again when they are gone."
        return ReasonCode.AWAITING_EVALUATION, message, {"leaving": leaving}
    return (
        ReasonCode.AWAITING_EVALUATION,
        "No action of this session tried it; the next one looks at it again.",
        {},
    )


def _short_of_quota(session: Session, gang: Gang) -> Finding | None:
    """Enqueue refused it, or allocate found no quota for it."""
    refused = _refused_by_enqueue(session, gang)
    if refused is not None:
        return refused
    return _waiting_for_quota(session, gang)


_QUESTIONS: Mapping[ReasonCode, Question] = {
    ReasonCode.ON_HOLD: _on_hold,
    ReasonCode.SCHEDULING_PAUSED: _paused,
    ReasonCode.QUEUE_NOT_FOUND: _queue_not_found,
    ReasonCode.QUEUE_NOT_LEAF: _queue_not_leaf,
    ReasonCode.QUEUE_CLOSED: _queue_closed,
    ReasonCode.QUEUE_SUSPENDED: _queue_suspended,
    ReasonCode.HIERARCHY_INVALID: _hierarchy_invalid,
    ReasonCode.NOT_PERMITTED: _not_permitted,
    ReasonCode.NOT_ENOUGH_TASKS: _not_enough_tasks,
    ReasonCode.EXCEEDS_CAPABILITY: _exceeds_capability,
    ReasonCode.EXCEEDS_CLUSTER: _exceeds_cluster,
    ReasonCode.NO_NODE_FITS: _no_node_fits,
    ReasonCode.RECLAIM_IN_PROGRESS: _reclaim_in_progress,
    ReasonCode.WAITING_FOR_QUOTA: _short_of_quota,
    ReasonCode.OVER_DESERVED_NOT_RECLAIMABLE: _over_deserved,
    ReasonCode.GANG_INCOMPLETE: _gang_incomplete,
    ReasonCode.FRAGMENTED: _fragmented,
    ReasonCode.CLUSTER_BUSY: _cluster_busy,
    ReasonCode.BEHIND_OTHERS: _behind_others,
    ReasonCode.LEFT_OUT_BY_POLICY: _left_out_by_policy,
    ReasonCode.AWAITING_EVALUATION: _awaiting_evaluation,
}
"""What is asked for each reason, in the order of `REASONS`. A question about a queue is asked only
when the queue exists: QueueNotFound comes before it."""
