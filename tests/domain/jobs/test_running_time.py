"""The running time of a job through restarts, suspensions and evictions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.domain.jobs.running_time import Stage, run_begun

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


def at(minutes: int) -> datetime:
    return NOON + timedelta(minutes=minutes)


def went_through(*steps: tuple[int, str]) -> Stage:
    """Phases, each with the minute in which it began."""
    stage = None
    for minute, phase in steps:
        stage = Stage(phase, at(minute), run_begun(stage, phase, at(minute)))
    assert stage is not None
    return stage


def test_a_run_begins_when_the_job_first_runs():
    assert went_through((0, "Pending"), (5, "Running")).begun == at(5)
    assert went_through((0, "Pending")).begun is None


def test_what_it_ran_before_a_restart_counts_and_the_pause_does_not():
    stage = went_through(
        (0, "Running"), (10, "Restarting"), (11, "Pending"), (40, "Running"), (45, "Aborting")
    )

    assert stage.begun == at(30)


def test_suspend_and_resume_give_no_more_time():
    stage = went_through(
        (0, "Running"), (10, "Aborting"), (12, "Aborted"), (100, "Restarting"), (101, "Running")
    )

    assert stage.begun == at(91)


@pytest.mark.parametrize("end", ["Completed", "Terminated", "Failed"])
def test_a_job_that_had_ended_begins_anew(end: str):
    stage = went_through((0, "Running"), (10, end), (20, "Restarting"), (30, "Running"))

    assert stage.begun == at(30)


def test_the_time_without_pods_does_not_count():
    evicted = Stage("Running", at(0), at(0), paused=at(10))

    assert run_begun(evicted, "Running", at(25)) == at(15)


def test_a_job_of_an_older_version_counts_from_its_last_run():
    assert run_begun(Stage("Running", at(3)), "Restarting", at(9)) == at(3)


def test_a_cluster_that_tells_no_time_is_not_guessed_at():
    assert run_begun(Stage("Running", at(3), at(3)), "Running", None) is None
