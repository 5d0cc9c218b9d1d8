"""Capacity in a tree of queues: figures of each level, and trees that break a rule."""

from __future__ import annotations

import pytest

from scheduler.engine.policy import Flag, PluginConfig
from tests.engine.builders import (
    BASIC,
    TREE,
    binds,
    cluster,
    cores,
    evicted,
    job,
    node,
    policy,
    queue,
    run,
    with_actions,
)
from tests.engine.examples import FULL_TREE, tree

TREE_FLAG = {Flag.HIERARCHY: True}


def test_e12_root_is_the_cluster_so_that_guarantees_hold_at_the_first_level():
    outcome = run(tree(FULL_TREE), with_actions(TREE, "enqueue"))

    assert cores(outcome, "real_capability") == {
        "root": 16,
        "a": 16,
        "b": 12,
        "a1": 16,
        "a2": 14,
        "b1": 12,
    }
    assert {name: figures.share for name, figures in outcome.queues.items() if name != "root"} == {
        "a": 0.75,
        "b": 1.25,
        "a1": 0,
        "a2": 2.0,
        "b1": 1.25,
    }


@pytest.mark.parametrize(
    ("how", "started"), [("subtree", ["b-0"]), ("session", []), ("warn", ["a-0", "b-0"])]
)
def test_a_broken_rule_of_the_tree_stops_what_the_policy_says(how, started):
    queues = [
        queue("root"),
        queue("bad", deserved=1),
        queue("leaf", parent="bad", deserved=2),
        queue("good"),
    ]
    snapshot = cluster(
        nodes=[node("n1")],
        queues=queues,
        jobs=[job("a", "leaf", cpu=1), job("b", "good", cpu=1)],
    )

    outcome = run(
        snapshot,
        policy("allocate", [PluginConfig("capacity", TREE_FLAG, {"hierarchyViolation": how})]),
    )

    assert sorted(binds(outcome)) == started
    assert outcome.warnings == ("queue bad: its children deserve more than its own cpu",)
    assert outcome.queues["bad"].warnings == outcome.warnings


@pytest.mark.parametrize(("fill", "victims"), [(True, ["a-1"]), (False, [])])
def test_weights_alone_make_a_tree_that_reclaims(fill, victims):
    queues = [queue("root"), queue("q1", weight=1), queue("q2", weight=1)]
    snapshot = cluster(
        nodes=[node("n1", cpu=2)],
        queues=queues,
        jobs=[job("a", "q1", tasks=2, min=0, cpu=1, on="n1"), job("b", "q2", cpu=1)],
    )
    capacity = PluginConfig("capacity", TREE_FLAG, {"fillByWeight": fill})

    assert evicted(run(snapshot, policy("reclaim", BASIC, [capacity]))) == victims
