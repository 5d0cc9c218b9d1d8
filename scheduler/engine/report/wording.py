"""Volcano's sentences about a gang that does not start, and about each of its pods."""

from __future__ import annotations

from collections import Counter

from scheduler.domain.codes import StatusCode
from scheduler.domain.reasons import ReasonCode, reason_entry
from scheduler.engine.decisions import Reason
from scheduler.engine.report.checks import needed_pods, nodes_short_of
from scheduler.engine.session import Session
from scheduler.engine.state.constraints import suitable_nodes
from scheduler.engine.state.gang import Gang

_CONDITION_REASONS = {
    ReasonCode.NOT_ENOUGH_TASKS: "NotEnoughTasks",
    ReasonCode.QUEUE_SUSPENDED: "QueueSuspended",
}
_NO_MATCH = "node(s) didn't match Pod's node affinity/selector or taints"


def condition_reason(reason: Reason) -> str:
    """The reason of Volcano's condition Unschedulable."""
    detail = str(reason.figures.get("detail", ""))
    if detail.startswith("NotEnoughPodsOfTask"):
        return "NotEnoughPodsOfTask"
    return _CONDITION_REASONS.get(reason.code, "NotEnoughResources")


class Wording:
    """The sentences of one session. What is said of a class of pods is found out once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._fit_errors: dict[int, str] = {}

    def gang_message(self, gang: Gang, reason: Reason) -> str:
        """How many pods of the gang cannot be placed, and what stands in the way."""
        schedulable = max(gang.ready + gang.waiting, gang.placeable)
        short = max(0, gang.min_member - schedulable)
        error = self._gang_error(gang, reason)
        return f"{short}/{gang.tasks} tasks in gang unschedulable: {error}"

    def _gang_error(self, gang: Gang, reason: Reason) -> str:
        counts = {"Pending": gang.pending, "Pipelined": gang.waiting, "Ready": gang.ready}
        summary = "".join(f"{count} {name}, " for name, count in counts.items() if count)
        schedulable = max(0, min(gang.pending, gang.placeable - gang.ready))
        pending = f"{gang.pending - schedulable} Unschedulable"
        if schedulable:
            pending += f", {schedulable} Schedulable"
        return (
            f"pod group is not ready, {summary}{gang.min_member} minAvailable; "
            f"Pending: {pending}. Origin reason is {self._origin(gang, reason)}"
        )

    def _origin(self, gang: Gang, reason: Reason) -> str:
        """What holds the whole gang back; else the first pod without a place, and why."""
        pods = needed_pods(self._session, gang)
        if not pods or not _nodes_were_asked(gang, reason):
            return reason.message
        placeable = max(0, gang.placeable - gang.ready)
        pod = pods[min(placeable, len(pods) - 1)]
        name = self._session.snapshot.pods.key[pod].rpartition("/")[2]
        return f"{name}: {self._fit_error(pod)}"

    def pod_message(self, gang: Gang, why: Reason, pod: int, number: int) -> tuple[str, str]:
        """Reason and message for one pod, the `number`th of its gang that waits.

        It had a place in the try that was taken back, it waits for one, or it has none for the
        reason that its gang has.
        """
        key = self._session.snapshot.pods.key[pod]
        if pod in gang.held or self._session.status[pod] == StatusCode.PIPELINED:
            return "Unschedulable", once_released(key)
        if number < gang.placeable - gang.ready and reason_entry(why.code).can_pass:
            text = f"pod {key} can possibly be scheduled once minAvailable is satisfied"
            return "Schedulable", text
        if _nodes_were_asked(gang, why):
            return "Unschedulable", self._fit_error(pod)
        if reason_entry(why.code).more_nodes_help:
            return "Unschedulable", why.message
        return str(why.code), why.message

    def _fit_error(self, pod: int) -> str:
        pod_class = int(self._session.pod_classes[pod])
        if pod_class not in self._fit_errors:
            self._fit_errors[pod_class] = fit_error(self._session, pod_class)
        return self._fit_errors[pod_class]


def once_released(pod: str) -> str:
    """Of a pod that a place is kept for."""
    return f"pod {pod} can possibly be scheduled once resource is released"


def _nodes_were_asked(gang: Gang, why: Reason) -> bool:
    """No node was asked for a gang that enqueue refused."""
    if why.code is ReasonCode.NO_NODE_FITS:
        return True
    return reason_entry(why.code).nodes_were_asked and bool(gang.failed)


def fit_error(session: Session, pod_class: int) -> str:
    """Why one more pod of this class fits nowhere: a count of nodes for each reason.

    All pods that fit are taken to have their place.
    """
    counts = _unsuitable_counts(session, pod_class)
    for dim, short in nodes_short_of(session, pod_class).items():
        name = session.snapshot.resources[dim]
        if name == "pods":
            counts["node(s) pod number exceeded"] = short
        else:
            counts[f"Insufficient {name}"] = short
    nodes = len(session.snapshot.nodes)
    parts = [f"{count} {text}" for text, count in sorted(counts.items()) if count]
    if not parts:
        return f"{nodes} nodes were looked at"
    return f"0/{nodes} nodes are unavailable: {', '.join(parts)}."


def _unsuitable_counts(session: Session, pod_class: int) -> Counter[str]:
    nodes = session.snapshot.nodes
    classes = session.snapshot.classes
    suitable = session.node_scores(pod_class).suitable
    matching = suitable
    if not suitable.all():
        constraint = classes.constraints[int(classes.constraint[pod_class])]
        matching = suitable_nodes(constraint, nodes)
    cordoned = nodes.ready & nodes.unschedulable
    counts: Counter[str] = Counter()
    counts["node(s) were not ready"] = int((~nodes.ready).sum())
    counts["node(s) were unschedulable"] = int((cordoned & ~suitable).sum())
    counts[_NO_MATCH] = int((nodes.ready & ~nodes.unschedulable & ~matching).sum())
    return counts
