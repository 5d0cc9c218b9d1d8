"""One of a thing is not several, where a number stands before a word that a person reads."""

from __future__ import annotations

import time

import pytest

from dashboard.cli import output
from dashboard.cli.sessions import words
from dashboard.present.jobs import gang_words
from scheduler.domain.jobs.facts import JobFacts, TaskCount
from scheduler.domain.jobs.phases import JobPhase
from scheduler.domain.jobs.policies import JobAction
from scheduler.domain.jobs.reactions import react
from scheduler.domain.jobs.settling import settle


def test_what_a_session_did():
    assert [words.count_in_words(name, 1) for name in words.COUNTS] == [
        "1 pod placed",
        "1 pod evicted",
        "1 preemption tried",
        "1 lost to others",
        "1 gang written",
        "1 queue written",
        "1 change read",
    ]
    assert words.count_in_words("binds", 3) == "3 pods placed"
    assert words.count_in_words("somethingNew", 1) == "1 somethingNew"


def test_on_the_command_line():
    assert (output.counted(1, "gang"), output.counted(0, "gang"), output.counted(2, "gang")) == (
        "1 gang",
        "0 gangs",
        "2 gangs",
    )


def test_of_a_gang():
    assert gang_words(0, 1, 1, "Pending").startswith(
        "0 of 1 pod has a place; 1 is needed to start. "
    )
    assert gang_words(1, 2, 3, "Running").startswith(
        "1 of 3 pods have a place; 2 are needed to start, 1 more is elastic. "
    )


def test_of_what_became_of_a_job():
    failed = settle(
        JobFacts(JobPhase.RUNNING, 2, (TaskCount("worker", 2, 1, succeeded=1, failed=1),))
    )
    assert failed
    assert failed.message == "1 pod succeeded, 2 needed"
    tired = react(JobFacts(JobPhase.RUNNING, 1, (), retry_count=1, max_retry=1), JobAction.RESTART)
    assert tired
    assert tired.message == "failed after 1 of 1 retry"


def test_a_moment_on_the_command_line_names_its_zone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert output.clock("2026-11-17T04:55:00Z") == "2026-11-17 05:55:00 CET"
    finally:
        monkeypatch.undo()
        time.tzset()
