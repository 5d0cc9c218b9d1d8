"""Nodes, namespaces, priority classes and disruption budgets, read into values."""

from __future__ import annotations

import pytest

from scheduler.clusters.kubernetes.read.cluster_objects import (
    read_disruption_budget,
    read_namespace,
    read_node,
    read_priority_class,
)
from scheduler.domain.nodes import Taint
from scheduler.domain.resources import Resources
from tests.clusters.kubernetes.raw import MOMENT, raw_meta


def raw_node(spec=None, **status):
    return {"metadata": raw_meta("n1"), "spec": spec or {}, "status": status}


def test_a_node_has_what_can_be_allocated():
    node = read_node(
        raw_node(
            capacity={"cpu": "8", "memory": "32Gi"},
            allocatable={"cpu": "7910m", "memory": "31Gi", "pods": "110", "nvidia.com/gpu": "4"},
        )
    )

    assert node.allocatable == Resources.parse(
        {"cpu": "7910m", "memory": "31Gi", "pods": "110", "nvidia.com/gpu": "4"}
    )


def test_a_node_that_tells_only_its_capacity_has_that():
    assert read_node(raw_node(capacity={"cpu": "8"})).allocatable == Resources({"cpu": 8000})


@pytest.mark.parametrize(
    ("status", "ready"), [("True", True), ("False", False), ("Unknown", False)]
)
def test_a_node_is_ready_when_it_says_so(status, ready):
    conditions = [
        {"type": "MemoryPressure", "status": "True"},
        {"type": "Ready", "status": status, "lastTransitionTime": MOMENT},
    ]
    node = read_node(raw_node(conditions=conditions))

    assert node.ready is ready
    assert node.ready_since is not None


def test_a_node_that_has_not_reported_yet_is_not_ready():
    assert not read_node(raw_node()).ready


def test_taints_and_cordons():
    taints = [
        {"key": "gpu", "effect": "NoSchedule"},
        {"key": "a", "value": "b", "effect": "NoExecute"},
    ]
    node = read_node(raw_node({"unschedulable": True, "taints": taints}))

    assert node.unschedulable
    assert node.taints == (Taint("gpu", "", "NoSchedule"), Taint("a", "b", "NoExecute"))


def test_a_namespace_may_name_a_queue_and_may_be_on_its_way_out():
    annotations = {"scheduling.volcano.sh/queue-name": "science"}
    namespace = read_namespace(
        {"metadata": raw_meta("team", annotations=annotations), "status": {"phase": "Terminating"}}
    )

    assert namespace.queue == "science"
    assert namespace.terminating


def test_the_priority_classes_of_the_system_are_read():
    found = read_priority_class(
        {
            "metadata": raw_meta("system-node-critical"),
            "value": 2_000_001_000,
            "description": "Nodes.",
        }
    )

    assert (found.value, found.preemption_policy) == (2_000_001_000, "PreemptLowerPriority")
    assert not found.global_default


def test_a_budget_tells_a_missing_selector_from_an_empty_one():
    spec = {"maxUnavailable": "50%", "minAvailable": 2}
    status = {"disruptionsAllowed": 1}
    without = read_disruption_budget({"metadata": raw_meta(), "spec": spec, "status": status})
    with_all = read_disruption_budget({"metadata": raw_meta(), "spec": {**spec, "selector": {}}})

    assert (without.selector, with_all.selector) == (None, {})
    assert (without.max_unavailable, without.min_available) == ("50%", "2")
    assert (without.disruptions_allowed, with_all.disruptions_allowed) == (1, 0)
