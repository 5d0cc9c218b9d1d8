"""What pods of the simulated cluster write: lines made from the pod's uid and the time.

Nothing is stored. Asked twice, a pod tells the same, and a long run costs no more than the lines
that are asked for.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from scheduler.domain.log_lines import LogLine, stamp_of

_FIRST_STEP: Final = 1.0  # seconds after the start
_PACE: Final = (0.5, 3.0)  # seconds from step to step
_SAVED_EVERY: Final = 50  # steps
_OPENING: Final = (0.0, 0.02, 0.35, 0.9)  # seconds after the start
_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """One run of a pod.

    `ended_at` is None while it runs. A pod that was told to stop has an end and no exit code.
    """

    uid: str
    name: str
    container: str
    node: str
    started_at: datetime
    ended_at: datetime | None = None
    exit_code: int | None = None


class SimulatedLog:
    """The lines of one run up to a moment, numbered from 0: made when one is looked at."""

    def __init__(self, run: SimulatedRun, now: datetime) -> None:
        self._run = run
        chance = random.Random(f"{run.uid}:{run.container}")  # noqa: S311 - a simulation
        self._pace = chance.uniform(*_PACE)
        self._first_loss = chance.uniform(2.0, 9.0)
        self._patience = chance.uniform(80.0, 600.0)
        self._rate = chance.uniform(200.0, 2000.0)
        self._shards = chance.randint(8, 256)
        until = run.ended_at or now
        self._seconds = max(0.0, (until - run.started_at).total_seconds())
        self._openings = bisect_left(_OPENING, self._seconds)
        self._steps = 0
        if self._seconds > _FIRST_STEP:
            self._steps = math.ceil((self._seconds - _FIRST_STEP) / self._pace)
        self._closing = self._closing_lines()

    def __len__(self) -> int:
        return self._openings + self._steps + len(self._closing)

    def last(self, number: int, since: str = "") -> list[LogLine]:
        """The last lines; of these only those of the moment `since` or later, if it is given."""
        first = max(0, len(self) - number)
        if since:
            first = max(first, self._first_since(since))
        return [self._line(each) for each in range(first, len(self))]

    def _first_since(self, stamp: str) -> int:
        return bisect_left(range(len(self)), stamp, key=lambda number: self._line(number).stamp)

    def _line(self, number: int) -> LogLine:
        if number < self._openings:
            return self._at(_OPENING[number], self._opening_text(number))
        step = number - self._openings
        if step < self._steps:
            return self._at(_FIRST_STEP + step * self._pace, self._step_text(step + 1))
        return self._closing[step - self._steps]

    def _at(self, seconds: float, text: str) -> LogLine:
        return LogLine(stamp_of(self._run.started_at + timedelta(seconds=seconds)), text)

    def _opening_text(self, number: int) -> str:
        run = self._run
        texts = (
            f"{run.name} starts on {run.node or 'its node'}, container {run.container}",
            f"seed {int(run.uid[:8], 16)}",
            f"reading {self._shards} shards",
            "ready",
        )
        return texts[number]

    def _step_text(self, step: int) -> str:
        chance = random.Random(f"{self._run.uid}:{step}")  # noqa: S311 - a simulation
        loss = self._first_loss * math.exp(-step / self._patience) + 0.2
        loss *= chance.uniform(0.97, 1.03)
        rate = self._rate * chance.uniform(0.95, 1.05)
        words = f"step {step} loss {loss:.4f} {rate:.0f} samples/s"
        if step % _SAVED_EVERY == 0:
            words += f" saved checkpoint-{step}"
        return words

    def _closing_lines(self) -> Sequence[LogLine]:
        end = self._run.ended_at
        if end is None:
            return ()
        lines = []
        for number, text in enumerate(self._closing_texts()):
            lines.append(LogLine(stamp_of(end + number * _MILLISECOND), text))
        return lines

    def _closing_texts(self) -> Sequence[str]:
        run = self._run
        if run.exit_code == 0:
            return (f"finished after {self._steps} steps, {self._seconds:.0f} s", "bye")
        if run.exit_code is not None:
            return (
                f"ERROR step {self._steps} failed: the simulated program was told to fail",
                f"exit code {run.exit_code}",
            )
        return (f"SIGTERM: stops at step {self._steps}",)
