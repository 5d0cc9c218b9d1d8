"""Reasons that no waiting helps with: a gang asks for more than it can ever get."""

from __future__ import annotations

from scheduler.domain.reasons import ReasonCode
from scheduler.domain.workloads import Constraint
from tests.engine.builders import (
    job,
    node,
    queue,
)
from tests.engine.report.explaining import explained


def test_more_than_a_level_of_the_tree_may_ever_use():
    """A gang of 64 that cannot start because of one resource on one level says exactly that."""
    queues = [queue("team", capability={"gpu": 32}), queue("train", parent="team")]
    nodes = [node(f"n{number}", cpu=64, gpu=8) for number in range(16)]

    found = explained(
        nodes=nodes,
        queues=queues,
        jobs=[job("new", "train", tasks=64, cpu=1, gpu=1)],
    )

    assert found.code is ReasonCode.EXCEEDS_CAPABILITY
    assert found.message == "Needs 64 nvidia.com/gpu at once; train may never use more than 32."
    assert {key: found.figures[key] for key in ("resource", "need", "limit", "short")} == {
        "resource": "nvidia.com/gpu",
        "need": 64000,
        "limit": 32000,
        "short": 32000,
    }
    failed = [
        (check.name, check.level, check.resource) for check in found.checks if not check.passed
    ]
    assert failed == [
        ("capability", "train", "nvidia.com/gpu"),
        ("deserved", "train", "nvidia.com/gpu"),
        ("capability", "team", "nvidia.com/gpu"),
    ]


def test_more_than_the_whole_cluster_has():
    found = explained(
        nodes=[node("n1", cpu=8)],
        queues=[queue("default")],
        jobs=[job("new", tasks=3, cpu=4)],
    )

    assert (found.code, found.message) == (
        ReasonCode.EXCEEDS_CLUSTER,
        "Needs 12 cpu at once; the whole cluster has 8.",
    )
    assert (found.figures["need"], found.figures["limit"]) == (12000, 8000)


def test_a_pod_larger_than_any_node_names_the_largest_whatever_runs_there():
    nodes = [node("n1", cpu=8), node("n2", cpu=6)]

    found = explained(
        nodes=nodes,
        queues=[queue("default")],
        jobs=[job("a", cpu=5, on="n1"), job("new", cpu=10)],
    )

    assert (found.code, found.figures["largest"], found.figures["has"]) == (
        ReasonCode.NO_NODE_FITS,
        "n1",
        {"cpu": 8000},
    )
    assert (
        found.message
        == "A pod needs 10 cpu, more than any suitable node has; the largest is n1 with 8 cpu."
    )


def test_a_selector_that_no_node_matches():
    work = job("new", cpu=1, pod={"constraint": Constraint(node_selector=(("zone", "x"),))})

    found = explained(nodes=[node("n1"), node("n2")], queues=[queue("default")], jobs=[work])

    assert (found.code, found.figures) == (ReasonCode.NO_NODE_FITS, {"nodes": 2, "suitable": 0})
