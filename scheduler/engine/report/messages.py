"""What a session says about podgroups and pods, each only when it is new.

Our reasons, and Volcano's conditions and events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from scheduler.domain.evictions import event_words
from scheduler.domain.nodes import Mask
from scheduler.domain.plans import counted
from scheduler.domain.reasons import ReasonCode, reason_entry
from scheduler.domain.tables import Rows
from scheduler.engine.actions.shed import REASON as SHED_REASON
from scheduler.engine.decisions import Condition, Event, PodCondition, Reason, Said
from scheduler.engine.report.checks import needed_amounts
from scheduler.engine.report.elastic_pods import ElasticPods
from scheduler.engine.report.evictions import grounds_of
from scheduler.engine.report.explain import explain, is_impossible, signature
from scheduler.engine.report.figures import Waiting
from scheduler.engine.report.grouping import groups_of_alike
from scheduler.engine.report.wording import Wording, condition_reason
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang

READY = "tasks in gang are ready to be scheduled"


@dataclass
class Report:
    """Everything that is said of this session's podgroups and pods, as far as it is new."""

    reasons: dict[str, Reason] = field(default_factory=dict)
    said: list[Said] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    pod_conditions: list[PodCondition] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    waiting: Waiting = field(default_factory=Waiting)


class Explanation(NamedTuple):
    """Why a gang waits, and Volcano's sentence on it; the fingerprint tells if it is new."""

    reason: Reason
    message: str
    fingerprint: int


def write_report(session: Session, waiting: Mask, elastic: Mask) -> Report:
    """`waiting` marks the podgroups that did not start.

    `elastic` marks those that run, with more pods that want a place.
    """
    return Reporter(session).write(waiting, elastic)


class Reporter:
    """Alike podgroups share one reason: many that wait for the same cost hardly more than one."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.result = Report()
        self._wording = Wording(session)
        self._explanations: dict[tuple[object, ...], Explanation] = {}
        self._texts: dict[int, tuple[object, str]] = {}  # of checks, by their identity
        self._has_gang_plugin = session.plugin("gang") is not None

    def write(self, waiting: Mask, elastic: Mask) -> Report:
        for row, explanation in self._with_news(np.flatnonzero(waiting)):
            self._tell_of_waiting(self.session.gang(row), explanation)
        self._take_back_reasons(~(waiting | self._tell_elastic_pods(elastic)))
        self._tell_of_started()
        self._tell_of_evictions()
        self._tell_of_shed()
        return self.result

    # Who waits, and for what

    def _with_news(self, rows: Rows) -> list[tuple[int, Explanation]]:
        """Those of which something new is to be said, by name; and what.

        Alike ones are explained once, for the first of them.
        """
        groups = self.session.snapshot.groups
        by_first: dict[int, list[int]] = {}
        for alike in self._alike(rows):
            by_first[min(alike, key=groups.key.__getitem__)] = alike
        news: list[tuple[int, Explanation]] = []
        for first, alike in sorted(by_first.items(), key=lambda item: groups.key[item[0]]):
            gang = self.session.gang(first)
            explanation = self._explanation(gang)
            self._count_waiting(gang, explanation.reason, alike)
            for row in alike:
                if groups.said[row] != explanation.fingerprint:
                    news.append((row, explanation))
        return sorted(news, key=lambda pair: groups.key[pair[0]])

    def _alike(self, rows: Rows) -> list[list[int]]:
        """Podgroups that the session has dealt with stand alone; the others in groups of alike."""
        known = np.array([self.session.is_known(row) for row in rows.tolist()], dtype=np.bool_)
        alone = [[row] for row in rows[known].tolist()]
        return alone + groups_of_alike(self.session, rows[~known])

    def _explanation(self, gang: Gang) -> Explanation:
        key = signature(self.session, gang)
        if key not in self._explanations:
            reason = explain(self.session, gang)
            message = self._wording.gang_message(gang, reason)
            fingerprint = self._fingerprint(reason, message)
            self._explanations[key] = Explanation(reason, message, fingerprint)
        return self._explanations[key]

    def _fingerprint(self, reason: Reason, message: str) -> int:
        """Never 0, which stands for "nothing was said"."""
        checks = id(reason.checks)  # many gangs share them, and their text is long
        if checks not in self._texts:
            self._texts[checks] = (reason.checks, str(reason.checks))
        text = f"{reason.code}|{reason.message}|{self._texts[checks][1]}|{message}"
        digest = blake2b(text.encode(), digest_size=8)
        return int.from_bytes(digest.digest(), "big", signed=True) or 1

    def _count_waiting(self, gang: Gang, reason: Reason, rows: Sequence[int]) -> None:
        """What these podgroups wait for; or that they can never run."""
        waiting = self.result.waiting
        if self._can_never_run(gang, reason):
            waiting.never.update(rows)
        elif reason_entry(reason.code).lacks_room and not self._is_own_limit(gang, reason):
            dim = self.session.snapshot.resources.index(str(reason.figures["resource"]))
            amount = len(rows) * int(needed_amounts(self.session, gang)[dim])
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
        if reason.code is not ReasonCode.WAITING_FOR_QUOTA:
            return False
        return reason.figures["level"] == self.session.queue_tree.names[gang.queue]

    # Telling

    def _event(self, type: str, reason: str, message: str, object: str, name: str) -> None:
        self.result.events.append(Event(type, reason, message, object, name))

    def _tell_of_waiting(self, gang: Gang, explanation: Explanation) -> None:
        reason, message, fingerprint = explanation
        result = self.result
        result.reasons[gang.key] = reason
        result.said.append(Said(gang.key, gang.row, fingerprint, reason))
        if reason.code is ReasonCode.ANOTHER_SCHEDULER_DECIDES:
            return  # it can be scheduled
        if gang.refusal is not None and gang.refusal.event:
            self._unschedulable_event(gang, "Normal", gang.refusal.event, reason)
        if reason.code is ReasonCode.QUEUE_SUSPENDED and gang.awaits_admission:
            self._event("Normal", "QueueSuspended", reason.message, "podgroup", gang.key)
        if self._has_gang_plugin and gang.tasks:
            why = condition_reason(reason)
            result.conditions.append(Condition(gang.key, gang.row, "Unschedulable", why, message))
            self._unschedulable_event(gang, "Warning", message, reason)
            self._tell_pods(gang, reason)

    def _unschedulable_event(self, gang: Gang, type: str, message: str, reason: Reason) -> None:
        event = Event(type, "Unschedulable", message, "podgroup", gang.key, reason.code)
        self.result.events.append(event)

    def _tell_pods(self, gang: Gang, why: Reason) -> None:
        keys = self.session.snapshot.pods.key
        for number, pod in enumerate(self.session.tasks.pending_pods(gang)):
            reason, text = self._wording.pod_message(gang, why, pod, number)
            self._tell_pod(PodCondition(keys[pod], pod, reason, text))

    def _tell_pod(self, condition: PodCondition) -> None:
        self.result.pod_conditions.append(condition)
        self._event("Warning", "FailedScheduling", condition.message, "pod", condition.pod)

    def _tell_elastic_pods(self, rows: Mask) -> Mask:
        """Pods beyond the minimum of gangs that run. Answers of which gangs something is said."""
        groups = self.session.snapshot.groups
        told: Mask = np.zeros_like(rows)
        pods = ElasticPods(self.session, self._wording)
        for news in pods.news(rows):
            gang = news.gang
            told[gang.row] = True
            if groups.said[gang.row] == news.fingerprint:
                continue
            self.result.said.append(Said(gang.key, gang.row, news.fingerprint, None))
            for condition in pods.conditions(news):
                self._tell_pod(condition)
        return told

    def _take_back_reasons(self, started: Mask) -> None:
        """Podgroups that were told a reason and do not wait any more."""
        groups = self.session.snapshot.groups
        rows = np.flatnonzero(started & groups.alive & (groups.said != 0)).tolist()
        for row in sorted(rows, key=groups.key.__getitem__):
            self.result.said.append(Said(groups.key[row], row, 0, None))

    def _tell_of_started(self) -> None:
        """Gangs that got their minimum in this session."""
        if not self._has_gang_plugin:
            return
        started = {operation.gang.key: operation.gang for operation in self.session.binds}
        for key, gang in sorted(started.items()):
            if gang.ready >= gang.min_member:
                self.result.conditions.append(Condition(key, gang.row, "Scheduled", READY))
                self._event("Normal", "Scheduled", READY, "podgroup", key)

    def _tell_of_evictions(self) -> None:
        keys = self.session.snapshot.pods.key
        said: dict[int, str] = {}  # evictions that were decided together share their grounds
        for operation in self.session.evictions:
            grounds = grounds_of(self.session, operation)
            if id(grounds) not in said:
                said[id(grounds)] = event_words(operation.action, grounds.as_dict())
            words = said[id(grounds)]
            (pod,) = operation.pods
            self.result.events.append(Event("Normal", "Evict", words, "pod", keys[pod]))

    def _tell_of_shed(self) -> None:
        """A gang that gave up what it had is told of, and so is its queue."""
        session = self.session
        gangs = [session.gang(row) for row in session.shed_gangs]
        for gang in sorted(gangs, key=lambda gang: gang.key):
            queue = session.queue_tree.names[gang.queue]
            cause = f"queue {queue} has all that it deserves"
            if gang.broken:
                cause = "reclaim took the others"
            text = (
                f"{gang.key} gave up {counted(self._shed_pods(gang), 'pod')}: "
                f"it is short of its gang of {gang.min_member}, and {cause}"
            )
            self._event("Warning", SHED_REASON, text, "podgroup", gang.key)
            self._event("Warning", SHED_REASON, text, "queue", queue)

    def _shed_pods(self, gang: Gang) -> int:
        count = 0
        for operation in self.session.evictions:
            if operation.gang is gang and operation.action == "shed":
                count += len(operation.pods)
        return count
