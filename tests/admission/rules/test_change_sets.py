"""Queues that are created and changed together, judged as a whole."""

from __future__ import annotations

import time

import pytest

from scheduler.admission.facts import Facts
from scheduler.admission.rules.change_sets import MOST_BROKEN, QueueChanges, check_changes
from scheduler.domain.queues import QueueSpec, QueueTree

TREE = QueueTree([QueueSpec("root", parent=""), QueueSpec("default")])
MANY = 1000


def line_of(first_parent: str) -> list[QueueSpec]:
    """Each lies below the one before."""
    parents = [first_parent, *(f"q{number}" for number in range(MANY - 1))]
    return [QueueSpec(f"q{number}", parent=parent) for number, parent in enumerate(parents)]


@pytest.mark.parametrize(
    ("first_parent", "rule"),
    [("root", "max_depth_exceeded"), (f"q{MANY - 1}", "parent_cycle")],
    ids=["a chain", "a ring"],
)
def test_a_thousand_queues_below_each_other_are_refused_in_seconds(first_parent: str, rule: str):
    began = time.process_time()

    verdicts = check_changes(QueueChanges(line_of(first_parent)), TREE, Facts())

    assert time.process_time() - began < 20
    assert len(verdicts) == MOST_BROKEN
    assert {verdict.violations[0].rule_id for verdict in verdicts.values()} == {rule}


def test_queues_side_by_side_are_all_judged():
    flat = [QueueSpec(f"q{number}") for number in range(2 * MOST_BROKEN)]

    verdicts = check_changes(QueueChanges(flat), TREE, Facts())

    assert len(verdicts) == 2 * MOST_BROKEN
    assert all(verdict.allowed for verdict in verdicts.values())
