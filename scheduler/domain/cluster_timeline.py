"""What happened in the cluster on one axis of time: its lanes, and marks that are gathered where
there are too many to tell apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from scheduler.domain.plans import counted

LANES: Final[Mapping[str, str]] = {
    "queues": "Queue states",
    "quotas": "Quotas and settings",
    "evictions": "Evictions",
    "nodes": "Nodes",
    "policy": "Policy and pauses",
    "changes": "Change sets and plans",
    "forecasts": "Expected starts",
}
"""By name, as they are drawn from the top."""

ACTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "OpenQueue": ("queues", "was opened"),
    "CloseQueue": ("queues", "was closed"),
    "SuspendQueue": ("queues", "was suspended"),
    "ResumeQueue": ("queues", "was resumed"),
    "CreateQueue": ("queues", "was created"),
    "DeleteQueue": ("queues", "was deleted"),
    "UpdateQueue": ("quotas", "was changed"),
    "NodeLost": ("nodes", "was lost"),
    "NodeReady": ("nodes", "came back"),
    "CordonNode": ("nodes", "was cordoned"),
    "UncordonNode": ("nodes", "was uncordoned"),
    "DrainNode": ("nodes", "was drained"),
    "CreateNode": ("nodes", "was added"),
    "DeleteNode": ("nodes", "was taken away"),
    "ReplacePolicy": ("policy", "was replaced"),
    "PauseScheduling": ("policy", "was paused"),
    "ResumeScheduling": ("policy", "was resumed"),
    "ApplyChangeSet": ("changes", "was applied"),
    "BeginPlannedChange": ("changes", "began as planned"),
    "EndPlannedChange": ("changes", "ended as planned"),
    "HoldUpPlannedChange": ("changes", "was held up"),
    "MissPlannedChange": ("changes", "was missed"),
    "SkipPlannedChange": ("changes", "was skipped"),
    "BeginWindow": ("changes", "began"),
    "EndWindow": ("changes", "ended"),
}
"""Actions of the audit log that are marks: the lane of each, and what it did to its object."""

NOUNS: Final[Mapping[str, tuple[str, str]]] = {
    "queues": ("change of a queue's state", "changes of queues' states"),
    "quotas": ("change of a queue", "changes of queues"),
    "evictions": ("eviction", "evictions"),
    "nodes": ("change of a node", "changes of nodes"),
    "policy": ("change of the policy or a pause", "changes of the policy or pauses"),
    "changes": ("change set or plan", "change sets or plans"),
    "forecasts": ("expected start", "expected starts"),
}

_STEPS: Final = (10, 30, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600)
MOST_STEPS: Final = 130
"""Of one lane, so many marks at most."""
LONGEST: Final = timedelta(days=800)
SHORTEST: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Window:
    """From a moment up to another one."""

    start: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        return (self.end - self.start).total_seconds()

    @property
    def step(self) -> int:
        """What happened within so many seconds is gathered in one mark."""
        for step in _STEPS:
            if self.seconds / step <= MOST_STEPS:
                return step
        return _STEPS[-1]

    def place(self, at: datetime) -> float:
        """Where on the axis, from 0 to 1; beyond it where the moment is outside."""
        return (at - self.start).total_seconds() / self.seconds


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing that happened, or `count` of them between `at` and `until`.

    `number` is that of its record: the audit entry, the session of an eviction, the plan.
    """

    lane: str
    at: datetime
    until: datetime
    count: int = 1
    words: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    queue: str = ""
    number: int = 0
    is_ahead: bool = False

    @property
    def is_gathered(self) -> bool:
        return self.count > 1


def gathered_words(lane: str, count: int, parts: Mapping[str, int]) -> str:
    """ "37 evictions"; where they are of several kinds, how many of each."""
    one, many = NOUNS[lane]
    words = counted(count, one, many)
    if len(parts) < 2:
        return words
    listed = ", ".join(f"{number} {name}" for name, number in sorted(parts.items()))
    return f"{words}: {listed}"


def step_of(at: datetime, step: int) -> int:
    return int(at.timestamp()) // step


def gather(marks: Iterable[Mark], step: int) -> list[Mark]:
    """Marks of one lane that fall into the same step become one, with how many there are."""
    steps: dict[int, list[Mark]] = {}
    for mark in marks:
        steps.setdefault(step_of(mark.at, step), []).append(mark)
    return [_one_of(members) for _, members in sorted(steps.items())]


def _one_of(members: Sequence[Mark]) -> Mark:
    if len(members) == 1:
        return members[0]
    lane = members[0].lane
    count = sum(mark.count for mark in members)
    return Mark(
        lane=lane,
        at=min(mark.at for mark in members),
        until=max(mark.until for mark in members),
        count=count,
        words=gathered_words(lane, count, {}),
        is_ahead=all(mark.is_ahead for mark in members),
    )
