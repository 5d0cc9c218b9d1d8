"""Reasons that no waiting helps with: a gang asks for more than it can ever get."""

from __future__ import annotations

import numpy as np

from scheduler.domain.nodes import Amounts
from scheduler.domain.queues import ROOT
from scheduler.domain.reasons import ReasonCode
from scheduler.domain.resources import format_quantity
from scheduler.engine.report.checks import (
    fits_some_node,
    largest_node,
    needed_amounts,
    needed_classes,
)
from scheduler.engine.report.findings import Finding, quantity
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang


def exceeds_capability(session: Session, gang: Gang) -> Finding | None:
    """No matter what else runs, some level's capability is too small."""
    quotas = session.quotas
    if quotas is None:
        return None
    need = needed_amounts(session, gang)
    for row in session.queue_tree.path_list(gang.queue):
        limit = quotas.real_capability[row]
        over = _first_over(session, need, limit)
        if over is not None and _limits_by_itself(session, row, over):
            return _capability_finding(session, row, over, int(need[over]), int(limit[over]))
    return None


def _limits_by_itself(session: Session, row: int, dim: int) -> bool:
    """Root limits nothing unless it names a capability: else it is the cluster that does."""
    if row == session.queue_tree.root and not session.queue_tree.queues[row].spec.capability:
        return False
    return is_own_limit(session, row, dim)


def is_own_limit(session: Session, row: int, dim: int) -> bool:
    """Whether the queue, and not the size of the cluster, sets this limit."""
    quotas = session.quotas
    return quotas is not None and bool(quotas.real_capability[row, dim] < session.total[dim])


def _capability_finding(session: Session, row: int, dim: int, need: int, limit: int) -> Finding:
    resource = session.snapshot.resources[dim]
    level = session.queue_tree.names[row]
    most = format_quantity(resource, limit)
    message = f"Needs {quantity(resource, need)} at once; {level} may never use more than {most}."
    figures = _limit_figures(resource, level, need, limit)
    return Finding(ReasonCode.EXCEEDS_CAPABILITY, message, figures)


def exceeds_cluster(session: Session, gang: Gang) -> Finding | None:
    needed = needed_amounts(session, gang)
    over = _first_over(session, needed, session.total)
    if over is None:
        return None
    resource = session.snapshot.resources[over]
    need = int(needed[over])
    limit = int(session.total[over])
    whole = format_quantity(resource, limit)
    message = f"Needs {quantity(resource, need)} at once; the whole cluster has {whole}."
    figures = _limit_figures(resource, ROOT, need, limit)
    return Finding(ReasonCode.EXCEEDS_CLUSTER, message, figures)


def _first_over(session: Session, need: Amounts, limit: Amounts) -> int | None:
    over = np.flatnonzero((need > limit) & session.queue_usage.dims)
    if not len(over):
        return None
    return int(over[0])


def _limit_figures(resource: str, level: str, need: int, limit: int) -> dict[str, object]:
    """What is free below such a limit does not matter: no waiting helps."""
    return {
        "resource": resource,
        "level": level,
        "need": need,
        "limit": limit,
        "short": need - limit,
    }


def no_node_fits(session: Session, gang: Gang) -> Finding | None:
    """A pod that no node could hold even if it were empty."""
    for pod_class in needed_classes(session, gang):
        if not fits_some_node(session, pod_class):
            return _node_finding(session, pod_class)
    return None


def _node_finding(session: Session, pod_class: int) -> Finding:
    suitable = session.node_scores(pod_class).suitable
    counts: dict[str, object] = {"nodes": len(suitable), "suitable": int(suitable.sum())}
    if not suitable.any():
        message = f"No node is suitable: {_unsuitable_words(session)}."
        return Finding(ReasonCode.NO_NODE_FITS, message, counts)
    node = largest_node(session, pod_class)
    asked: dict[str, int] = {}
    has: dict[str, int] = {}
    for dim, name in enumerate(session.snapshot.resources):
        if name != "pods" and session.request[pod_class, dim] > 0:
            asked[name] = int(session.request[pod_class, dim])
            has[name] = int(session.node_table.allocatable[dim, node])
    largest = session.node_table.names[node]
    message = (
        f"A pod needs {_listed(asked)}, more than any suitable node has; "
        f"the largest is {largest} with {_listed(has)}."
    )
    return Finding(ReasonCode.NO_NODE_FITS, message, {**counts, "largest": largest, "has": has})


def _listed(amounts: dict[str, int]) -> str:
    return ", ".join(quantity(name, amount) for name, amount in amounts.items())


def _unsuitable_words(session: Session) -> str:
    """Why none of the nodes will do, each node counted once."""
    nodes = session.snapshot.nodes
    is_cordoned = nodes.ready & nodes.unschedulable
    others = int((nodes.ready & ~is_cordoned).sum())
    matches = "matches its selector, affinity and tolerations"
    if others == len(nodes):
        return f"none of {len(nodes)} {matches}"
    parts = []
    counts = {"not ready": int((~nodes.ready).sum()), "cordoned": int(is_cordoned.sum())}
    for word, count in counts.items():
        if count:
            parts.append(f"{count} {'is' if count == 1 else 'are'} {word}")
    if others:
        parts.append(f"none of the other {others} {matches}")
    return f"of {len(nodes)}, {', '.join(parts)}"
