"""Lines that containers write: their times, and how far somebody has read.

A time is kept as text, in UTC and with nine digits, so that times compare as text does. Python's
own have six digits only, and two lines a few nanoseconds apart would be one moment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

_STAMP: Final = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class LogLine:
    """`stamp` is "" for a line whose time is not known."""

    stamp: str
    text: str

    def written(self, with_time: bool) -> str:
        if with_time and self.stamp:
            return f"{self.stamp} {self.text}"
        return self.text


@dataclass(frozen=True, slots=True)
class Position:
    """How far somebody has read: `count` lines of the moment `stamp`, and all before it."""

    stamp: str
    count: int = 0

    def __str__(self) -> str:
        return f"{self.stamp}/{self.count}"

    @classmethod
    def read(cls, text: str) -> Position | None:
        """As `str` writes it, or a time alone; None for anything else."""
        moment, _, count = text.partition("/")
        stamp = read_stamp(moment)
        if not stamp or not (count or "0").isdecimal() or len(count) > 9:
            return None
        return cls(stamp, int(count or "0"))

    @property
    def whole_second(self) -> str:
        """The moment as the API server takes it, which knows no parts of a second."""
        return f"{self.stamp[:19]}Z"

    def next_second(self) -> Position:
        second = datetime.fromisoformat(self.whole_second) + timedelta(seconds=1)
        return Position(stamp_of(second))


def stamp_of(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}000Z"


def read_stamp(text: str) -> str:
    """A time as RFC 3339 writes it, in our own form; "" if it is none."""
    found = _STAMP.fullmatch(text)
    if found is None:
        return ""
    second, fraction, zone = found.groups()
    try:
        moment = datetime.fromisoformat(f"{second}{zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        return ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{(fraction or '0').ljust(9, '0')}Z"


def lines_of(text: str) -> Iterator[LogLine]:
    """Lines as the API server gives them with their times in front."""
    for line in text.split("\n"):
        if not line:
            continue
        moment, _, rest = line.partition(" ")
        stamp = read_stamp(moment)
        if stamp:
            yield LogLine(stamp, rest)
        else:
            yield LogLine("", line)


def lines_after(lines: Iterable[LogLine], position: Position | None) -> list[LogLine]:
    """Those that were not read yet."""
    if position is None:
        return list(lines)
    found = []
    same = 0
    for line in lines:
        if line.stamp == position.stamp:
            same += 1
            if same > position.count:
                found.append(line)
        elif line.stamp > position.stamp:
            found.append(line)
    return found


def holds(lines: Sequence[LogLine], position: Position) -> bool:
    """Whether the line that was read last is among these: then none in between is missing."""
    return position.count == 0 or any(line.stamp == position.stamp for line in lines)


def moved_on(position: Position | None, lines: Sequence[LogLine]) -> Position | None:
    """The position after these lines, which follow on it."""
    stamped = [line.stamp for line in lines if line.stamp]
    if not stamped:
        return position
    last = stamped[-1]
    count = stamped.count(last)
    if position is not None and position.stamp == last:
        count += position.count
    return Position(last, count)


def cut_to(lines: Sequence[LogLine], most_bytes: int) -> list[LogLine]:
    """The first lines that have at most so many bytes together; one at least, if there is one."""
    kept: list[LogLine] = []
    size = 0
    for line in lines:
        size += len(line.text.encode()) + 1
        if kept and size > most_bytes:
            break
        kept.append(line)
    return kept
