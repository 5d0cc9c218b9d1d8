"""What a reader may be told of others' work: the one filter of pages, API, websocket and command line.

A queue that somebody may not see, its jobs, its pods and who owns them are never named to them, in whatever record or
sentence they occur. How many there are may be told, and what the cluster as a whole has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from scheduler.models import Eviction

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
    hidden: int  # how many more there are, in queues out of sight


@dataclass(frozen=True, slots=True)
class SeenEviction:
    """Both sides of an eviction, each as far as its queue may be seen. `before` and `after` are the victim's queue's."""

    pod: str
    podgroup: str
    queue: str
    node: str
    beneficiary: str
    beneficiary_queue: str
    reason: str
    level: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sight:
    """`visible` are the names of the queues that the reader may see; None for all there are."""

    visible: Collection[str] | None

    @property
    def is_whole(self) -> bool:
        return self.visible is None

    def sees(self, queue: str) -> bool:
        return self.visible is None or queue in self.visible

    def queue(self, name: str) -> str:
        """Its name, or nothing."""
        return name if name and self.sees(name) else ""

    def job(self, key: str, queue: str) -> OtherJob | None:
        """None where there is none: not every eviction is for somebody."""
        if not key:
            return None
        namespace, _, name = key.partition("/")
        if not name or not self.sees(queue):
            return OtherJob()
        return OtherJob(key, reverse("job", args=[namespace, name]), queue)

    def pods(self, pods: Iterable[tuple[str, str]]) -> SeenPods:
        """Of pods with their queues."""
        known = list(pods)
        names = tuple(pod for pod, queue in known if self.sees(queue))
        return SeenPods(names, len(known) - len(names))

    def eviction(self, row: Eviction) -> SeenEviction:
        victim = self.sees(row.queue_name)
        taker = not row.beneficiary_queue or self.sees(row.beneficiary_queue)
        return SeenEviction(
            pod=row.pod_name if victim else "",
            podgroup=row.podgroup_name if victim else "",
            queue=row.queue_name if victim else "",
            node=row.node_name if victim else "",
            beneficiary=row.beneficiary if taker else "",
            beneficiary_queue=row.beneficiary_queue if taker else "",
            reason=row.reason if victim and taker else "",
            level=self.queue(row.common_ancestor),
            before=row.before if victim else {},
            after=row.after if victim else {},
        )

    def shares(self, parts: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
        """Amounts by queue; those of queues out of sight are one, the last."""
        known = list(parts)
        seen = [part for part in known if self.sees(part[0])]
        hidden = sum(amount for name, amount in known if not self.sees(name))
        return [*seen, (OTHER_QUEUES, hidden)] if hidden else seen

    def of_the_cluster(self, words: str) -> str:
        """A text about the cluster as a whole, such as why a session failed: it can name any queue and any job."""
        return words if self.is_whole or not words else NOT_TOLD
