"""Creating and changing queues.

Each rule, all violations at once, figures and fixes in the answer.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.admission.facts import Facts
from scheduler.admission.reading.queue import read_queue
from scheduler.admission.rules.queue_deletion import check_delete, deletion_order
from scheduler.admission.rules.queues import check_queue, verdict_on
from scheduler.admission.rules.quotas import hierarchy_problems, tree_notices
from scheduler.admission.violations import Verdict
from scheduler.domain.queues import QueueSpec, QueueState, QueueTree
from scheduler.domain.resources import Resources

CLUSTER = Resources.parse({"cpu": "100", "memory": "100Gi"})
OPEN = {"root": QueueState.OPEN}


def queue(name: str, parent: str = "root", **fields: object) -> QueueSpec:
    amounts = {
        key: Resources.parse(fields.pop(key))
        for key in ("capability", "deserved", "guarantee")
        if key in fields
    }  # type: ignore[arg-type]
    return QueueSpec(name, parent=parent, **amounts, **fields)  # type: ignore[arg-type]


def tree(*queues: QueueSpec) -> QueueTree:
    return QueueTree([QueueSpec("root", parent=""), QueueSpec("default"), *queues])


def rules(verdict: Verdict) -> list[str]:
    return [violation.rule_id for violation in verdict.violations]


def notices(verdict: Verdict) -> list[str]:
    return [notice.code for notice in verdict.notices]


def test_a_plain_queue_is_admitted():
    assert check_queue(queue("a"), tree(), Facts()) == Verdict()


def test_everything_that_is_wrong_is_told_at_once():
    manifest = {
        "metadata": {"name": "Bad Name"},
        "spec": {
            "weight": -1,
            "priority": -5,
            "parent": "ghost",
            "dequeueStrategy": "lifo",
            "state": "Closing",
            "capability": {"cpu": "-1", "memory": "lots"},
            "deserved": {"cpu": "4"},
            "guarantee": {"resource": {"cpu": "2c", "memory": "200Gi"}},
        },
    }

    verdict = verdict_on(read_queue(manifest), tree(), Facts(total=CLUSTER), None)

    assert set(rules(verdict)) == {
        "invalid_name",
        "weight_out_of_range",
        "priority_out_of_range",
        "parent_not_found",
        "invalid_dequeue_strategy",
        "invalid_state",
        "negative_quantity",
        "invalid_quantity",
        "guarantee_exceeds_cluster",
    }
    cores = next(
        violation
        for violation in verdict.violations
        if violation.field == "spec.guarantee.resource.cpu"
    )
    assert cores.fix == "write 2 or 2000m"


def test_a_name_that_is_taken_is_refused():
    assert rules(check_queue(queue("a"), tree(queue("a")), Facts())) == ["already_exists"]


def test_guarantee_deserved_and_capability_are_in_order_with_figures_and_a_fix():
    verdict = check_queue(
        queue("a", guarantee={"cpu": "6"}, deserved={"cpu": "4"}, capability={"cpu": "5"}),
        tree(),
        Facts(total=CLUSTER),
    )

    assert rules(verdict) == ["guarantee_exceeds_deserved", "guarantee_exceeds_capability"]
    assert verdict.violations[0].message == "guarantee cpu 6 of a is more than its deserved 4."
    assert verdict.violations[0].fix == "lower guarantee cpu to 4, or raise deserved to 6"
    assert verdict.violations[0].field == "spec.guarantee.resource.cpu"


def test_what_the_larger_one_does_not_name_does_not_limit():
    verdict = check_queue(
        queue("a", guarantee={"memory": "1Gi"}, deserved={"cpu": "4"}, capability={"pods": "9"}),
        tree(),
        Facts(total=CLUSTER),
    )

    assert verdict.allowed


def test_a_guarantee_above_the_cluster_is_refused_with_the_figures():
    verdict = check_queue(
        queue("a", guarantee={"cpu": "101", "nvidia.com/gpu": "1"}),
        tree(),
        Facts(total=CLUSTER),
    )

    assert rules(verdict) == ["guarantee_exceeds_cluster", "guarantee_exceeds_cluster"]
    assert (
        "guarantee cpu 101 of a is more than the whole cluster has (100)"
        in verdict.violations[0].message
    )


def test_with_no_node_known_a_guarantee_is_a_warning():
    verdict = check_queue(queue("a", guarantee={"cpu": "101"}), tree(), Facts(total=None))

    assert verdict.allowed
    assert notices(verdict) == ["cluster_unknown"]


def test_a_cluster_that_shrank_is_a_warning_and_does_not_block_other_edits():
    large = queue("a", guarantee={"cpu": "90"})
    facts = Facts(total=Resources.parse({"cpu": "50"}))

    verdict = check_queue(replace(large, weight=3), tree(large), facts, old=large)

    assert verdict.allowed
    assert notices(verdict) == ["guarantee_exceeds_cluster"]
    assert [notice.code for notice in tree_notices(tree(large), facts)["a"]] == [
        "guarantee_exceeds_cluster"
    ]


def test_a_guarantee_above_what_the_others_leave_is_a_warning():
    verdict = check_queue(
        queue("b", guarantee={"cpu": "60"}),
        tree(queue("a", guarantee={"cpu": "50"})),
        Facts(total=CLUSTER),
    )

    assert verdict.allowed
    assert [(notice.code, notice.message) for notice in verdict.notices] == [
        (
            "guarantee_exceeds_left",
            "The children's guarantee cpu is 110 together, the cluster has 100, 10 too many.",
        )
    ]


def test_children_together_may_not_have_more_than_their_parent():
    above = queue("p", deserved={"cpu": "64"}, guarantee={"cpu": "8"})
    sibling = queue("a", "p", deserved={"cpu": "40"})

    verdict = check_queue(
        queue("b", "p", deserved={"cpu": "30", "memory": "1Gi"}, guarantee={"cpu": "9"}),
        tree(above, sibling),
        Facts(),
    )

    assert sorted(rules(verdict)) == ["children_deserved_exceeds_parent"] * 2 + [
        "children_guarantee_exceeds_parent"
    ]
    overshoot = next(
        violation for violation in verdict.violations if violation.field == "spec.deserved.cpu"
    )
    assert (
        overshoot.message
        == "The children's deserved cpu is 70 together, p has 64, 6 too many: a 40, b 30."
    )
    assert overshoot.fix == "lower deserved cpu of b to 24, or raise deserved cpu of p to 70"


def test_a_parent_can_not_be_lowered_below_its_children():
    above = queue("p", deserved={"cpu": "8"}, capability={"cpu": "8"})
    child = queue("c", "p", deserved={"cpu": "6"}, capability={"cpu": "7"})

    verdict = check_queue(
        queue("p", deserved={"cpu": "4"}, capability={"cpu": "5"}),
        tree(above, child),
        Facts(),
        old=above,
    )

    assert rules(verdict) == ["capability_below_descendant", "children_deserved_exceeds_parent"]
    assert "capability cpu 5 of p is less than the 7 of c below it" in verdict.violations[0].message


def test_children_of_root_are_not_summed():
    assert check_queue(
        queue("b", deserved={"cpu": "1000"}),
        tree(queue("a", deserved={"cpu": "1000"})),
        Facts(),
    ).allowed


def test_a_broken_tree_does_not_block_an_unrelated_edit():
    child = queue("c", "p", deserved={"cpu": "1"})

    assert check_queue(
        replace(child, weight=9),
        tree(queue("p"), child),
        Facts(),
        old=child,
    ).allowed
    assert rules(
        check_queue(
            replace(child, deserved=Resources.parse({"cpu": "2"})),
            tree(queue("p"), child),
            Facts(),
            old=child,
        )
    ) == ["children_deserved_exceeds_parent"]


@pytest.mark.parametrize(
    ("proposed", "rule"),
    [
        (queue("a", "a"), "self_parent"),
        (queue("a", "ghost"), "parent_not_found"),
        (queue("p", "g"), "parent_cycle"),
        (queue("a", "deep5"), "max_depth_exceeded"),
    ],
)
def test_a_queue_needs_a_place_in_the_tree(proposed: QueueSpec, rule: str):
    chain = [
        queue(f"deep{level}", f"deep{level - 1}" if level > 1 else "root") for level in range(1, 6)
    ]
    there = tree(queue("p"), queue("c", "p"), queue("g", "c"), *chain)
    old = there.queues.get(proposed.name)

    verdict = check_queue(proposed, there, Facts(), old=old)

    assert rules(verdict) == [rule]
    assert proposed.name in verdict.violations[0].message


def test_five_levels_are_allowed():
    chain = [
        queue(f"deep{level}", f"deep{level - 1}" if level > 1 else "root") for level in range(1, 5)
    ]

    assert check_queue(queue("a", "deep4"), tree(*chain), Facts()).allowed


def test_the_whole_moved_subtree_counts_for_the_depth():
    there = tree(
        queue("a"),
        queue("b", "a"),
        queue("c", "b"),
        queue("x"),
        queue("y", "x"),
        queue("z", "y"),
    )

    verdict = check_queue(queue("x", "c"), there, Facts(), old=there["x"])

    assert rules(verdict) == ["max_depth_exceeded"]
    assert "would be 4 levels below root and reach 6" in verdict.violations[0].message


@pytest.mark.parametrize("facts", [Facts(live_podgroups={"p": 2}), Facts(allocated_pods={"p": 3})])
def test_a_busy_queue_gets_no_children(facts: Facts):
    assert rules(check_queue(queue("c", "p"), tree(queue("p")), facts)) == [
        "parent_has_allocated_pods"
    ]
    moved = queue("c")
    assert rules(
        check_queue(replace(moved, parent="p"), tree(queue("p"), moved), facts, old=moved)
    ) == ["parent_has_allocated_pods"]


def test_the_pods_of_children_do_not_make_a_parent_busy():
    assert check_queue(
        queue("d", "p"),
        tree(queue("p"), queue("c", "p")),
        Facts(allocated_pods={"p": 3}),
    ).allowed


@pytest.mark.parametrize(
    ("wish", "code"),
    [(QueueState.CLOSED, "parent_closed"), (QueueState.SUSPENDED, "parent_suspended")],
)
def test_below_a_closed_or_suspended_queue_a_new_one_is_admitted_with_a_warning(
    wish: QueueState, code: str
):
    verdict = check_queue(queue("c", "p"), tree(queue("p", state=wish)), Facts())

    assert verdict.allowed
    assert notices(verdict) == [code]


def test_root_keeps_its_quotas_its_place_and_its_state():
    root = QueueSpec("root", parent="", reclaimable=False)

    assert check_queue(replace(root, weight=3), tree(), Facts(), old=root).allowed
    assert rules(check_queue(replace(root, deserved=CLUSTER), tree(), Facts(), old=root)) == [
        "root_protected"
    ]
    assert check_queue(
        replace(root, deserved=CLUSTER),
        tree(),
        Facts(protects_root=False),
        old=root,
    ).allowed
    assert rules(check_queue(replace(root, parent="default"), tree(), Facts(), old=root)) == [
        "root_protected"
    ]
    assert rules(
        check_queue(
            replace(root, state=QueueState.CLOSED),
            tree(),
            Facts(),
            old=root,
            sets_state=True,
        )
    ) == ["protected_queue"]


def test_a_change_of_state_is_refused_where_the_command_is():
    child = queue("c", "p", state=QueueState.CLOSED)
    there = tree(queue("p", state=QueueState.CLOSED), child)

    verdict = check_queue(
        replace(child, state=QueueState.OPEN),
        there,
        Facts(),
        old=child,
        sets_state=True,
    )

    assert [(violation.rule_id, violation.fix) for violation in verdict.violations] == [
        ("parent_not_open", "open p first")
    ]


def test_the_state_is_checked_only_when_the_request_sets_it():
    child = queue("c", state=QueueState.CLOSED)
    manifest = {"metadata": {"name": "c"}, "spec": {"weight": 4}, "status": {"state": "Closing"}}

    facts = Facts(states={"c": QueueState.CLOSING})
    assert verdict_on(read_queue(manifest, child), tree(child), facts, child).allowed


# Deleting.


def test_every_blocker_of_a_deletion_is_listed():
    there = tree(queue("p"), queue("a", "p"), queue("b", "p"))

    verdict = check_delete(
        "p",
        there,
        Facts(states={"p": QueueState.OPEN}, live_podgroups={"p": 2}),
    )

    assert rules(verdict) == ["has_children", "queue_not_closed", "has_podgroups"]
    assert " ".join(violation.message for violation in verdict.violations) == (
        "p has 2 children (a, b). p is Open; only a Closed queue can be deleted. p has 2 "
        "podgroups not Completed."
    )


def test_a_closed_leaf_can_be_deleted():
    assert check_delete("a", tree(queue("a")), Facts(states={"a": QueueState.CLOSED})).allowed


def test_a_cascade_needs_every_queue_to_be_deletable():
    there = tree(queue("p"), queue("a", "p"), queue("b", "p"), queue("g", "a"))
    closed = dict.fromkeys(("p", "a", "b", "g"), QueueState.CLOSED)

    assert check_delete("p", there, Facts(states=closed), cascade=True).allowed
    refused = check_delete(
        "p",
        there,
        Facts(
            states=closed | {"b": QueueState.OPEN, "g": QueueState.CLOSING}, live_podgroups={"g": 1}
        ),
        cascade=True,
    )
    assert [(violation.queue, violation.rule_id) for violation in refused.violations] == [
        ("b", "queue_not_closed"),
        ("g", "queue_not_closed"),
        ("g", "has_podgroups"),
    ]
    assert deletion_order("p", there) == ["b", "g", "a", "p"]


@pytest.mark.parametrize("name", ["root", "default"])
def test_root_and_default_are_never_deleted(name: str):
    assert "protected_queue" in rules(
        check_delete(name, tree(), Facts(states={"default": QueueState.CLOSED}))
    )


# A tree that came from outside.


def test_the_problems_of_a_stored_tree_are_found_queue_by_queue():
    there = tree(
        queue("p", capability={"cpu": "4"}),
        queue("c", "p", capability={"cpu": "9"}, deserved={"cpu": "1"}),
        queue("lost", "nowhere"),
        queue("x", "y"),
        queue("y", "x"),
    )

    found = {
        name: [problem.rule_id for problem in problems]
        for name, problems in hierarchy_problems(there, 5).items()
    }

    assert found == {
        "c": ["capability_exceeds_ancestor"],
        "lost": ["parent_not_found"],
        "p": ["children_deserved_exceeds_parent"],
        "x": ["parent_cycle"],
        "y": ["parent_cycle"],
    }
