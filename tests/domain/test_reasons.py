"""The table of reasons: every code once, and rows that do not contradict themselves."""

from __future__ import annotations

from collections import Counter

import pytest

from scheduler.domain.reasons import CANNOT_PASS, REASONS, ReasonCode, ReasonEntry, reason_entry
from scheduler.engine.report.explain import QUESTIONS


def test_every_code_has_one_row():
    assert Counter(entry.code for entry in REASONS) == Counter(ReasonCode)


def test_every_code_has_a_question_that_finds_it():
    assert set(QUESTIONS) == set(ReasonCode)


@pytest.mark.parametrize("entry", REASONS, ids=lambda entry: entry.code)
def test_a_row_does_not_contradict_itself(entry: ReasonEntry):
    assert entry.help.endswith(".")
    assert not (entry.can_never_run and entry.can_pass)
    assert not (entry.lacks_room and not entry.can_pass)
    assert entry.is_about_room or not (entry.lacks_room or entry.nodes_were_asked)
    assert entry.more_nodes_help or not entry.nodes_were_asked


def test_what_holds_the_whole_job_back_comes_before_what_is_about_room():
    about_room = [entry.is_about_room for entry in REASONS]

    assert about_room == sorted(about_room)


def test_a_reason_is_found_by_its_code_or_its_text():
    assert reason_entry("QueueClosed") is reason_entry(ReasonCode.QUEUE_CLOSED)
    assert reason_entry("QueueClosed").code in CANNOT_PASS


def test_a_code_that_nobody_knows_is_one_that_awaits_evaluation():
    assert reason_entry("").code is ReasonCode.AWAITING_EVALUATION
