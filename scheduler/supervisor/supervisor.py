"""Keeps the processes running: passes on what they say, starts again what dies or hangs.

One that keeps dying is left alone for a while, loudly; the others go on without it.
"""

from __future__ import annotations

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
    """How long to wait after the first, second … death in a row; after as many deaths as there are delays, one more is too many."""

    delays: tuple[float, ...] = (0.2, 1.0, 2.0, 4.0)
    steady_after: float = 20.0  # seconds; one that has lived so long starts with a clean slate
    rest: float = 60.0  # seconds that one is left alone which died too often


class KeepsDyingError(StartError):
    """A process died as often as the policy allows, and nothing can begin without it; carries its last lines."""


@dataclass
class _Slot:
    """A program's place: the process in it, or the time it is started again."""

    program: Program
    child: Child | None = None
    started_at: float = 0.0
    start_again_at: float = 0.0
    deaths: int = field(default=0)
    watch: PulseWatch | None = None
    look_again_at: float = 0.0
    last_words: str = ""  # of one that died too often, and is left alone


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
        """Stop without waiting for anybody."""
        self._must_stop = self._in_a_hurry = True

    def start(self, program: Program) -> None:
        """Run the program, and again whenever it ends, until everything is stopped."""
        slot = _Slot(program)
        self._slots.append(slot)
        self._start(slot)

    def run_once(self, program: Program) -> Child:
        """Run the program to its end while watching over the others; its output is kept, not shown."""
        child = Child(program, self._environment, self._folder)

        def has_ended() -> bool:
            child.read_lines()
            return child.exit_code() is not None

        self.watch(has_ended)
        child.close()
        return child

    def watch(
        self, until: Callable[[], bool], seconds: float | None = None, *, needs: str = ""
    ) -> bool:
        """Keep all running until the condition holds; False when the time is over or a stop was asked for before that.

        Raises `KeepsDyingError` when the process that it needs cannot be kept alive.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        while not until():
            if self.must_stop or (deadline is not None and time.monotonic() > deadline):
                return False
            self._step()
            self._insist_on(needs)
        return True

    def _insist_on(self, name: str) -> None:
        for slot in self._slots:
            if slot.program.name == name and slot.last_words:
                raise KeepsDyingError(slot.last_words)

    def stop(self) -> None:
        """Stop stage by stage, the highest first; what does not go in its time is killed."""
        self._must_stop = True
        if any(slot.child for slot in self._slots):
            self._console.say("stopping")
        for stage in sorted({slot.program.stage for slot in self._slots}, reverse=True):
            self._stop_all([slot for slot in self._slots if slot.program.stage == stage])

    def last_lines(self, name: str) -> list[str]:
        return [
            line
            for slot in self._slots
            if slot.program.name == name and slot.child
            for line in slot.child.last_lines
        ]

    def _start(self, slot: _Slot) -> None:
        if slot.program.pulse:
            slot.watch = PulseWatch(new_pulse(slot.program.pulse), slot.program.work_waits)
        slot.child = Child(slot.program, self._environment, self._folder)
        slot.started_at = time.monotonic()
        self._selector.register(slot.child.output, selectors.EVENT_READ, slot)

    def _step(self) -> None:
        self._pass_output_on(_STEP_SECONDS)
        for slot in self._slots:
            self._look_after(slot)

    def _pass_output_on(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            self._show(key.data.program, key.data.child.read_lines())

    def _show(self, program: Program, lines: Iterable[str]) -> None:
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
            self._plan_next_life(slot, self._bury(slot), code)
        elif self._hangs(slot):
            self._console.say(
                f"{slot.program.name} does nothing although work waits for it; ending it"
            )
            slot.child.signal(signal.SIGKILL)

    def _hangs(self, slot: _Slot) -> bool:
        now = time.monotonic()
        if slot.watch is None or now < slot.look_again_at:
            return False
        slot.look_again_at = now + LOOK_SECONDS
        return slot.watch.has_stopped()

    def _bury(self, slot: _Slot) -> Child:
        child, slot.child = slot.child, None
        assert child is not None
        self._selector.unregister(child.output)
        self._show(slot.program, child.close())
        return child

    def _plan_next_life(self, slot: _Slot, child: Child, code: int) -> None:
        now = time.monotonic()
        slot.deaths = 1 if now - slot.started_at >= self._policy.steady_after else slot.deaths + 1
        if slot.deaths > len(self._policy.delays):
            slot.start_again_at = now + self._policy.rest
            self._leave_alone(slot, child, code)
            return
        slot.last_words = ""
        delay = self._policy.delays[slot.deaths - 1]
        slot.start_again_at = now + delay
        self._console.say(
            f"{slot.program.name} ended ({how_it_ended(code)}); starting it again in {delay:g} s"
        )

    def _leave_alone(self, slot: _Slot, child: Child, code: int) -> None:
        name = slot.program.name
        said = "\n".join(f"    {line}" for line in child.last_lines) or "    (nothing)"
        slot.last_words = f"{name} died {slot.deaths} times in a row, the last time with {how_it_ended(code)}. Its last lines:\n{said}"
        self._console.alarm(slot.last_words)
        self._console.alarm(
            f"Everything else goes on without {name}; it is tried again every {self._policy.rest:g} s."
        )

    def _stop_all(self, slots: list[_Slot]) -> None:
        for slot in slots:
            if slot.child:
                slot.child.signal(signal.SIGTERM)
        deadline = time.monotonic() + max(slot.program.stop_seconds for slot in slots)
        while any(slot.child for slot in slots):
            self._pass_output_on(_STEP_SECONDS / 2)
            for slot in slots:
                self._see_off(slot, overdue=self._in_a_hurry or time.monotonic() > deadline)

    def _see_off(self, slot: _Slot, *, overdue: bool) -> None:
        if slot.child is None:
            return
        if overdue:
            slot.child.signal(signal.SIGKILL)
        code = slot.child.exit_code()
        if code is None:
            return
        self._bury(slot)
        if code not in CLEAN_EXITS:
            self._console.say(f"{slot.program.name} ended with {how_it_ended(code)}")
