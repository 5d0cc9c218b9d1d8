"""Logs of pods, followed: what is new since the last look, until the pods have ended.

Whoever follows looks once a second, and each look is a request of its own
([decision 53](docs/decisions/0053-logs-that-are-followed.md)). So nothing waits in a thread, the
reader's rights are asked each time, and it goes on where it was after a break.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.utils import timezone

from scheduler.domain.access import Forbidden, OutOfSight
from scheduler.domain.log_lines import LogLine, Position, cut_to, holds, lines_after, moved_on
from scheduler.models import ApiToken, Pod
from scheduler.selectors.jobs.log_pods import LogPods
from scheduler.services.accounts.actors import Actor
from scheduler.services.cluster.pod_logs import (
    MOST_LINES,
    LogQuestion,
    read_lines,
    require_reader,
)

MOST_SECONDS: Final = 3600
MOST_BYTES_A_LOOK: Final = 128 * 1024
MOST_FOLLOWERS: Final = 40
MOST_OF_ONE_READER: Final = 5
_PATIENCE: Final = 5
"""Looks in a row that may fail before it ends."""

_ENDED: Final = ("Succeeded", "Failed")
_NOT_STARTED: Final = ("Pending", "Binding", "Bound")


@dataclass(frozen=True, slots=True)
class NewLines:
    """`position` is where to go on after them. `left_out`: some before them are missing."""

    pod: str
    lines: list[LogLine]
    position: str
    left_out: bool = False


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence about one pod, while the others go on."""

    pod: str
    sentence: str


@dataclass(frozen=True, slots=True)
class End:
    """Nothing more comes. `reason` is one word of: ended, evicted, deleted, away, rights, time."""

    reason: str
    sentence: str


Piece = NewLines | Remark | End


@dataclass(slots=True)
class _Reader:
    """How far one pod has been read."""

    uid: Any
    position: Position | None = None
    has_run: bool = False
    was_told: bool = False  # that it has not started, or cannot be asked
    failures: int = 0
    end: End | None = None


@dataclass(slots=True)
class Following:
    """Some pods of one gang, for one reader. `look` again and again until it gives an `End`."""

    by: Actor
    pods: LogPods
    question: LogQuestion
    positions: Mapping[str, Position] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    _readers: dict[str, _Reader] = field(default_factory=dict)
    _began: float = 0.0
    _told_of_more: bool = False

    def __post_init__(self) -> None:
        self._began = self.clock()

    def look(self) -> list[Piece]:
        """What is new. An `End` is the last of it."""
        if self.clock() - self._began > MOST_SECONDS:
            words = f"It was followed for {MOST_SECONDS // 60} minutes, the longest at once."
            return [End("time", f"{words} Follow it again to go on.")]
        found = self.pods.now()
        refusal = self._refusal(found.pods)
        if refusal is not None:
            return [refusal]
        pieces: list[Piece] = []
        by_name = {pod.name: pod for pod in found.pods}
        for name, pod in by_name.items():
            if name not in self._readers:
                self._readers[name] = self._new_reader(pod)
        for name, reader in self._readers.items():
            pieces += self._look_at(name, by_name.get(name), reader)
        if found.left_out and not self._told_of_more:
            self._told_of_more = True
            pieces.append(Remark("", f"{found.left_out} more pods are not followed. Name a task."))
        end = self._common_end(found.is_over)
        if end is not None:
            pieces.append(end)
        return pieces

    def _new_reader(self, pod: Pod) -> _Reader:
        position = self.positions.get(pod.name) or self.positions.get("")
        return _Reader(pod.uid, position)

    def _refusal(self, pods: list[Pod]) -> End | None:
        """The reader's rights as they are now: they may have been taken away meanwhile."""
        try:
            by = _as_they_are_now(self.by)
            for pod in pods[:1]:  # all are of one gang
                require_reader(by, pod)
        except (Forbidden, OutOfSight):
            return End("rights", "You may no longer read these logs.")
        return None

    def _look_at(self, name: str, pod: Pod | None, reader: _Reader) -> list[Piece]:
        if pod is not None and reader.end is not None and pod.uid != reader.uid:
            self._readers[name] = reader = _Reader(pod.uid)  # it came back
        if reader.end is not None:
            return []
        if pod is None:
            return self._ended(reader, name, End("deleted", f"{name} was deleted."))
        if pod.uid != reader.uid:
            if reader.has_run:
                words = f"{name} was evicted, and waits for a place again."
                return self._ended(reader, name, End("evicted", words))
            reader.uid = pod.uid
        if pod.phase in _NOT_STARTED:
            return self._sentence(reader, name, f"{name} has not started yet.")
        return self._read(reader, pod)

    def _read(self, reader: _Reader, pod: Pod) -> list[Piece]:
        question = self.question
        if reader.position is not None:
            question = replace(question, lines=MOST_LINES)
        log = read_lines(pod, question, reader.position)
        if log.problem and log.is_passing:
            return self._failed(reader, pod, log.problem)
        if log.problem:
            return self._ended(reader, pod.name, End("away", log.problem))
        reader.failures = 0
        reader.has_run = True
        reader.was_told = False
        new = lines_after(log.lines, reader.position)
        left_out = reader.position is not None and not holds(log.lines, reader.position)
        if log.is_cut and not new and reader.position is not None:
            reader.position = reader.position.next_second()  # too much for one second
            return []
        sent = cut_to(new, MOST_BYTES_A_LOOK // max(1, len(self._readers)))
        pieces: list[Piece] = []
        if sent:
            reader.position = moved_on(reader.position, sent)
            pieces.append(NewLines(pod.name, sent, str(reader.position or ""), left_out))
        if pod.phase in _ENDED and len(sent) == len(new) and not log.is_cut:
            pieces += self._ended(reader, pod.name, End("ended", _ending_words(pod)))
        return pieces

    def _failed(self, reader: _Reader, pod: Pod, problem: str) -> list[Piece]:
        reader.failures += 1
        if pod.phase in _ENDED or reader.failures >= _PATIENCE:
            return self._ended(reader, pod.name, End("away", problem))
        return self._sentence(reader, pod.name, f"{problem}. It is asked again.")

    def _sentence(self, reader: _Reader, name: str, words: str) -> list[Piece]:
        if reader.was_told:
            return []
        reader.was_told = True
        return [Remark(name, words)]

    def _ended(self, reader: _Reader, name: str, end: End) -> list[Piece]:
        reader.end = end
        if self.pods.is_single:
            return []  # the end of everything says it
        return [Remark(name, end.sentence)]

    def _common_end(self, is_over: bool) -> End | None:
        """Of all of them. While a job goes on, pods may come back or be made."""
        if self.pods.is_single and not self._readers:
            return End("deleted", f"{self.pods.pod} was deleted.")
        ends = [reader.end for reader in self._readers.values()]
        if self.pods.is_single and ends and ends[0] is not None:
            return ends[0]
        away = [end for end in ends if end is not None and end.reason == "away"]
        if ends and len(away) == len(ends):
            return away[0]
        if is_over and None not in ends:
            return End("ended", self.pods.ending())
        return None


def _ending_words(pod: Pod) -> str:
    if pod.phase == "Succeeded":
        return f"{pod.name} has ended: it succeeded."
    words = f"{pod.name} has ended: it failed"
    if pod.exit_code is not None:
        words += f" with exit code {pod.exit_code}"
    return f"{words}."


def _as_they_are_now(by: Actor) -> Actor:
    """The reader with the account and the token as they are stored now."""
    if by.user is None:
        return by
    user = get_user_model().objects.filter(pk=by.user.pk, is_active=True).first()
    if user is None or not _is_valid(by.token):
        raise OutOfSight(by.name)
    return replace(by, user=user, access=None)


def _is_valid(token: ApiToken | None) -> bool:
    if token is None:
        return True
    valid = ApiToken.objects.filter(pk=token.pk, revoked_at=None)
    return valid.exclude(expires_at__lte=timezone.now()).exists()


# How many may follow at once


class Places:
    """Of one web process. A place is given back by the one who took it."""

    def __init__(
        self,
        most: int = MOST_FOLLOWERS,
        most_of_one: int = MOST_OF_ONE_READER,
        what: str = "logs",
    ) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._what = what
        self._taken: Counter[str] = Counter()
        self._lock = threading.Lock()

    def take(self, reader: str) -> str:
        """Why there is none, in a sentence; "" where one was taken."""
        with self._lock:
            if self._taken[reader] >= self._most_of_one:
                return (
                    f"You follow {self._most_of_one} {self._what} already. Close one of them first."
                )
            if self._taken.total() >= self._most:
                return f"{self._most} {self._what} are followed already. Try again later."
            self._taken[reader] += 1
            return ""

    def give_back(self, reader: str) -> None:
        with self._lock:
            self._taken[reader] -= 1
            self._taken += Counter()  # forgets who follows nothing

    def taken(self) -> int:
        return self._taken.total()


PLACES: Final = Places()
