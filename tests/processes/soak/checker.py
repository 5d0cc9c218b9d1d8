"""What must hold, whatever fails: looked at all the while, past all proxies.

What the database may show for a moment (a gang of which a pod has just failed) is wrong only if it
lasts.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tests.processes.soak.clients import Crowd
from tests.processes.soak.ledger import Deed

if TYPE_CHECKING:
    from scheduler.models import Job

LOOK_SECONDS = 1.0
LASTING_SECONDS = 60.0
"""How long a gang may be in halves, or a state not yet what follows from the tree, while nothing
fails."""
_TRACEBACK = re.compile(r"^Traceback|\bTraceback \(most recent call last\)")


class Checker:
    """A thread that looks. `fault_ended` is told by whoever makes faults."""

    def __init__(self, crowd: Crowd, logs: Iterable[Path]) -> None:
        self._crowd = crowd
        self._logs = dict.fromkeys(logs, 0)
        self._since: dict[str, float] = {}
        self._checked: set[int] = set()
        self._told: set[str] = set()
        self._lock = threading.Lock()
        self._found: list[str] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="checker")
        self.looks = 0
        self.missed = 0
        self.last_fault_at = time.monotonic()

    def __enter__(self) -> Checker:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over.set()
        self._thread.join()

    def take(self) -> list[str]:
        """What was found since the last call."""
        with self._lock:
            found, self._found = self._found, []
        return [*found, *self._crowd.ledger.take_problems()]

    def _run(self) -> None:
        from django.db import connection

        while not self._is_over.wait(LOOK_SECONDS):
            self._look_safely()
        self._look_safely()
        connection.close()

    def _look_safely(self) -> None:
        from django.db import DatabaseError, InterfaceError, connection

        try:
            self.look()
        except (DatabaseError, InterfaceError):
            self.missed += 1
            connection.close()
        self._note(self._tracebacks())

    def look(self) -> None:
        from django.db import connection, transaction

        # Before the database is looked at: what was answered by now is in it.
        over = list(self._crowd.ledger.over())
        with transaction.atomic():
            connection.cursor().execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            at_once = [*_at_every_moment(), *self._new_deeds(over)]
            for_long = list(_after_a_moment())
        self.looks += 1
        self._note(at_once)
        self._note(self._that_last(for_long))

    def _note(self, found: Iterable[str]) -> None:
        """Each only once."""
        new = [problem for problem in found if problem not in self._told]
        self._told.update(new)
        with self._lock:
            self._found += new

    def _that_last(self, found: list[str]) -> list[str]:
        now = time.monotonic()
        self._since = {problem: self._since.get(problem, now) for problem in found}
        return [
            f"for more than {LASTING_SECONDS:.0f} s: {problem}"
            for problem, since in self._since.items()
            if now - max(since, self.last_fault_at) > LASTING_SECONDS
        ]

    # What was answered

    def _new_deeds(self, over: list[Deed]) -> list[str]:
        """Each once, when it is over."""
        found = []
        for deed in over:
            if id(deed) not in self._checked:
                found += _problems_of(deed)
        self._checked.update(map(id, over))
        return found

    # Logs

    def _tracebacks(self) -> Iterator[str]:
        for path, offset in self._logs.items():
            if not path.exists():
                continue
            with path.open("rb") as file:
                file.seek(offset)
                text = file.read()
            end = text.rfind(b"\n") + 1
            self._logs[path] = offset + end
            lines = text[:end].decode(errors="replace").splitlines()
            for number, line in enumerate(lines):
                if _TRACEBACK.search(line):
                    yield f"{path.stem} logged a traceback: {_end_of_traceback(lines[number:])}"


def _end_of_traceback(lines: list[str]) -> str:
    for line in lines[1:]:
        if line and not line.startswith((" ", "\t")):
            return line[:200]
    return "…"


def _at_every_moment() -> list[str]:
    from scheduler.models import SchedulingSession
    from tests.crashing import bound_twice, lost_or_repeated_orders
    from tests.histories import broken_rules

    running = SchedulingSession.objects.filter(state="Running").count()
    problems = [f"{running} sessions run at once"] if running > 1 else []
    tokens = list(SchedulingSession.objects.order_by("number").values_list("fencing_token"))
    if tokens != sorted(tokens):
        problems.append("a session has a token older than that of the one before")
    return [*problems, *broken_rules(), *bound_twice(), *lost_or_repeated_orders()]


def _after_a_moment() -> Iterator[str]:
    from tests.histories import half_gangs

    for gang in half_gangs():
        yield f"half a gang: {gang}"
    yield from _states_that_do_not_follow()


def _states_that_do_not_follow() -> Iterator[str]:
    """Held against the book of rules, which was written from the text alone."""
    from django.db.models import Count, Q

    from scheduler.models import Queue
    from tests.oracles.queue_book import Book, Entry

    book = Book()
    lives = Count("podgroups", filter=~Q(podgroups__phase="Completed"))
    rows = Queue.objects.select_related("parent").annotate(lives=lives)
    for row in rows:
        parent = row.parent.name if row.parent else ""
        book.queues[row.name] = Entry(row.name, parent=parent, wish=row.wish)
        book.live[row.name] = row.lives
    for row in rows:
        standing = (row.state, row.closed_by, row.suspended_by)
        if standing != book.standing(row.name):
            yield f"{row.name} is {standing} and should be {book.standing(row.name)}"


def _problems_of(deed: Deed) -> list[str]:
    """Of an answered deed exactly one effect, of a refused one none, of any other at most one.

    Each effect has one entry in the audit log. A command that found nothing to do has none.
    """
    found, changed = _effects_of(deed)
    noted = _audit_entries_of(deed)
    name = f"{deed.kind} “{deed.mark}” of {deed.target}, answered with {deed.status}"
    counted = f"has {found} effects and {noted} entries in the audit log"
    if found > 1 or noted > 1:
        return [f"done twice: {name} {counted}"]
    if deed.is_done and not found:
        return [f"lost: {name} {counted}"]
    if deed.is_refused and changed:
        return [f"refused and done: {name} {counted}"]
    if changed != noted:
        return [f"audit log: {name} {counted}"]
    return []


def _effects_of(deed: Deed) -> tuple[int, int]:
    """How often it is on record, and how often it changed something."""
    from scheduler.models import Command, Job

    if deed.kind == "submit":
        jobs = Job.objects.filter(name=deed.mark).count()
        return jobs, jobs
    if deed.kind == "edit":  # what is there now is compared by the editor
        entries = _audit_entries_of(deed)
        return entries, entries
    rows = Command.objects.filter(reason=deed.mark, result__in=("Done", "NoOp"))
    return rows.count(), rows.filter(result="Done").count()


def _audit_entries_of(deed: Deed) -> int:
    """Of the deed itself: what followed from it in queues below is not counted."""
    from scheduler.models import AuditEntry

    return AuditEntry.objects.filter(request_id__in=deed.request_ids, follows="").count()


def problems_at_the_end(crowd: Crowd) -> list[str]:
    """When everything has come to rest: all that was accepted is there and has ended."""
    from scheduler.models import Decision, Job, Queue

    accepted = {deed.mark for deed in crowd.ledger.over("submit") if deed.is_done}
    rows = Job.objects.filter(name__in=accepted).select_related("podgroup")
    jobs = {row.name: row for row in rows}
    problems = [f"lost: the accepted job {name}" for name in sorted(accepted - jobs.keys())]
    ended = ("Completed", "Failed", "Terminated", "Aborted")
    for job in jobs.values():
        if job.phase not in ended:
            problems.append(_stuck(job))
    if left := Decision.objects.filter(done_at=None).count():
        problems.append(f"stuck: {left} decisions are still open")
    for name, weight in crowd.weights.items():
        stored = Queue.objects.get(name=name).weight
        if stored != weight:
            problems.append(f"lost click: {name} was given weight {weight} and has {stored}")
    return problems


def _stuck(job: Job) -> str:
    from django.db.models import Count

    pods = job.podgroup.pods.values_list("phase").annotate(Count("pk")).order_by("phase")
    phases = ", ".join(f"{number} {phase}" for phase, number in pods)
    why = job.podgroup.reason_message
    return f"stuck: the job {job.name} in {job.queue} is still {job.phase} ({phases}): {why}"


def pods_left() -> int:
    """Those that have not ended."""
    from scheduler.models import Pod

    return Pod.objects.exclude(phase__in=("Succeeded", "Failed")).count()
