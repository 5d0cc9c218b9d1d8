"""What people can be told of: the kinds of notices, whom each is about, and where it leads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import quote


class NoticeKind(StrEnum):
    JOB_STARTED = "JobStarted"
    JOB_FINISHED = "JobFinished"
    JOB_FAILED = "JobFailed"
    JOB_EVICTED = "JobEvicted"
    JOB_WAITS_LONG = "JobWaitsLong"
    QUEUE_STATE = "QueueStateChanged"
    QUEUE_QUOTA = "QueueQuotaChanged"
    TREE_INVALID = "TreeInvalid"
    CALENDAR_CONFLICT = "CalendarConflict"
    CALENDAR_BEGAN = "CalendarBegan"
    CALENDAR_ENDED = "CalendarEnded"
    STATEMENT = "QueueStatement"


KIND_WORDS: Final[Mapping[NoticeKind, str]] = {
    NoticeKind.JOB_STARTED: "A job starts",
    NoticeKind.JOB_FINISHED: "A job finishes",
    NoticeKind.JOB_FAILED: "A job fails",
    NoticeKind.JOB_EVICTED: "A job is evicted",
    NoticeKind.JOB_WAITS_LONG: "A job waits longer than usual",
    NoticeKind.QUEUE_STATE: "A queue changes its state",
    NoticeKind.QUEUE_QUOTA: "A queue’s quota changes",
    NoticeKind.TREE_INVALID: "The tree of queues breaks a rule",
    NoticeKind.CALENDAR_CONFLICT: "An entry of the calendar is in conflict",
    NoticeKind.CALENDAR_BEGAN: "An entry of the calendar begins",
    NoticeKind.CALENDAR_ENDED: "An entry of the calendar ends",
    NoticeKind.STATEMENT: "A monthly statement of a queue",
}

KIND_COUNTED: Final[Mapping[NoticeKind, str]] = {
    NoticeKind.JOB_STARTED: "started",
    NoticeKind.JOB_FINISHED: "finished",
    NoticeKind.JOB_FAILED: "failed",
    NoticeKind.JOB_EVICTED: "evicted",
    NoticeKind.JOB_WAITS_LONG: "waiting long",
    NoticeKind.QUEUE_STATE: "of queue states",
    NoticeKind.QUEUE_QUOTA: "of quotas",
    NoticeKind.TREE_INVALID: "of broken rules",
    NoticeKind.CALENDAR_CONFLICT: "of calendar conflicts",
    NoticeKind.CALENDAR_BEGAN: "of calendar entries that began",
    NoticeKind.CALENDAR_ENDED: "of calendar entries that ended",
    NoticeKind.STATEMENT: "with statements",
}
"""After a number, in the subject of a message about many."""

JOB_KINDS: Final = frozenset(
    {
        NoticeKind.JOB_STARTED,
        NoticeKind.JOB_FINISHED,
        NoticeKind.JOB_FAILED,
        NoticeKind.JOB_EVICTED,
        NoticeKind.JOB_WAITS_LONG,
    }
)
"""A rule of these without a queue is about one's own jobs; of the others, about every queue that
one may see.
"""

LONGEST_TITLE: Final = 200
LONGEST_MESSAGE: Final = 1024


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that happened, for everybody whose rules ask for it.

    `key` says which happening it is: the same key is never told twice to the same person. `queue`
    is where it happened. Only who may see that queue is told. Without one, it is told to those who
    may see the whole cluster. `owner` is whose job it is, by user name. With `users`, nobody else
    is told, whatever their rules. Those named in `by_default` find it in their inbox without a
    rule, unless they turned such notices off.
    """

    kind: NoticeKind
    key: str
    title: str
    message: str = ""
    queue: str = ""
    namespace: str = ""
    name: str = ""
    owner: str = ""
    users: tuple[str, ...] = ()
    by_default: tuple[str, ...] = ()
    link: str = ""

    @property
    def path(self) -> str:
        """Of the page about it: `link`, or else the job's, or the queue's."""
        if self.link:
            return self.link
        if self.kind in JOB_KINDS:
            return f"/jobs/{quote(self.namespace)}/{quote(self.name)}/"
        if self.queue:
            return f"/queues/{quote(self.queue)}/"
        return "/queues/"
