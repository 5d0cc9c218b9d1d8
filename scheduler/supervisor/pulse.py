"""Whether a worker still works: it counts in memory that others can read, and they look whether the count goes on."""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

PULSE_FILE_VARIABLE: Final = "FUMAROLE_PULSE"
LOOK_SECONDS: Final = 1.0
PATIENT_LOOKS: Final = 10  # ten periods of sessions; ticks come twice as often
FIRST_LOOKS: Final = 120  # a worker that has just been started has much to load
LONGEST_TASK_SECONDS: Final = 1800.0  # a task that takes longer is given up as stuck
_FIRST_BEATS = 4  # of pool processes as they begin; the worker is not yet at work
_MOST_BUSY = 4.0
_SIZE = 8


class Pulse:
    """A number that grows. In a file it can be read by any process, else only by those that are forked from this one."""

    def __init__(self, path: Path | None = None) -> None:
        if path is None:
            self._memory = mmap.mmap(-1, _SIZE)
            return
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _SIZE)

    @property
    def count(self) -> int:
        return int.from_bytes(self._memory[:_SIZE], "little")

    def beat(self) -> None:
        """Two processes that do it at once may count as one: it only matters that the number changes."""
        self._memory[:_SIZE] = (self.count + 1).to_bytes(_SIZE, "little")


def new_pulse(path: Path) -> Pulse:
    """One that has not begun, whatever an earlier process left in the file."""
    path.write_bytes(bytes(_SIZE))
    path.chmod(0o600)
    return Pulse(path)


def pulse_of_this_worker() -> Pulse:
    """In the file that the supervisor named, if there is one."""
    path = os.environ.get(PULSE_FILE_VARIABLE)
    return Pulse(Path(path) if path else None)


class PulseWatch:
    """Says that a worker has stopped: work waits for it, and its pulse does not go on. To be asked once in `LOOK_SECONDS`.

    It counts its own looks, not seconds, and more of them on a busy machine: there a worker is late, and a new one would be later still.
    """

    def __init__(self, pulse: Pulse, work_waits: Callable[[], bool]) -> None:
        self._pulse = pulse
        self._work_waits = work_waits
        self._seen = pulse.count
        self._missed = 0

    def has_stopped(self) -> bool:
        count = self._pulse.count
        is_at_rest = count == self._seen and self._work_waits()
        self._seen = count
        self._missed = self._missed + 1 if is_at_rest else 0
        return (
            self._missed >= (PATIENT_LOOKS if count > _FIRST_BEATS else FIRST_LOOKS) * _busyness()
        )


def _busyness() -> float:
    """1 where there is enough of the processors for everybody, or nearly."""
    wanting = os.getloadavg()[0] / (os.cpu_count() or 1)
    return min(max(1.0, wanting / 2), _MOST_BUSY)


class Heart:
    """Beats in a pool process while a task runs, and once more when it is done. A process that is stopped or hangs does not."""

    def __init__(self, pulse: Pulse, longest: float = LONGEST_TASK_SECONDS) -> None:
        self._pulse = pulse
        self._most_beats = int(longest / LOOK_SECONDS)  # for one task
        self._beats = 0
        self._is_working = threading.Event()
        threading.Thread(target=self._beat_while_working, name="heart", daemon=True).start()

    def begin(self) -> None:
        self._pulse.beat()
        self._beats = 0
        self._is_working.set()

    def end(self) -> None:
        self._is_working.clear()
        self._pulse.beat()

    def _beat_while_working(self) -> None:
        pause = threading.Event()
        while self._is_working.wait():
            pause.wait(LOOK_SECONDS)
            self._beats += 1
            if self._is_working.is_set() and self._beats <= self._most_beats:
                self._pulse.beat()


def watch_beside(
    pulse: Pulse, work_waits: Callable[[], bool], when_stopped: Callable[[], None]
) -> threading.Thread:
    """For a worker that nobody supervises: looks from a thread of its own, and calls `when_stopped` once."""

    def look() -> None:
        watch = PulseWatch(pulse, work_waits)
        pause = threading.Event()
        while not watch.has_stopped():
            pause.wait(LOOK_SECONDS)
        when_stopped()

    thread = threading.Thread(target=look, name="pulse watch", daemon=True)
    thread.start()
    return thread
