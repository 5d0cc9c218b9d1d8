"""Whether a worker still works: it counts in shared memory, and others look at the count."""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

PULSE_FILE_VARIABLE: Final = "FUMAROLE_PULSE"
LOOK_SECONDS: Final = 1.0
PATIENT_LOOKS: Final = 10  # ten session periods, twenty ticks
FIRST_LOOKS: Final = 120  # a worker that has just started has much to load
LONGEST_TASK_SECONDS: Final = 1800.0  # a task that takes longer counts as stuck
_FIRST_BEATS = 4  # of pool processes that start, before the worker works
_MOST_BUSY = 4.0
_SIZE = 8


class Pulse:
    """A number that grows.

    In a file any process can read it, otherwise only processes that are forked from this one.
    """

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
        """Two processes at once may count as one. It only matters that the number changes."""
        self._memory[:_SIZE] = (self.count + 1).to_bytes(_SIZE, "little")


def new_pulse(path: Path) -> Pulse:
    """A pulse at 0, whatever an earlier process left in the file."""
    path.write_bytes(bytes(_SIZE))
    path.chmod(0o600)
    return Pulse(path)


def pulse_of_this_worker() -> Pulse:
    """In the file that the supervisor named, if it named one."""
    path = os.environ.get(PULSE_FILE_VARIABLE)
    if not path:
        return Pulse()
    return Pulse(Path(path))


class PulseWatch:
    """Tells whether a worker has stopped: work waits for it, and its pulse does not change.

    Ask it once in `LOOK_SECONDS`. It counts its own looks, not seconds, and is more patient on a
    busy machine: there a worker is slow, and a new one would be slower still.
    """

    def __init__(self, pulse: Pulse, work_waits: Callable[[], bool]) -> None:
        self._pulse = pulse
        self._work_waits = work_waits
        self._seen = pulse.count
        self._missed = 0

    def has_stopped(self) -> bool:
        count = self._pulse.count
        if count == self._seen and self._work_waits():
            self._missed += 1
        else:
            self._missed = 0
        self._seen = count
        return self._missed >= _looks_allowed(count) * _busyness()


def _looks_allowed(count: int) -> int:
    if count > _FIRST_BEATS:
        return PATIENT_LOOKS
    return FIRST_LOOKS


def _busyness() -> float:
    """1 on a machine that is not busy, and at most `_MOST_BUSY`."""
    processes_for_each_processor = os.getloadavg()[0] / (os.cpu_count() or 1)
    return min(max(1.0, processes_for_each_processor / 2), _MOST_BUSY)


class Heart:
    """Beats in a pool process while a task runs, and once more when it is done.

    In a process that is stopped or hangs it does not beat.
    """

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
    pulse: Pulse,
    work_waits: Callable[[], bool],
    when_stopped: Callable[[], None],
) -> threading.Thread:
    """For a worker without a supervisor: looks from a thread, and calls `when_stopped` once."""

    def look() -> None:
        watch = PulseWatch(pulse, work_waits)
        pause = threading.Event()
        while not watch.has_stopped():
            pause.wait(LOOK_SECONDS)
        when_stopped()

    thread = threading.Thread(target=look, name="pulse watch", daemon=True)
    thread.start()
    return thread
