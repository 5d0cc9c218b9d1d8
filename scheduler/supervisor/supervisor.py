"""Keeps the processes running: shows their output, and restarts what ends or hangs.

A process that keeps failing is left alone for a while, with an alarm. The others go on without it.
"""

from __future__ import annotations

import math
import selectors
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scheduler.supervisor.child import Child, how_it_ended
from scheduler.supervisor.console import Console
from scheduler.supervisor.problems import StartError
from scheduler.supervisor.programs import CLEAN_EXITS, Program
from scheduler.supervisor.pulse import LOOK_SECONDS, PulseWatch, new_pulse

_STEP_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """How long to wait after the first, second … death in a row.

    A process that dies more often than there are delays is left alone for `rest` seconds.
    """

    delays: tuple[float, ...] = (0.2, 1.0, 2.0, 4.0)
    steady_after: float = 20.0  # seconds after which earlier deaths no longer count
    rest: float = 60.0  # seconds


class KeepsDyingError(StartError):
    """A process that is needed for the start died too often. Carries its last lines."""


@dataclass
class _Slot:
    """The place of a program: its process, or the time at which it is started again."""

    program: Program
    child: Child | None = None
    started_at: float = 0.0
    start_again_at: float = 0.0
    deaths: int = field(default=0)
    watch: PulseWatch | None = None
    look_again_at: float = 0.0
    last_words: str = ""  # of a process that died too often


class Supervisor:
    def __init__(
        self,
        console: Console,
        environment: Mapping[str, str],
        folder: Path,
        policy: RestartPolicy | None = None,
    ) -> None:
        self._console = console
        self._environment = environment
        self._folder = folder
        self._policy = policy or RestartPolicy()
        self._slots: list[_Slot] = []
        self._selector = selectors.DefaultSelector()
        self._must_stop = False
        self._in_a_hurry = False

    @property
    def must_stop(self) -> bool:
        return self._must_stop or self._console.is_gone

    def request_stop(self) -> None:
        self._must_stop = True

    def hurry(self) -> None:
        """Stop without waiting for any process."""
        self._must_stop = True
        self._in_a_hurry = True

    def start(self, program: Program) -> None:
        """Run the program, and restart it whenever it ends, until everything is stopped."""
        slot = _Slot(program)
        self._slots.append(slot)
        self._start(slot)

    def run_once(self, program: Program) -> Child:
        """Run the program to its end beside the others. Its output is kept, not shown."""
        child = Child(program, self._environment, self._folder)

        def has_ended() -> bool:
            child.read_lines()
            return child.exit_code() is not None

        self.watch(has_ended)
        child.close()
        return child

    def watch(
        self,
        until: Callable[[], bool],
        seconds: float = math.inf,
        *,
        needs: str = "",
    ) -> bool:
        """Keep all processes running until the condition holds. False if time ran out before.

        It also ends, with False, when a stop was requested. Raises `KeepsDyingError` if the
        process that it needs keeps dying.
        """
        deadline = time.monotonic() + seconds
        while not until():
            if self.must_stop or time.monotonic() > deadline:
                return False
            self._step()
            self._require_alive(needs)
        return True

    def _require_alive(self, name: str) -> None:
        for slot in self._slots:
            if slot.program.name == name and slot.last_words:
                raise KeepsDyingError(slot.last_words)

    def stop(self) -> None:
        """Stop stage by stage, the highest first. A process that takes too long is killed."""
        self._must_stop = True
        if any(slot.child for slot in self._slots):
            self._console.say("stopping")
        for stage in sorted({slot.program.stage for slot in self._slots}, reverse=True):
            self._stop_all([slot for slot in self._slots if slot.program.stage == stage])

    def last_lines(self, name: str) -> list[str]:
        lines: list[str] = []
        for slot in self._slots:
            if slot.program.name == name and slot.child:
                lines.extend(slot.child.last_lines)
        return lines

    def _start(self, slot: _Slot) -> None:
        if slot.program.pulse:
            pulse = new_pulse(slot.program.pulse)
            slot.watch = PulseWatch(pulse, slot.program.work_waits)
        slot.child = Child(slot.program, self._environment, self._folder)
        slot.started_at = time.monotonic()
        self._selector.register(slot.child.output, selectors.EVENT_READ, slot)

    def _step(self) -> None:
        self._show_output(_STEP_SECONDS)
        for slot in self._slots:
            self._look_after(slot)

    def _show_output(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            slot: _Slot = key.data
            if slot.child:
                self._show_lines(slot.program, slot.child.read_lines())

    def _show_lines(self, program: Program, lines: Iterable[str]) -> None:
        for line in lines:
            if line and not program.is_quiet:
                self._console.line(program.name, line)

    def _look_after(self, slot: _Slot) -> None:
        if slot.child is None:
            if time.monotonic() >= slot.start_again_at:
                self._start(slot)
            return
        code = slot.child.exit_code()
        if code is not None:
            self._plan_restart(slot, self._clear(slot), code)
        elif self._hangs(slot):
            name = slot.program.name
            self._console.say(f"{name} does nothing although work waits for it; ending it")
            slot.child.signal(signal.SIGKILL)

    def _hangs(self, slot: _Slot) -> bool:
        now = time.monotonic()
        if slot.watch is None or now < slot.look_again_at:
            return False
        slot.look_again_at = now + LOOK_SECONDS
        return slot.watch.has_stopped()

    def _clear(self, slot: _Slot) -> Child:
        """Take the process that ended out of its slot, and show its last lines."""
        child = slot.child
        assert child is not None
        slot.child = None
        self._selector.unregister(child.output)
        self._show_lines(slot.program, child.close())
        return child

    def _plan_restart(self, slot: _Slot, child: Child, code: int) -> None:
        now = time.monotonic()
        if now - slot.started_at >= self._policy.steady_after:
            slot.deaths = 0
        slot.deaths += 1
        if slot.deaths > len(self._policy.delays):
            slot.start_again_at = now + self._policy.rest
            self._leave_alone(slot, child, code)
            return
        slot.last_words = ""
        delay = self._policy.delays[slot.deaths - 1]
        slot.start_again_at = now + delay
        ended = f"{slot.program.name} ended ({how_it_ended(code)})"
        self._console.say(f"{ended}; starting it again in {delay:g} s")

    def _leave_alone(self, slot: _Slot, child: Child, code: int) -> None:
        name = slot.program.name
        last_lines = "\n".join(f"    {line}" for line in child.last_lines) or "    (nothing)"
        slot.last_words = (
            f"{name} died {slot.deaths} times in a row, the last time with {how_it_ended(code)}. "
            f"Its last lines:\n{last_lines}"
        )
        self._console.alarm(slot.last_words)
        rest = f"{self._policy.rest:g} s"
        self._console.alarm(
            f"Everything else goes on without {name}. It is started again every {rest}.",
        )

    def _stop_all(self, slots: list[_Slot]) -> None:
        for slot in slots:
            if slot.child:
                slot.child.signal(signal.SIGTERM)
        deadline = time.monotonic() + max(slot.program.stop_seconds for slot in slots)
        while any(slot.child for slot in slots):
            self._show_output(_STEP_SECONDS / 2)
            is_overdue = self._in_a_hurry or time.monotonic() > deadline
            for slot in slots:
                self._finish(slot, is_overdue=is_overdue)

    def _finish(self, slot: _Slot, *, is_overdue: bool) -> None:
        if slot.child is None:
            return
        if is_overdue:
            slot.child.signal(signal.SIGKILL)
        code = slot.child.exit_code()
        if code is None:
            return
        self._clear(slot)
        if code not in CLEAN_EXITS:
            self._console.say(f"{slot.program.name} ended with {how_it_ended(code)}")
