"""One run: the stack, the crowd, the checker, and faults one after the other."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from tests.processes.soak.checker import Checker, pods_left, problems_at_the_end
from tests.processes.soak.clients import Crowd
from tests.processes.soak.faults import (
    KINDS,
    Scene,
    leave_small_disk,
    make_small_disk,
)
from tests.processes.soak.stack import Stack

RECOVERY_SECONDS = 120.0
"""So long after a fault everything has to go on again."""
_SETTLE_SECONDS = 180.0
"""So long nothing may move at the end, before what is left counts as stuck."""
_BEFORE = "before the first fault"
_AFTER = "when all had come to rest"


class Patience:
    """Runs out when nothing has been finished for so many seconds, however long the whole takes:
    a busy machine is slow, and not stuck.
    """

    def __init__(self, seconds: float, now: float) -> None:
        self._seconds = seconds
        self._least = float("inf")
        self._since = now

    def has_run_out(self, left: int, now: float) -> bool:
        """`left` is how much is still to be finished. What comes and goes is no progress."""
        if left < self._least:
            self._least = left
            self._since = now
        return now - self._since > self._seconds


@dataclass(slots=True)
class Tally:
    """Of one kind of fault: the seconds until all went on again, each time, and what broke."""

    recoveries: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    seed: int
    seconds: float = 0.0
    tallies: dict[str, Tally] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        return [problem for tally in self.tallies.values() for problem in tally.problems]

    @property
    def faults(self) -> int:
        return sum(len(tally.recoveries) for tally in self.tallies.values())

    def lines(self) -> Iterator[str]:
        yield f"{'fault':40} {'count':>5} {'median':>8} {'worst':>8} {'broken':>6}"
        for name, tally in self.tallies.items():
            yield _line(name, tally.recoveries, len(tally.problems))
        every = [seconds for tally in self.tallies.values() for seconds in tally.recoveries]
        yield _line("all", every, len(self.problems))
        yield f"seed {self.seed}, {self.seconds:.0f} s; " + ", ".join(
            f"{value} {name}" for name, value in self.figures.items()
        )
        for name, tally in self.tallies.items():
            for problem in tally.problems[:20]:
                yield f"  {name}: {problem}"

    def as_json(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "seconds": round(self.seconds),
            "kinds": [name for name in self.tallies if name not in (_BEFORE, _AFTER)],
            "faults": {name: tally.recoveries for name, tally in self.tallies.items()},
            "problems": self.problems,
            "figures": self.figures,
        }


def _line(name: str, recoveries: Sequence[float], problems: int) -> str:
    middle, worst = "-", "-"
    if recoveries:
        middle, worst = f"{median(recoveries):.1f} s", f"{max(recoveries):.1f} s"
    return f"{name:40} {len(recoveries):>5} {middle:>8} {worst:>8} {problems:>6}"


class Harness:
    def __init__(self, stack: Stack, crowd: Crowd, checker: Checker, report: Report) -> None:
        self._stack = stack
        self._crowd = crowd
        self._checker = checker
        self._report = report
        self._dice = random.Random(report.seed)

    def run(self, seconds: float, kinds: Sequence[str], *, each_once: bool) -> None:
        began = time.monotonic()
        self._report.tallies = {name: Tally() for name in (_BEFORE, *kinds, _AFTER)}
        self._wait(_BEFORE, self._has_gone_on_since(time.monotonic()), "the stack to work")
        while time.monotonic() - began < seconds:
            for name in self._dice.sample(list(kinds), len(kinds)):
                self._rest(self._dice.uniform(0.5, 3.0))
                self._make(name)
                if time.monotonic() - began > seconds and not each_once:
                    break
            if each_once:
                break
        self._crowd.end()
        self._come_to_rest()
        self._report.seconds = time.monotonic() - began
        self._report.figures = self._figures()

    # Faults

    def _make(self, name: str) -> None:
        tally = self._report.tallies[name]
        print(f"{time.strftime('%H:%M:%S')} {name}", flush=True)
        self._checker.last_fault_at = time.monotonic() + 3600
        try:
            KINDS[name](Scene(self._stack, self._dice))
        except Exception as problem:  # the rest of the run is still worth something
            tally.problems.append(f"could not be made: {problem!r}")
        over = time.monotonic()
        self._checker.last_fault_at = over
        self._wait(name, self._has_gone_on_since(over), "everything to go on")
        tally.recoveries.append(round(time.monotonic() - over, 2))
        self._collect(name)

    def _has_gone_on_since(self, moment: float) -> Callable[[], bool]:
        """A write was answered, a session ended and all web processes say that they are ready."""
        before = last_session()

        def has_gone_on() -> bool:
            return (
                self._crowd.ledger.last_done_at > moment
                and last_session() > before
                and all(is_ready(address) for address in self._stack.addresses)
            )

        return has_gone_on

    def _wait(self, name: str, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + RECOVERY_SECONDS
        while not is_so():
            self._look_after(name)
            if time.monotonic() > deadline:
                said = f"waited {RECOVERY_SECONDS:.0f} s in vain for {what}"
                self._report.tallies[name].problems.append(said)
                return
            time.sleep(0.1)

    def _rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._look_after(_BEFORE)
            time.sleep(0.1)

    def _look_after(self, name: str) -> None:
        self._report.tallies[name].problems += self._stack.start_what_has_ended()

    def _collect(self, name: str) -> None:
        found = self._checker.take()
        for problem in found:
            print(f"  {problem}", flush=True)
        self._report.tallies[name].problems += found

    # The end

    def _come_to_rest(self) -> None:
        """All queues are opened, and what waits gets its turn."""
        from scheduler.domain.lifecycle import QueueCommand
        from scheduler.services.queues.commands import command_queue
        from scheduler.services.sessions import requests
        from tests.processes.soak.clients import CLICKED, COMMANDED

        requests._ask_worker = lambda: (
            None
        )  # this process has no broker; beat's next tick is enough
        for queue in (*COMMANDED, CLICKED):
            command_queue(queue, QueueCommand.OPEN)
        patience = Patience(_SETTLE_SECONDS, time.monotonic())
        looks = 0
        while problems := problems_at_the_end(self._crowd):
            self._look_after(_AFTER)
            if patience.has_run_out(len(problems) + pods_left(), time.monotonic()):
                break
            if looks % 30 == 0:
                print(f"  {len(problems)} left, such as {problems[:3]}", flush=True)
            looks += 1
            time.sleep(1)
        self._report.tallies[_AFTER].problems += problems
        self._collect(_AFTER)

    def _figures(self) -> dict[str, Any]:
        from scheduler.models import Decision, SchedulingSession

        deeds = list(self._crowd.ledger.over())
        return {
            "faults": self._report.faults,
            "deeds answered": sum(deed.is_done for deed in deeds),
            "refused": sum(deed.is_refused for deed in deeds),
            "without an answer": sum(not deed.status for deed in deeds),
            "asked again": sum(len(deed.request_ids) > 1 for deed in deeds),
            "requests": sum(self._crowd.ledger.answers.values()),
            "connects of websockets": self._crowd.connects,
            "frames": self._crowd.frames,
            "sessions": SchedulingSession.objects.filter(state="Done").count(),
            "placements": Decision.objects.filter(kind="Bind").count(),
            "looks": self._checker.looks,
        }


def last_session() -> int:
    """The number of the last one that ended; none while the database is away."""
    from django.db import DatabaseError, InterfaceError, connection

    from scheduler.models import SchedulingSession

    try:
        done = SchedulingSession.objects.filter(state="Done").order_by("-number")
        return done.values_list("number", flat=True).first() or 0
    except (DatabaseError, InterfaceError):
        connection.close()
        return -1


def is_ready(address: str) -> bool:
    try:
        return httpx.get(f"{address}/readyz", timeout=10, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def run(
    folder: Path,
    *,
    seconds: float,
    seed: int,
    kinds: Sequence[str],
    each_once: bool = False,
    wait_seconds: float = 1.0,
) -> Report:
    """In a folder of its own. Django is set up here, for the stack's database."""
    report = Report(seed)
    with ExitStack() as opened:
        if os.geteuid() == 0:
            make_small_disk(folder / "data")
            opened.callback(leave_small_disk, folder / "data")
        stack = opened.enter_context(Stack(folder))
        token, cookie = furnish(stack)
        stack.start_all()
        crowd = Crowd(stack.addresses, token, cookie, seed, wait_seconds)
        logs = [stack.log_of(name) for name in stack.names]
        checker = opened.enter_context(Checker(crowd, logs))
        opened.enter_context(crowd)
        Harness(stack, crowd, checker, report).run(seconds, kinds, each_once=each_once)
    return report


def furnish(stack: Stack) -> tuple[str, str]:
    """Queues, nodes, and somebody who may do everything: their token and their cookie."""
    import django

    os.environ.update(
        {**stack.environment, "DATABASE_URL": stack.postgres.url(), "LOG_LEVEL": "CRITICAL"},
        DJANGO_SETTINGS_MODULE="dashboard.settings",
    )
    django.setup()
    from django.contrib.auth import get_user_model
    from django.test import Client

    from scheduler.services.accounts.actors import SYSTEM
    from scheduler.services.accounts.tokens import create_token
    from tests.histories import build_cluster

    build_cluster()
    user = get_user_model().objects.create_superuser("soak")
    client = Client()
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    token = create_token(user, "soak", ["admin"], by=SYSTEM).secret
    return token, client.cookies["sessionid"].value
