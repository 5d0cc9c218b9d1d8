"""What can go wrong between a client and the API server."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Answer:
    """The server answers this instead."""

    code: int
    reason: str
    message: str = "a fault of the test"
    retry_after: int | None = None  # seconds, in the header
    causes: tuple[dict[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Reset:
    """The connection breaks without an answer.

    `is_done` says whether the request was carried out.
    """

    is_done: bool = False


@dataclass(frozen=True, slots=True)
class Late:
    """The answer comes after some seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Silent:
    """A watch that stays open and tells nothing more after that many events, not even its end."""

    after_events: int = 0


@dataclass(frozen=True, slots=True)
class Broken:
    """A watch that breaks in the middle of an event, after that many whole ones."""

    after_events: int = 0


@dataclass(frozen=True, slots=True)
class Expired:
    """A watch that ends with the event ERROR and code 410, after that many others."""

    after_events: int = 0


Fault = Answer | Reset | Late | Silent | Broken | Expired


@dataclass(slots=True)
class Planned:
    """A fault for the next requests that fit."""

    method: str  # WATCH stands for a GET that watches
    path: str  # as in a shell: * stands for anything
    fault: Fault
    times: int

    def fits(self, method: str, path: str) -> bool:
        return self.times > 0 and method == self.method and fnmatchcase(path, self.path)
