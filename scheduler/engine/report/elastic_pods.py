"""Pods beyond the minimum of a gang that runs: why they have no place.

The gang itself waits for nothing: it has no reason, and is not counted among those that wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from scheduler.domain.codes import PhaseCode, StatusCode
from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.pod_conditions import POD
from scheduler.domain.reasons import ReasonCode
from scheduler.domain.tables import Codes
from scheduler.engine.decisions import PodCondition
from scheduler.engine.report.explain import explain
from scheduler.engine.report.wording import Wording, once_released
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang


class ElasticNews(NamedTuple):
    """What is said of the pods of one gang; the fingerprint tells if it is new."""

    gang: Gang
    told: list[Told]
    fingerprint: int


class Told(NamedTuple):
    """The same words for some pods of a gang."""

    reason: str
    message: str
    pods: list[int]


def with_elastic_pods(session: Session, counts: Amounts, phases: Codes) -> Mask:
    """Podgroups that run while more of their pods want a place.

    Not where another scheduler decides, nor without the plugin gang: no pod is told anything then.
    """
    if session.snapshot.is_watched or session.plugin("gang") is None:
        return np.zeros(len(phases), dtype=np.bool_)
    wanting = counts[:, StatusCode.PENDING] + counts[:, StatusCode.PIPELINED]
    found: Mask = session.snapshot.groups.alive & (phases == PhaseCode.RUNNING) & (wanting > 0)
    return found


class ElasticPods:
    """Of each class of pods the cause is found once, for the next of them.

    Alike ones of other gangs share it.
    """

    def __init__(self, session: Session, wording: Wording) -> None:
        self._session = session
        self._wording = wording
        self._answers: dict[tuple[object, ...], tuple[str, str] | None] = {}

    def news(self, rows: Mask) -> Iterator[ElasticNews]:
        """By name; only gangs of whose pods something is to be said."""
        keys = self._session.snapshot.groups.key
        for row in sorted(np.flatnonzero(rows).tolist(), key=keys.__getitem__):
            gang = self._session.gang(row)
            told = list(self._words_for_pods(gang))
            if told:
                yield ElasticNews(gang, told, self._fingerprint(told))

    def conditions(self, news: ElasticNews) -> Iterator[PodCondition]:
        keys = self._session.snapshot.pods.key
        for reason, message, pods in news.told:
            for pod in pods:
                yield PodCondition(keys[pod], pod, reason, message.replace(POD, keys[pod]))

    def _words_for_pods(self, gang: Gang) -> Iterator[Told]:
        """Pods that a place is kept for; then the others, class by class."""
        session = self._session
        kept = self._with_a_promise(gang)
        if kept:
            yield Told("Unschedulable", once_released(POD), kept)
        by_class: dict[int, list[int]] = {}
        unplaced = session.tasks.unplaced_pods(gang)
        for pod, pod_class in zip(unplaced, session.pod_classes[unplaced].tolist(), strict=True):
            by_class.setdefault(pod_class, []).append(pod)
        for pod_class, pods in by_class.items():
            words = self._words(gang, pod_class, pods[0], is_mixed=len(by_class) > 1)
            if words is not None:
                yield Told(*words, pods)

    def _with_a_promise(self, gang: Gang) -> list[int]:
        """Pods that wait for room that is kept for them, in task order."""
        tasks = self._session.tasks
        kept = set(gang.held)
        if gang.waiting:
            pods = tasks.pods_of(gang.row)
            kept.update(pods[self._session.status[pods] == StatusCode.PIPELINED].tolist())
        return sorted(kept, key=tasks.pod_key)

    def _words(
        self, gang: Gang, pod_class: int, pod: int, *, is_mixed: bool
    ) -> tuple[str, str] | None:
        """Reason and sentence; None if no action has looked at them."""
        key = (pod_class, is_mixed, *self._traits(gang))
        if key not in self._answers:
            part = self._part(gang, pod_class, is_mixed=is_mixed)
            reason = explain(self._session, part)
            self._answers[key] = None
            if reason.code is not ReasonCode.AWAITING_EVALUATION:
                self._answers[key] = self._wording.pod_message(part, reason, pod, 0)
        return self._answers[key]

    def _traits(self, gang: Gang) -> tuple[object, ...]:
        """All that the answer depends on, for a gang that has its minimum."""
        groups = self._session.snapshot.groups
        is_like_no_other = gang.roles or self._session.position_in_line(gang)
        return (
            gang.queue,
            gang.failed,
            gang.blocked,
            gang.placeable,
            gang.min_member,
            gang.refusal,
            groups.on_hold[gang.row],
            groups.not_permitted[gang.row],
            gang.row if is_like_no_other else -1,
        )

    def _part(self, gang: Gang, pod_class: int, *, is_mixed: bool) -> Gang:
        """The gang as if only its pods of this class had no place, and none waited for theirs."""
        part = copy(gang)
        part.only_class = pod_class
        part.waiting = 0
        if is_mixed and gang.failed:
            part.failed = self._cause(gang, pod_class)
        if is_mixed and not self._session.is_bound_by_rules(pod_class):
            part.blocked = ()
        return part

    def _cause(self, gang: Gang, pod_class: int) -> str:
        """What stands in the way of this class: `failed` tells only of the first that failed."""
        session = self._session
        if session.overused(gang.queue) or not session.allocatable(gang.queue, pod_class):
            return "quota"
        return "room"

    def _fingerprint(self, told: list[Told]) -> int:
        """Never 0, which stands for "nothing was said".

        It has the names of the pods: one that takes the place of another must be told, too.
        """
        keys = self._session.snapshot.pods.key
        digest = blake2b(digest_size=8)
        for reason, message, pods in told:
            names = "|".join([keys[pod] for pod in pods])
            digest.update(f"{reason}|{message}|{names}\n".encode())
        return int.from_bytes(digest.digest(), "big", signed=True) or 1
