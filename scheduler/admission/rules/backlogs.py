"""How much may wait in one queue, how much of one person's, how many pods one job may have, and
how long it may run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from scheduler.admission.facts import Backlog, Facts, QueueLimits
from scheduler.admission.violations import Violation

JOB_TOO_LARGE: Final = "too_many_pods_in_job"
RUN_TOO_LONG: Final = "run_time_too_long"
BACKLOG_RULES: Final = frozenset(
    {
        "too_many_waiting_jobs_in_queue",
        "too_many_waiting_pods_in_queue",
        "too_many_waiting_jobs_of_user",
        "too_many_waiting_pods_of_user",
    }
)
"""Broken by what waits already, not by what is asked for: later it may be admitted as it is."""

FORBIDDEN_BY_STATE: Final = BACKLOG_RULES | {"queue_not_open"}


def is_forbidden_by_state(violations: Iterable[Violation]) -> bool:
    """Whether the work itself is fine, and only the state of things keeps it out."""
    return all(violation.rule_id in FORBIDDEN_BY_STATE for violation in violations)


def check_room(
    name: str,
    queue: str,
    facts: Facts,
    *,
    jobs: int,
    pods: int,
    more: int,
    field: str = "spec.queue",
) -> Iterator[Violation]:
    """For a job that has or gets so many pods, `more` of them new.

    What is too large by itself never fits, whatever waits.
    """
    most, raised_by = _most_pods(queue, facts)
    if not most or pods <= most:
        yield from check_backlogs(queue, facts, jobs=jobs, pods=more, field=field)
        return
    where = ""
    if raised_by.queue:
        where = f" in {raised_by.queue}"
    message = (
        f"{name} has {pods:,} pods in all its tasks together; "
        f"a job may have at most {most:,}{where}."
    )
    yield Violation(
        JOB_TOO_LARGE,
        raised_by.queue or queue,
        "spec.tasks",
        message,
        f"make several jobs of it, or ask an admin to raise {raised_by}",
    )


def _most_pods(queue: str, facts: Facts) -> tuple[int, _Source]:
    """The strictest limit on the pods of one job, and where it is set; 0 where there is none."""
    most = facts.limits.pods_per_job
    source = _Source("MAX_PODS_PER_JOB")
    for limits in facts.queue_limits.get(queue, ()):
        own = limits.max_pods_per_job
        if own is not None and (not most or own < most):
            most = own
            source = _Source("maxPodsPerJob", limits.queue)
    return most, source


def check_run_time(
    name: str, queue: str, seconds: float | None, facts: Facts
) -> Iterator[Violation]:
    """For a job that says how long it runs: one that would be ended before is not begun."""
    found = longest_run(facts.queue_limits.get(queue, ()))
    if seconds is None or found is None or seconds <= found.seconds:
        return
    message = (
        f"{name} says that it runs for {_whole(seconds)} s; "
        f"{found.queue} ends jobs after {found.seconds:,} s."
    )
    source = _Source("maxRunSeconds", found.queue)
    fix = f"make shorter jobs of it, or ask an admin to raise {source}"
    yield Violation(RUN_TOO_LONG, found.queue, "spec.tasks", message, fix)


def _whole(seconds: float) -> str:
    return f"{seconds:,.0f}"


@dataclass(frozen=True, slots=True)
class LongestRun:
    """How long a job may run, and the queue that says so."""

    seconds: int
    queue: str


def longest_run(path: Iterable[QueueLimits]) -> LongestRun | None:
    """The strictest on the way up."""
    found: LongestRun | None = None
    for limits in path:
        seconds = limits.max_run_seconds
        if seconds is not None and (found is None or seconds < found.seconds):
            found = LongestRun(seconds, limits.queue)
    return found


def check_backlogs(
    queue: str,
    facts: Facts,
    *,
    jobs: int,
    pods: int,
    field: str = "spec.queue",
) -> Iterator[Violation]:
    """Whether so much more may wait: by the settings, and by the limits of the queues above."""
    more = {"job": jobs, "pod": pods}
    limits = facts.limits
    most = {"job": limits.jobs_per_queue, "pod": limits.pods_per_queue}
    waiting = facts.queue_backlogs.get(queue, Backlog())
    yield from _check_limits(
        _Line(queue, field, "in_queue", after=f" in {queue}"), waiting, more, most
    )
    if facts.user:
        most = {"job": limits.jobs_per_user, "pod": limits.pods_per_user}
        line = _Line(queue, field, "of_user", of=f" of {facts.user}")
        yield from _check_limits(line, facts.user_backlog, more, most)
    for above in facts.queue_limits.get(queue, ()):
        is_above = above.queue != queue
        yield from _check_queue_limits(above, facts.user, field, more, is_above=is_above)


def _check_queue_limits(
    limits: QueueLimits, user: str, field: str, more: Mapping[str, int], *, is_above: bool
) -> Iterator[Violation]:
    name = limits.queue
    most = {"job": limits.max_waiting_jobs or 0, "pod": limits.max_waiting_pods or 0}
    line = _Line(name, field, "in_queue", f" in {name}", is_own=True, is_secret=is_above)
    yield from _check_limits(line, limits.waiting, more, most)
    if user:
        most = {
            "job": limits.max_waiting_jobs_per_user or 0,
            "pod": limits.max_waiting_pods_per_user or 0,
        }
        line = _Line(name, field, "of_user", of=f" of {user}", after=f" in {name}", is_own=True)
        yield from _check_limits(line, limits.waiting_of_user, more, most)


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a limit is set: a setting of the installation, or a field of a queue."""

    name: str
    queue: str = ""

    def __str__(self) -> str:
        if self.queue:
            return f"{self.name} of {self.queue}"
        return self.name


@dataclass(frozen=True, slots=True)
class _Line:
    """What is counted, and how to speak of it."""

    queue: str
    field: str
    whose: str  # as the rule's name has it
    after: str = ""  # words behind the verb
    of: str = ""  # words behind what is counted
    is_own: bool = False  # the queue itself names the limit
    is_secret: bool = False  # others' work counts too: how much there is, is not told

    def source(self, unit: str) -> _Source:
        if not self.is_own:
            whose = self.whose.partition("_")[2]
            return _Source(f"MAX_WAITING_{unit}S_PER_{whose}".upper())
        field = f"maxWaiting{unit.capitalize()}s"
        if self.whose == "of_user":
            field += "PerUser"
        return _Source(field, self.queue)


def _check_limits(
    line: _Line, waiting: Backlog, more: Mapping[str, int], most: Mapping[str, int]
) -> Iterator[Violation]:
    numbers = {"job": waiting.jobs, "pod": waiting.pods}
    for unit, number in numbers.items():
        yield from _check_limit(line, unit, number, more[unit], most[unit])


def _check_limit(
    line: _Line, unit: str, waiting: int, more: int, limit: int
) -> Iterator[Violation]:
    if not limit or not more or waiting + more <= limit:
        return
    message = (
        f"{_now(line, unit, waiting)}; "
        f"with {more:,} more there would be more than the limit of {limit:,}."
    )
    if line.is_secret:
        message = (
            f"With {more:,} more, "
            f"there would be more than the {limit:,} {unit}s that may wait{line.after}."
        )
    source = line.source(unit)
    first = "wait until some have started, cancel some,"
    if more > limit:  # more than may wait even where nothing else does
        first = f"submit fewer {unit}s at once,"
    fix = f"{first} or ask an admin to raise {source}"
    yield Violation(f"too_many_waiting_{unit}s_{line.whose}", line.queue, line.field, message, fix)


def _now(line: _Line, unit: str, waiting: int) -> str:
    if waiting == 1:
        return f"1 {unit}{line.of} already waits{line.after}"
    return f"{waiting:,} {unit}s{line.of} already wait{line.after}"
