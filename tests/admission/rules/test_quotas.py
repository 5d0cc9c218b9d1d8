"""Quotas of a queue that moves: what comes with it must fit as well, and nobody is compared with
itself.
"""

from __future__ import annotations

from scheduler.admission.facts import Facts
from scheduler.admission.rules.queues import check_queue
from scheduler.admission.violations import Violation
from scheduler.domain.queues import ROOT, QueueSpec, QueueTree
from scheduler.domain.resources import Resources


def queue(name: str, parent: str = ROOT, **amounts: str) -> QueueSpec:
    """`cpu` is the capability, `deserved` the deserved cpu."""
    capability = Resources.parse({"cpu": amounts["cpu"]} if "cpu" in amounts else {})
    deserved = Resources.parse({"cpu": amounts["deserved"]} if "deserved" in amounts else {})
    return QueueSpec(name, parent=parent, capability=capability, deserved=deserved)


def refusals(moved: QueueSpec, *others: QueueSpec) -> list[Violation]:
    tree = QueueTree([QueueSpec(ROOT, parent=""), *others])
    return list(check_queue(moved, tree, Facts(), old=tree[moved.name]).violations)


def test_a_limit_below_the_moved_queue_is_held_against_those_above_its_new_place():
    (violation,) = refusals(
        queue("b", "a"),
        queue("a", cpu="10"),
        queue("b"),
        queue("c", "b"),
        queue("d", "c", cpu="20"),
    )

    assert (violation.rule_id, violation.field) == ("capability_exceeds_ancestor", "spec.parent")
    assert (
        violation.message == "capability cpu 20 of d, which comes with b, is more than the 10 of a."
    )
    assert violation.fix == "lower capability cpu of d to 10, or raise that of a to 20"


def test_a_moved_queue_that_sets_the_limit_itself_speaks_for_those_below_it():
    assert (
        refusals(
            queue("b", "a", cpu="10"),
            queue("a", cpu="10"),
            queue("b", cpu="10"),
            queue("c", "b", cpu="5"),
        )
        == []
    )


def test_an_edit_in_place_does_not_ask_about_what_is_below_again():
    assert (
        refusals(
            queue("b", "a", deserved="1"),
            queue("a", cpu="10", deserved="2"),
            queue("b", "a"),
            queue("c", "b", cpu="20"),
        )
        == []
    )


def test_a_queue_is_not_compared_with_itself_when_it_is_its_own_parent():
    (violation,) = refusals(
        queue("a", "a", deserved="4"),
        queue("a", deserved="4"),
        queue("b", "a", deserved="4"),
    )

    assert violation.rule_id == "self_parent"


def test_a_queue_is_not_compared_with_those_below_it_when_it_would_lie_below_them():
    (violation,) = refusals(queue("a", "b", cpu="8"), queue("a", cpu="8"), queue("b", "a", cpu="4"))

    assert violation.rule_id == "parent_cycle"
