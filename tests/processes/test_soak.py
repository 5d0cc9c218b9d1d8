"""The demo left alone: what the soak calls steady, and a short run of the real thing."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.bench.steadiness import Sample, Verdict, troubles, verdicts
from tests.running import BASE

CALM = [
    Sample(
        minute=minute,
        megabytes={"web": 100.0},
        session_ms=20.0,
        session_ms_p99=40.0,
        sessions=30,
        binds=50,
    )
    for minute in range(8)
]


def broken(samples: list[Sample], log: tuple[str, ...] = (), **most_rows: int) -> list[str]:
    return [verdict.what for verdict in verdicts(samples, log, most_rows) if not verdict.holds]


def test_an_installation_that_stays_as_it_is_is_steady():
    assert broken(CALM) == []


def test_memory_that_grows_after_the_first_quarter_is_told_with_its_process():
    growing = [
        replace(sample, megabytes={"web": 100 + 10 * sample.minute, "beat": 70.0})
        for sample in CALM
    ]

    assert broken(growing) == ["memory of web, MB"]


def test_memory_that_is_taken_while_warming_up_is_no_growth():
    warming = [
        replace(sample, megabytes={"web": 50.0 if sample.minute < 2 else 100.0}) for sample in CALM
    ]

    assert broken(warming) == []


def test_sessions_that_take_longer_and_longer_are_told():
    slower = [replace(sample, session_ms=20.0 * (1 + sample.minute)) for sample in CALM]

    assert broken(slower) == ["session time, ms"]


def test_a_failed_session_and_none_at_all_are_told():
    assert broken([replace(CALM[0], failed_sessions=1), *CALM[1:]]) == [
        "sessions ran and none failed"
    ]
    assert broken([replace(sample, sessions=0) for sample in CALM]) == [
        "sessions ran and none failed"
    ]


def test_a_table_past_its_retention_and_one_with_too_many_rows_are_told():
    late = [
        *CALM[:-1],
        replace(CALM[-1], overdue_minutes={"Event": 3.5, "Decision": 2.5}, rows={"Change": 11}),
    ]

    assert broken(late, Change=10) == [
        "Event within its retention",
        "Change within its number of rows",
    ]


def test_a_demo_that_nothing_starts_in_any_more_is_told():
    assert broken([replace(sample, binds=50 if sample.minute < 4 else 0) for sample in CALM]) == [
        "pods start to the end"
    ]


@pytest.mark.parametrize(
    "line",
    [
        "worker | ERROR scheduler.x: no",
        "web | Traceback (most recent call last):",
        "fumarole | web ended (killed by SIGKILL)",
    ],
)
def test_an_error_in_a_log_is_told(line: str):
    assert troubles(["web | INFO all is well", line]) == [line]
    assert broken(CALM, (line,)) == ["no error in any log"]


@pytest.mark.long
@pytest.mark.processes
@pytest.mark.parametrize("database", [(), ("--postgres",)], ids=["sqlite", "postgresql"])
def test_the_demo_left_alone_for_three_minutes_is_steady(database: tuple[str, ...]):
    command = [
        sys.executable,
        "-m",
        "tests.bench.soak",
        "--minutes",
        "3",
        "--every",
        "10",
        "--json",
        *database,
    ]

    done = subprocess.run(command, cwd=BASE, text=True, capture_output=True, check=False)

    found = (
        [Verdict(**verdict) for verdict in json.loads(done.stdout)["verdicts"]]
        if done.stdout
        else []
    )
    kept = [
        verdict for verdict in found if not verdict.what.startswith("session time")
    ]  # the clock of a busy machine is no judge
    assert kept, done.stderr
    assert [verdict for verdict in kept if not verdict.holds] == []
