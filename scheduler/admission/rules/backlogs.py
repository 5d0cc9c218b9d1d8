"""How much may wait in one queue, how much of one person's, and how many pods one job may have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from scheduler.admission.facts import Backlog, Facts
from scheduler.admission.violations import Violation

JOB_TOO_LARGE: Final = "too_many_pods_in_job"
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
    most = facts.limits.pods_per_job
    if not most or pods <= most:
        yield from check_backlogs(queue, facts, jobs=jobs, pods=more, field=field)
        return
    message = (
        f"{name} has {pods:,} pods in all its tasks together; a job may have at most {most:,}."
    )
    yield Violation(
        JOB_TOO_LARGE,
        queue,
        "spec.tasks",
        message,
        "make several jobs of it, or ask an admin to raise MAX_PODS_PER_JOB",
    )


def check_backlogs(
    queue: str,
    facts: Facts,
    *,
    jobs: int,
    pods: int,
    field: str = "spec.queue",
) -> Iterator[Violation]:
    """Whether so much more may wait."""
    limits = facts.limits
    in_queue = facts.queue_backlogs.get(queue, Backlog())
    yield from _check_limit(
        _Line(queue, field, "in_queue", "job", after=f" in {queue}"),
        in_queue.jobs,
        jobs,
        limits.jobs_per_queue,
    )
    yield from _check_limit(
        _Line(queue, field, "in_queue", "pod", after=f" in {queue}"),
        in_queue.pods,
        pods,
        limits.pods_per_queue,
    )
    if facts.user:
        waiting = facts.user_backlog
        yield from _check_limit(
            _Line(queue, field, "of_user", "job", of=f" of {facts.user}"),
            waiting.jobs,
            jobs,
            limits.jobs_per_user,
        )
        yield from _check_limit(
            _Line(queue, field, "of_user", "pod", of=f" of {facts.user}"),
            waiting.pods,
            pods,
            limits.pods_per_user,
        )


@dataclass(frozen=True, slots=True)
class _Line:
    """What is counted, and how to speak of it."""

    queue: str
    field: str
    whose: str  # as the rule's name has it
    unit: str
    of: str = ""  # words behind what is counted
    after: str = ""  # words behind the verb

    @property
    def setting(self) -> str:
        return f"MAX_WAITING_{self.unit}S_PER_{self.whose.partition('_')[2]}".upper()


def _check_limit(line: _Line, waiting: int, more: int, limit: int) -> Iterator[Violation]:
    if not limit or not more or waiting + more <= limit:
        return
    now = f"{waiting:,} {line.unit}s{line.of} already wait{line.after}"
    if waiting == 1:
        now = f"1 {line.unit}{line.of} already waits{line.after}"
    message = f"{now}; with {more:,} more there would be more than the limit of {limit:,}."
    fix = f"wait until some have started, cancel some, or ask an admin to raise {line.setting}"
    yield Violation(
        f"too_many_waiting_{line.unit}s_{line.whose}", line.queue, line.field, message, fix
    )
