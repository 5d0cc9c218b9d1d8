"""What a session says about podgroups and pods: our reasons, and Volcano's conditions and events,
each only when it is new.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.reasons import ReasonCode, reason_entry
from scheduler.domain.tables import Rows
from scheduler.domain.workloads import PodStatus
from scheduler.engine.actions.shed import REASON as SHED_REASON
from scheduler.engine.decisions import Condition, Event, PodCondition, Reason, Said
from scheduler.engine.report.checks import missing_pods, needed, nodes_short_of
from scheduler.engine.report.explain import explain, is_impossible, signature
from scheduler.engine.report.figures import Waiting
from scheduler.engine.report.grouping import alike
from scheduler.engine.session import Session
from scheduler.engine.state.constraints import suitable_nodes
from scheduler.engine.state.gang import Gang

READY = "tasks in gang are ready to be scheduled"
_OWN_REASONS = {
    ReasonCode.NOT_ENOUGH_TASKS: "NotEnoughTasks",
    ReasonCode.QUEUE_SUSPENDED: "QueueSuspended",
}


@dataclass
class Report:
    reasons: dict[str, Reason] = field(default_factory=dict)
    said: list[Said] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    pod_conditions: list[PodCondition] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    waiting: Waiting = field(default_factory=Waiting)


def report(session: Session, waiting: Mask) -> Report:
    """`waiting` marks the podgroups that did not start."""
    return Reporter(session).write(waiting)


class Reporter:
    """Alike podgroups share one reason, so that many that wait for the same cost hardly more than
    one.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.result = Report()
        self._reasons: dict[tuple[object, ...], tuple[Reason, str, int]] = {}
        self._fit_errors: dict[int, str] = {}
        self._has_gang = session.plugin("gang") is not None

    def write(self, waiting: Mask) -> Report:
        groups = self.session.snapshot.groups
        for row in self._with_news(np.flatnonzero(waiting)):
            gang = self.session.gang(row)
            self._say(gang, *self._shared(gang))
        for row in sorted(
            np.flatnonzero(~waiting & groups.alive & (groups.said != 0)).tolist(),
            key=groups.key.__getitem__,
        ):
            self.result.said.append(Said(groups.key[row], row, 0, None))
        self._tell_of_started()
        self._tell_of_evictions()
        self._tell_of_shed()
        return self.result

    def _with_news(self, rows: Rows) -> list[int]:
        """Those of which something new is to be said, by name.

        Alike ones are asked about once, for the first of them.
        """
        key = self.session.snapshot.groups.key
        said = self.session.snapshot.groups.said
        known = np.array([self.session.is_known(row) for row in rows.tolist()], dtype=np.bool_)
        groups_alike = [
            *([row] for row in rows[known].tolist()),
            *alike(self.session, rows[~known]),
        ]
        firsts = {min(rows, key=key.__getitem__): rows for rows in groups_alike}
        news: list[int] = []
        for first in sorted(firsts, key=key.__getitem__):
            gang = self.session.gang(first)
            reason, _, fingerprint = self._shared(gang)
            self._count(gang, reason, firsts[first])
            news.extend(row for row in firsts[first] if said[row] != fingerprint)
        return sorted(news, key=key.__getitem__)

    def _count(self, gang: Gang, reason: Reason, rows: list[int]) -> None:
        """What these podgroups wait for; or that they can never run."""
        waiting = self.result.waiting
        if self._can_never_run(gang, reason):
            waiting.never.update(rows)
        elif reason_entry(reason.code).lacks_room and not self._is_own_limit(gang, reason):
            dim = self.session.snapshot.resources.index(str(reason.figures["resource"]))
            amount = len(rows) * int(needed(self.session, gang)[dim])
            place = (gang.queue, dim)
            waiting.lacking[place] = waiting.lacking.get(place, 0) + amount

    def _can_never_run(self, gang: Gang, reason: Reason) -> bool:
        """By its reason, or because it also asks for too much: another reason came first."""
        entry = reason_entry(reason.code)
        if entry.can_never_run:
            return True
        return not entry.is_about_room and is_impossible(self.session, gang)

    def _is_own_limit(self, gang: Gang, reason: Reason) -> bool:
        """Its own queue keeps it from more: nobody has taken anything from it."""
        return (
            reason.code is ReasonCode.WAITING_FOR_QUOTA
            and reason.figures["level"] == self.session.queue_tree.names[gang.queue]
        )

    def _shared(self, gang: Gang) -> tuple[Reason, str, int]:
        key = signature(self.session, gang)
        found = self._reasons.get(key)
        if found is None:
            reason = explain(self.session, gang)
            message = self._gang_message(gang, reason)
            digest = blake2b(
                f"{reason.code}|{reason.message}|{reason.checks}|{message}".encode(), digest_size=8
            )
            found = self._reasons[key] = (
                reason,
                message,
                int.from_bytes(digest.digest(), "big", signed=True) or 1,
            )
        return found

    def _say(self, gang: Gang, reason: Reason, message: str, fingerprint: int) -> None:
        result = self.result
        result.reasons[gang.key] = reason
        result.said.append(Said(gang.key, gang.row, fingerprint, reason))
        if gang.refusal is not None and gang.refusal.event:
            result.events.append(
                Event(
                    "Normal", "Unschedulable", gang.refusal.event, "podgroup", gang.key, reason.code
                )
            )
        if reason.code is ReasonCode.QUEUE_SUSPENDED and gang.is_waiting_outside:
            result.events.append(
                Event("Normal", "QueueSuspended", reason.message, "podgroup", gang.key)
            )
        if self._has_gang and gang.tasks:
            result.conditions.append(
                Condition(gang.key, gang.row, "Unschedulable", _condition_reason(reason), message)
            )
            result.events.append(
                Event("Warning", "Unschedulable", message, "podgroup", gang.key, reason.code)
            )
            self._tell_pods(gang, reason)

    def _tell_of_started(self) -> None:
        """Podgroups that got their gang in this session."""
        started = {operation.gang.row: operation.gang for operation in self.session.binds}
        for gang in sorted(started.values(), key=lambda gang: gang.key):
            if self._has_gang and gang.ready >= gang.min_member:
                self.result.conditions.append(Condition(gang.key, gang.row, "Scheduled", READY))
                self.result.events.append(Event("Normal", "Scheduled", READY, "podgroup", gang.key))

    def _tell_of_evictions(self) -> None:
        keys = self.session.snapshot.pods.key
        for operation in self.session.evictions:
            for pod in operation.pods:
                why = SHED_REASON if operation.action == "shed" else operation.action
                self.result.events.append(Event("Normal", "Evict", why, "pod", keys[pod]))

    def _tell_of_shed(self) -> None:
        """A gang that gave up what it had is told of, and so is its queue."""
        session = self.session
        for gang in sorted(
            (session.gang(row) for row in session.shed_gangs), key=lambda gang: gang.key
        ):
            count = sum(
                len(operation.pods)
                for operation in session.evictions
                if operation.gang is gang and operation.action == "shed"
            )
            queue = session.queue_tree.names[gang.queue]
            pods = f"{count} {'pod' if count == 1 else 'pods'}"
            cause = (
                "reclaim took the others"
                if gang.broken
                else f"queue {queue} has all that it deserves"
            )
            text = f"{gang.key} gave up {pods}: it is short of its gang of {gang.min_member}, and {cause}"
            self.result.events.append(Event("Warning", SHED_REASON, text, "podgroup", gang.key))
            self.result.events.append(Event("Warning", SHED_REASON, text, "queue", queue))

    def _tell_pods(self, gang: Gang, why: Reason) -> None:
        session = self.session
        keys = self.session.snapshot.pods.key
        for number, pod in enumerate(session.tasks.pending_pods(gang)):
            reason, text = self._pod_message(gang, why, pod, number)
            self.result.pod_conditions.append(PodCondition(keys[pod], pod, reason, text))
            self.result.events.append(Event("Warning", "FailedScheduling", text, "pod", keys[pod]))

    def _pod_message(self, gang: Gang, why: Reason, pod: int, number: int) -> tuple[str, str]:
        """As after a try that was taken back: it had a place, it waits for one, or it has none, for
        the reason that its gang has.
        """
        if pod in gang.held or self.session.status[pod] == PodStatus.PIPELINED:
            return (
                "Unschedulable",
                f"pod {self.session.snapshot.pods.key[pod]} can possibly be scheduled once resource is released",
            )
        if number < gang.placeable - gang.ready and reason_entry(why.code).can_pass:
            return (
                "Schedulable",
                f"pod {self.session.snapshot.pods.key[pod]} can possibly be scheduled once minAvailable is satisfied",
            )
        if self._nodes_were_asked(gang, why):
            return "Unschedulable", self._fit_error(int(self.session.pod_classes[pod]))
        if reason_entry(why.code).more_nodes_help:
            return "Unschedulable", why.message
        return str(why.code), why.message

    def _nodes_were_asked(self, gang: Gang, why: Reason) -> bool:
        """For a gang that enqueue refused no node was asked."""
        if why.code is ReasonCode.NO_NODE_FITS:
            return True
        return reason_entry(why.code).nodes_were_asked and bool(gang.failed)

    def _gang_message(self, gang: Gang, reason: Reason) -> str:
        """Volcano's sentence: how many of the gang can not be placed, and what stands in the way."""
        schedulable = max(gang.ready + gang.waiting, gang.placeable)
        return f"{max(0, gang.min_member - schedulable)}/{gang.tasks} tasks in gang unschedulable: {self._gang_error(gang, reason)}"

    def _gang_error(self, gang: Gang, reason: Reason) -> str:
        counts = {"Pending": gang.pending, "Pipelined": gang.waiting, "Ready": gang.ready}
        summary = "".join(f"{count} {name}, " for name, count in sorted(counts.items()) if count)
        schedulable = max(0, min(gang.pending, gang.placeable - gang.ready))
        pending = f"{gang.pending - schedulable} Unschedulable" + (
            f", {schedulable} Schedulable" if schedulable else ""
        )
        state = (
            f"pod group is not ready, {summary}{gang.min_member} minAvailable; Pending: {pending}"
        )
        return f"{state}. Origin reason is {self._origin(gang, reason)}"

    def _origin(self, gang: Gang, reason: Reason) -> str:
        """The first pod that has no place and why; what holds the whole gang back goes before it."""
        if not self._nodes_were_asked(gang, reason) or not missing_pods(self.session, gang):
            return reason.message
        first = min(max(0, gang.placeable - gang.ready), len(missing_pods(self.session, gang)) - 1)
        pod = missing_pods(self.session, gang)[first]
        return f"{self.session.snapshot.pods.key[pod].rpartition('/')[2]}: {self._fit_error(int(self.session.pod_classes[pod]))}"

    def _fit_error(self, pod_class: int) -> str:
        if pod_class not in self._fit_errors:
            self._fit_errors[pod_class] = fit_error(self.session, pod_class)
        return self._fit_errors[pod_class]


def _condition_reason(reason: Reason) -> str:
    detail = str(reason.figures.get("detail", ""))
    if detail.startswith("NotEnoughPodsOfTask"):
        return "NotEnoughPodsOfTask"
    return _OWN_REASONS.get(reason.code, "NotEnoughResources")


def fit_error(session: Session, pod_class: int) -> str:
    """Why one more pod of this class fits nowhere, when all that do have their place: a count of
    nodes for each reason.
    """
    nodes = session.snapshot.nodes
    suitable = session.node_scores(pod_class).suitable
    counts: Counter[str] = Counter()
    counts["node(s) were not ready"] = int((~nodes.ready).sum())
    counts["node(s) were unschedulable"] = int(
        (nodes.ready & nodes.unschedulable & ~suitable).sum()
    )
    constraint = session.snapshot.classes.constraints[
        int(session.snapshot.classes.constraint[pod_class])
    ]
    matching = suitable_nodes(constraint, nodes) if not suitable.all() else suitable
    counts["node(s) didn't match Pod's node affinity/selector or taints"] = int(
        (nodes.ready & ~nodes.unschedulable & ~matching).sum()
    )
    for dim, short in nodes_short_of(session, pod_class).items():
        name = session.snapshot.resources[dim]
        text = "node(s) pod number exceeded" if name == "pods" else f"Insufficient {name}"
        counts[text] = short
    parts = ", ".join(
        f"{count} {text}"
        for text, count in sorted(counts.items(), key=lambda item: item[0])
        if count
    )
    if parts:
        return f"0/{len(nodes)} nodes are unavailable: {parts}."
    return f"{len(nodes)} nodes were looked at"
