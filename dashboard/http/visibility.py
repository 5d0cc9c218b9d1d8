"""What a reader may be told of others' work: the one filter of pages, API, websocket and CLI.

A queue that somebody may not see, its jobs, its pods and their owners are never named to them, in
whatever record or sentence they occur. How many there are may be told, and what the cluster as a
whole has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.urls import reverse

from scheduler.domain.evictions import eviction_words
from scheduler.domain.no_reclaim import ReclaimAnswer, reclaim_words
from scheduler.models import Eviction
from scheduler.selectors.jobs.timeline import TimelineEntry

OTHER_QUEUES = "other queues"
NOT_TOLD = "Only those who may see the whole cluster are told what happened."


@dataclass(frozen=True, slots=True)
class OtherJob:
    """Somebody's job, "namespace/name"; all empty where the reader may not know which."""

    key: str = ""
    url: str = ""
    queue: str = ""


@dataclass(frozen=True, slots=True)
class SeenPods:
    names: tuple[str, ...]
    hidden: int
    """How many more there are, in queues that the reader may not see."""


@dataclass(frozen=True, slots=True)
class SeenEviction:
    """Both sides of an eviction, each as far as its queue may be seen.

    `before` and `after` are the figures of the victim's queue. `grounds` are what it was decided
    by, and `words` say it.
    """

    pod: str = ""
    podgroup: str = ""
    queue: str = ""
    node: str = ""
    beneficiary: str = ""
    beneficiary_queue: str = ""
    reason: str = ""
    level: str = ""
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    grounds: Mapping[str, Any] = field(default_factory=dict)
    words: str = ""


@dataclass(frozen=True, slots=True)
class Visibility:
    """`visible` are the names of the queues that the reader may see; None for all there are."""

    visible: Collection[str] | None

    @property
    def is_whole(self) -> bool:
        return self.visible is None

    def sees(self, queue: str) -> bool:
        return self.visible is None or queue in self.visible

    def visible_queue(self, name: str) -> str:
        """Its name, or ""."""
        if not name or not self.sees(name):
            return ""
        return name

    def visible_job(self, key: str, queue: str) -> OtherJob | None:
        """None where there is none: not every eviction is for somebody."""
        if not key:
            return None
        namespace, _, name = key.partition("/")
        if not name or not self.sees(queue):
            return OtherJob()
        return OtherJob(key, reverse("job", args=[namespace, name]), queue)

    def visible_pods(self, pods: Iterable[tuple[str, str]]) -> SeenPods:
        """Of pods with their queues."""
        known = list(pods)
        names = tuple(pod for pod, queue in known if self.sees(queue))
        return SeenPods(names, len(known) - len(names))

    def visible_eviction(self, row: Eviction) -> SeenEviction:
        seen: dict[str, Any] = {
            "level": self.visible_queue(row.common_ancestor),
            "grounds": self.visible_grounds(row.grounds),
            "words": eviction_words(row.action, row.grounds, self.visible_queue),
        }
        sees_victim = self.sees(row.queue_name)
        sees_beneficiary = not row.beneficiary_queue or self.sees(row.beneficiary_queue)
        if sees_victim:
            seen["pod"] = row.pod_name
            seen["podgroup"] = row.podgroup_name
            seen["queue"] = row.queue_name
            seen["node"] = row.node_name
            seen["before"] = row.before
            seen["after"] = row.after
        if sees_beneficiary:
            seen["beneficiary"] = row.beneficiary
            seen["beneficiary_queue"] = row.beneficiary_queue
        if sees_victim and sees_beneficiary:
            seen["reason"] = row.reason
        return SeenEviction(**seen)

    def step_detail(self, step: TimelineEntry) -> str:
        """What is told of a step of a job's history beside its title."""
        if not step.grounds:
            return step.detail
        return eviction_words(step.action, step.grounds, self.visible_queue)

    def visible_grounds(self, grounds: Mapping[str, Any]) -> dict[str, Any]:
        """Without the side whose queue may not be seen."""
        seen = dict(grounds)
        for side in ("taker", "loser"):
            if side in seen and not self.sees(seen[side]["queue"]):
                del seen[side]
        return seen

    def reclaim_words(self, answer: ReclaimAnswer | None) -> str:
        """Why a job does not reclaim; "" where there is nothing to say."""
        if answer is None:
            return ""
        return reclaim_words(answer, self.visible_queue)

    def visible_shares(self, parts: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
        """Amounts by queue; those of queues that may not be seen are one, the last."""
        shares = []
        hidden = 0
        for name, amount in parts:
            if self.sees(name):
                shares.append((name, amount))
            else:
                hidden += amount
        if hidden:
            shares.append((OTHER_QUEUES, hidden))
        return shares

    def cluster_words(self, words: str) -> str:
        """A text about the whole cluster, such as why a session failed: it can name any queue."""
        if self.is_whole or not words:
            return words
        return NOT_TOLD
