"""Queues that are created and changed together, judged as a whole."""

from __future__ import annotations

import time

import pytest

from scheduler.admission.facts import Facts
from scheduler.admission.rules.change_sets import MOST_BROKEN, QueueChanges, check_changes
from scheduler.admission.violations import Violation, one_for_each_rule
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


def test_what_queues_break_together_is_one_rule_with_the_fixes_of_all():
    raised = "raise cpu of p to 9"
    sums = [
        Violation("sum", name, "cpu", "too many", f"lower cpu of {name} to 3, or {raised}")
        for name in ("a", "b")
    ]
    other = Violation("depth", "c", "parent", "too deep", "choose x, or y")

    told = one_for_each_rule([sums[0], other, sums[1]])

    assert [violation.message for violation in told] == ["too many", "too deep"]
    assert told[0].fix == f"lower cpu of a to 3, {raised}, or lower cpu of b to 3"
    assert told[1] == other
