"""Reasons that pass when others leave room: quota, nodes that are full, room in pieces."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from scheduler.domain.plans import counted
from scheduler.domain.reasons import ReasonCode
from scheduler.domain.resources import format_quantity
from scheduler.engine.decisions import Check
from scheduler.engine.refusals import Shortfall
from scheduler.engine.report.checks import (
    checks_of,
    level_check,
    needed_amounts,
    needed_classes,
    needed_pods,
    roomiest_node,
    scarcest_resource,
)
from scheduler.engine.report.findings import (
    Finding,
    check_figures,
    placeable_figures,
    quantity,
    use_words,
)
from scheduler.engine.report.too_large import is_own_limit
from scheduler.engine.reservations import leaving_for, sessions_left
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang
from scheduler.engine.state.holdings import holdings_of

_QUOTA_WORDS = {"deserved": "deserved share"}


def reclaim_in_progress(session: Session, gang: Gang) -> Finding | None:
    """Its room is promised, and pods are on their way out of it."""
    if not gang.waiting or gang.ready + gang.waiting < gang.min_member:
        return None
    victims = leaving_for(session, gang)
    left = sessions_left(session, gang)
    going = "the last of the room"
    if victims:
        going = f"{counted(victims, 'pod')} to go"
    wait = "has a place and waits" if gang.waiting == 1 else "have a place and wait"
    message = (
        f"Room is being made: {gang.waiting} of its pods {wait} for {going}; "
        f"it is kept for {counted(left, 'more session')}."
    )
    figures = {"waiting": gang.waiting, "victims": victims, "graceLeft": left}
    return Finding(ReasonCode.RECLAIM_IN_PROGRESS, message, figures)


# Quota


def short_of_quota(session: Session, gang: Gang) -> Finding | None:
    """Enqueue refused it, or allocate found no quota for it."""
    refused = _refused_by_enqueue(session, gang)
    if refused is not None:
        return refused
    return _refused_by_allocate(session, gang)


def _refused_by_enqueue(session: Session, gang: Gang) -> Finding | None:
    """By its queue or one above, or by the cluster as a whole."""
    refusal = gang.refusal
    if refusal is None or not refusal.shortfalls:
        return None
    short = refusal.shortfalls[0]
    if refusal.code is ReasonCode.CLUSTER_BUSY:
        return _overcommitted(short, gang)
    row = session.queue_tree.rows[short.level]
    dim = session.snapshot.resources.index(short.resource)
    if session.queue_tree.root >= 0 and not is_own_limit(session, row, dim):
        return _busy_finding(_root_check(session, dim, short), gang)
    return _quota_finding(level_check(session, row, dim, "capability", short), gang)


def _root_check(session: Session, dim: int, short: Shortfall) -> Check:
    """The same for the whole cluster: a queue that may use all of it has no limit to name."""
    root = session.queue_tree.root
    usage = session.queue_usage
    used = int(usage.allocated[root, dim] + usage.inqueue[root, dim])
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
        name="overcommit",
        level=short.level,
        resource=short.resource,
        need=short.need,
        limit=short.limit,
        used=0,
        free=free,
        admitted=short.used,
    )
    message = (
        f"Needs {quantity(short.resource, short.need)} at once; "
        f"the cluster has {amount(max(0, free))} still reservable "
        f"({amount(short.limit)} free with what overcommit adds, "
        f"{amount(short.used)} reserved for jobs admitted before). "
        f"{amount(check.short)} short."
    )
    return Finding(ReasonCode.CLUSTER_BUSY, message, check_figures(check, gang))


def _refused_by_allocate(session: Session, gang: Gang) -> Finding | None:
    """Allocate found the queue, or one above it, at its limit.

    The first level that is full. A queue that may use the whole cluster is not: that the cluster
    is full is another reason.
    """
    if gang.failed != "quota":
        return None
    for check in checks_of(session, gang):
        if check.name not in session.limiting_checks or check.passed:
            continue
        if not _is_cluster_limit(session, check):
            return _quota_finding(check, gang)
    return None


def _quota_finding(check: Check, gang: Gang) -> Finding:
    """A queue that is full, or has too little left."""
    amount = partial(format_quantity, check.resource)
    quota = _QUOTA_WORDS.get(check.name, check.name)
    message = (
        f"Needs {quantity(check.resource, check.need)} at once; "
        f"{check.level} has {amount(max(0, check.free))} free "
        f"under its {quota} of {amount(check.limit)} ({use_words(check)}). "
        f"{amount(check.short)} short."
    )
    return Finding(ReasonCode.WAITING_FOR_QUOTA, message, check_figures(check, gang))


def _is_cluster_limit(session: Session, check: Check) -> bool:
    """The queue may use all that there is: what the cluster has is in the way, not its limit."""
    if check.name != "capability":
        return False
    row = session.queue_tree.rows[check.level]
    dim = session.snapshot.resources.index(check.resource)
    return not is_own_limit(session, row, dim)


def reserved_for_guarantees(session: Session, gang: Gang) -> Finding | None:
    """Enough is free, but other queues are guaranteed a part of it that they do not use yet."""
    quotas = session.quotas
    if gang.failed != "quota" or quotas is None or quotas.reserved is None:
        return None
    needed = needed_amounts(session, gang)
    reserved = quotas.reserved.beside(gang.queue, needed)
    free = session.total - session.queue_usage.allocated[session.queue_tree.root]
    kept = (needed > 0) & (reserved > 0) & (needed > free - reserved)
    if not kept.any() or (needed > free)[session.queue_usage.dims].any():
        return None
    dim = int(np.flatnonzero(kept)[0])
    resource = session.snapshot.resources[dim]
    need = int(needed[dim])
    short = need - int(free[dim] - reserved[dim])
    amount = partial(format_quantity, resource)
    message = (
        f"Needs {quantity(resource, need)} at once; {amount(int(free[dim]))} are free, "
        f"but {amount(int(reserved[dim]))} are kept for queues that are guaranteed them. "
        f"{amount(short)} short."
    )
    figures = {
        "resource": resource,
        "need": need,
        "free": int(free[dim]),
        "reserved": int(reserved[dim]),
        "short": short,
        **placeable_figures(gang),
    }
    return Finding(ReasonCode.RESERVED_FOR_GUARANTEES, message, figures)


# Nodes


def _lacks_room(session: Session, gang: Gang) -> bool:
    """It was tried, and neither its queue nor one above stood in the way.

    A gang that has no pod to place waits for no room, but for its own pods that are being evicted.
    """
    if not needed_pods(session, gang):
        return False
    if gang.failed == "room":
        return True
    return bool(gang.failed) and _refused_by_allocate(session, gang) is None


def over_deserved(session: Session, gang: Gang) -> Finding | None:
    """The cluster is full, and the queue has what it deserves: it cannot take from others."""
    if session.quotas is None or not session.has_action("reclaim"):
        return None
    if not _lacks_room(session, gang):
        return None
    if any(
        session.preemptive(gang.queue, pod_class) for pod_class in needed_classes(session, gang)
    ):
        return None
    check = _used_up_share(session, gang)
    if check is None:
        return None
    amount = partial(format_quantity, check.resource)
    message = (
        f"Needs {quantity(check.resource, check.need)} at once and nothing suitable is idle; "
        f"{check.level} deserves {amount(check.limit)} ({use_words(check)}), "
        "so it cannot reclaim from others."
    )
    figures = check_figures(check, gang)
    return Finding(ReasonCode.OVER_DESERVED_NOT_RECLAIMABLE, message, figures)


def _used_up_share(session: Session, gang: Gang) -> Check | None:
    """Of a resource that the cluster has too little of, if there is one: that is what it lacks."""
    lacking = {check.resource for check in _failed(session, gang, "cluster")}
    shares = _failed(session, gang, "deserved")
    for check in shares:
        if check.resource in lacking:
            return check
    return next(iter(shares), None)


def _failed(session: Session, gang: Gang, name: str) -> list[Check]:
    return [check for check in checks_of(session, gang) if check.name == name and not check.passed]


def pod_rules_not_met(session: Session, gang: Gang) -> Finding | None:
    """Nodes have room, but rules between pods exclude them."""
    if not gang.blocked or not _lacks_room(session, gang):
        return None
    nodes = len(session.snapshot.nodes)
    parts = [f"{count} of {nodes} {words}" for words, count in gang.blocked]
    excluded = sum(count for _, count in gang.blocked)
    if excluded < nodes:
        parts.append("the others have no room for it or do not suit it")
    start = "No node for it"
    if 0 < gang.placeable < gang.min_member:
        start = f"Places for {gang.placeable} of the {gang.min_member} pods, then no node"
    message = f"{start}: {', '.join(parts)}."
    figures = {"nodes": nodes, "excluded": excluded, **placeable_figures(gang)}
    return Finding(ReasonCode.POD_RULES_NOT_MET, message, figures)


def gang_incomplete(session: Session, gang: Gang) -> Finding | None:
    """There is room for some of the pods that must start together, and not for all."""
    if not 0 < gang.placeable < gang.min_member or not _lacks_room(session, gang):
        return None
    message = (
        f"There is room for {gang.placeable} of the {gang.min_member} pods "
        "that must start together."
    )
    resource = session.snapshot.resources[scarcest_resource(session, gang)]
    figures = {"resource": resource, **placeable_figures(gang)}
    return Finding(ReasonCode.GANG_INCOMPLETE, message, figures)


def fragmented(session: Session, gang: Gang) -> Finding | None:
    """Enough is free in all, but no node has enough of it."""
    if not _lacks_room(session, gang):
        return None
    needed = needed_amounts(session, gang)
    free = np.array(holdings_of(session).nodes.free)
    asked = (needed > 0) & session.queue_usage.dims
    if not (needed <= free)[asked].all():
        return None
    pod_class = needed_classes(session, gang)[0]
    node = roomiest_node(session, pod_class)
    free_there = session.node_table.free([node])[:, 0]
    # what most nodes are short of may be free on the roomiest one, which lacks something else
    dim = scarcest_resource(session, gang)
    asked_of_node = session.request[pod_class]
    short_there = np.flatnonzero((asked_of_node > 0) & (asked_of_node > free_there))
    if len(short_there) and dim not in short_there:
        dim = int(short_there[0])
    resource = session.snapshot.resources[dim]
    request = int(asked_of_node[dim])
    largest = int(free_there[dim])
    amount = partial(format_quantity, resource)
    message = (
        f"{quantity(resource, int(free[dim]))} are free in all, but in pieces: "
        f"a pod needs {amount(request)} on one node, "
        f"and {session.node_table.names[node]} has {amount(largest)}."
    )
    figures = {
        "resource": resource,
        "freeInAll": int(free[dim]),
        "need": request,
        "largest": largest,
        **placeable_figures(gang),
    }
    return Finding(ReasonCode.FRAGMENTED, message, figures)


def cluster_busy(session: Session, gang: Gang) -> Finding | None:
    """Too little is free on all nodes together, or none of it where the pods may run."""
    if not _lacks_room(session, gang):
        return None
    failed = _failed(session, gang, "cluster")
    if failed:
        return _busy_finding(failed[0], gang)
    resource = session.snapshot.resources[scarcest_resource(session, gang)]
    figures = {"resource": resource, **placeable_figures(gang)}
    return Finding(ReasonCode.CLUSTER_BUSY, "No node has room for it now.", figures)


def _busy_finding(check: Check, gang: Gang) -> Finding:
    amount = partial(format_quantity, check.resource)
    message = (
        f"Needs {quantity(check.resource, check.need)} at once; "
        f"the cluster has {amount(max(0, check.free))} free of {amount(check.limit)} "
        f"({use_words(check)}). {amount(check.short)} short."
    )
    return Finding(ReasonCode.CLUSTER_BUSY, message, check_figures(check, gang))
