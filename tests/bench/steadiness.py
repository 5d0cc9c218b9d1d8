"""Is an installation steady?

Judges the samples that `tests.bench.soak` took: memory, session time, tables, logs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, median

MEMORY_GROWTH = 1.15
"""Between the second and the last quarter of the run, for each process.

The first quarter is for warming up.
"""
SESSION_GROWTH = 1.5
_TROUBLE = re.compile(r"\b(ERROR|CRITICAL|Traceback)\b|\bended \(")


@dataclass(frozen=True, slots=True)
class Sample:
    """The installation at one moment; what sessions took is of those since the sample before."""

    minute: float
    megabytes: Mapping[str, float]  # by process
    session_ms: float  # median; 0 when none ran
    session_ms_p99: float
    sessions: int
    failed_sessions: int = 0
    binds: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)  # by table
    overdue_minutes: Mapping[str, float] = field(
        default_factory=dict
    )  # by table, how long its oldest row is past its retention


@dataclass(frozen=True, slots=True)
class Verdict:
    what: str
    holds: bool
    figures: str


def verdicts(
    samples: Sequence[Sample],
    log: Iterable[str],
    most_rows: Mapping[str, int],
    slack_minutes: float = 3.0,
) -> list[Verdict]:
    """`most_rows` for tables that are kept by number; `slack_minutes`: pruning comes once a minute
    and in small steps.
    """
    last = samples[-1]
    failed = sum(sample.failed_sessions for sample in samples)
    ran = sum(sample.sessions for sample in samples)
    return [
        *(
            _grows(
                f"memory of {name}, MB",
                samples,
                lambda sample, name=name: sample.megabytes.get(name, 0.0),
                MEMORY_GROWTH,
                mean,
            )
            for name in last.megabytes
        ),
        _grows(
            "session time, ms", samples, lambda sample: sample.session_ms, SESSION_GROWTH, median
        ),
        *(
            Verdict(
                f"{table} within its retention",
                late <= slack_minutes,
                f"{late:+.1f} minutes past it",
            )
            for table, late in last.overdue_minutes.items()
        ),
        *(
            Verdict(
                f"{table} within its number of rows",
                last.rows.get(table, 0) <= most,
                f"{last.rows.get(table, 0)} of {most}",
            )
            for table, most in most_rows.items()
        ),
        Verdict("sessions ran and none failed", ran > 0 and not failed, f"{failed} of {ran}"),
        _goes_on(samples),
        _log(log),
    ]


def _goes_on(samples: Sequence[Sample]) -> Verdict:
    """A demo that nothing starts in any more is steady, and of no use."""
    _, late = _second_and_last_quarter(samples)
    started = sum(sample.binds for sample in late)
    return Verdict("pods start to the end", started > 0, f"{started} in the last quarter")


def troubles(log: Iterable[str]) -> list[str]:
    """Lines that tell of an error or of a process that died."""
    return [line for line in log if _TROUBLE.search(line)]


def _log(log: Iterable[str]) -> Verdict:
    found = troubles(log)
    return Verdict("no error in any log", not found, "; ".join(found[:3]) if found else "none")


def _grows(
    what: str,
    samples: Sequence[Sample],
    read: Callable[[Sample], float],
    limit: float,
    middle: Callable[[Sequence[float]], float],
) -> Verdict:
    early, late = (
        middle([read(sample) for sample in part]) for part in _second_and_last_quarter(samples)
    )
    ratio = late / early if early else 1.0
    return Verdict(
        what, ratio <= limit, f"{early:.1f} to {late:.1f}, {ratio:.2f}x (at most {limit}x)"
    )


def _second_and_last_quarter(
    samples: Sequence[Sample],
) -> tuple[Sequence[Sample], Sequence[Sample]]:
    quarter = max(1, len(samples) // 4)
    return samples[quarter : 2 * quarter] or samples[:1], samples[-quarter:]
