"""Nodeorder, binpack and scarcity: what their arguments make of the scores of nodes."""

from __future__ import annotations

import pytest

from scheduler.domain.requirements import Requirement
from scheduler.domain.workloads import Constraint, NodeTerm, PreferredTerm
from scheduler.engine import open_session
from scheduler.engine.policy import PluginConfig
from tests.engine.builders import binds, cluster, job, node, policy, queue, run


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        (PluginConfig("binpack"), [56.25, 18.75]),
        (
            PluginConfig(
                "nodeorder", {}, {"balancedresource.weight": 0, "tainttoleration.weight": 0}
            ),
            [43.75, 81.25],
        ),
    ],
    ids=["binpack", "least requested"],
)
def test_e19_scores(plugin, expected):
    """Least requested counts in whole points, as Volcano does: the worked figures are cut."""
    snapshot = cluster(
        nodes=[node("n1", cpu=8, memory="32Gi"), node("n2", cpu=8, memory="32Gi")],
        queues=[queue("default")],
        jobs=[job("runs", cpu=4, memory="8Gi", on="n1"), job("new", cpu=2, memory="4Gi")],
    )
    session = open_session(snapshot, policy("allocate", [plugin]))

    scores = session.node_scores(1).by_node.tolist()

    whole = plugin.name == "nodeorder"
    assert scores == [int(score) if whole else score for score in expected]


PREFERS_N2 = Constraint(
    preferred=(PreferredTerm(1, NodeTerm((Requirement("zone", "In", ("b",)),))),)
)

NODE_ARGUMENTS = {
    "leastrequested.weight": (
        {"balancedresource.weight": 0},
        {"leastrequested.weight": 0},
        {"x": "n1"},
        {},
        "n2",
        "n1",
    ),
    "mostrequested.weight": (
        {"leastrequested.weight": 0, "balancedresource.weight": 0, "mostrequested.weight": 1},
        {"mostrequested.weight": 0},
        {"x": "n2"},
        {},
        "n2",
        "n1",
    ),
    "balancedresource.weight": (
        {"leastrequested.weight": 0},
        {"balancedresource.weight": 0},
        {"m": "n2"},
        {},
        "n2",
        "n1",
    ),
    "nodeaffinity.weight": (
        {"leastrequested.weight": 0},
        {"nodeaffinity.weight": 0},
        {},
        {"constraint": PREFERS_N2},
        "n2",
        "n1",
    ),
    "tainttoleration.weight": (
        {"leastrequested.weight": 0},
        {"tainttoleration.weight": 0},
        {"taint": "n1"},
        {},
        "n2",
        "n1",
    ),
}


@pytest.mark.parametrize("name", NODE_ARGUMENTS)
def test_an_argument_of_nodeorder_moves_the_pod(name):
    arguments, off, there, pod, with_it, without_it = NODE_ARGUMENTS[name]
    taints = [("slow", "", "PreferNoSchedule")] if "taint" in there else []
    snapshot = cluster(
        nodes=[node("n1", taints=taints), node("n2", labels={"zone": "b"})],
        queues=[queue("default")],
        jobs=[
            *(job("x", cpu=4, memory="32Gi", on=there[key]) for key in there if key == "x"),
            *(job("m", memory="32Gi", on=there[key]) for key in there if key == "m"),
            job("a", cpu=2, memory="4Gi" if "m" not in there else None, pod=pod),
        ],
    )

    def place(given):
        return binds(run(snapshot, policy("allocate", [PluginConfig("nodeorder", {}, given)])))[
            "a-0"
        ]

    assert (place(arguments), place({**arguments, **off})) == (with_it, without_it)


BINPACK_ARGUMENTS = {
    "binpack.weight": ({}, {"binpack.weight": 0}),
    "binpack.cpu": ({"binpack.memory": 0}, {"binpack.cpu": 0}),
    "binpack.memory": ({"binpack.cpu": 0}, {"binpack.memory": 0}),
    "binpack.resources": (
        {"binpack.cpu": 0, "binpack.memory": 0, "binpack.resources": "nvidia.com/gpu"},
        {"binpack.resources": ""},
    ),
    "binpack.resources.nvidia.com/gpu": (
        {"binpack.cpu": 0, "binpack.memory": 0, "binpack.resources": "nvidia.com/gpu"},
        {"binpack.resources.nvidia.com/gpu": 0},
    ),
}


@pytest.mark.parametrize("name", BINPACK_ARGUMENTS)
def test_an_argument_of_binpack_moves_the_pod(name):
    arguments, off = BINPACK_ARGUMENTS[name]
    snapshot = cluster(
        nodes=[node("n1", gpu=4), node("n2", gpu=4)],
        queues=[queue("default")],
        jobs=[job("x", cpu=4, memory="8Gi", gpu=1, on="n2"), job("a", cpu=1, memory="1Gi", gpu=1)],
    )

    def place(given):
        return binds(run(snapshot, policy("allocate", [PluginConfig("binpack", {}, given)])))["a-0"]

    assert (place(arguments), place({**arguments, **off})) == ("n2", "n1")


@pytest.mark.parametrize(("weight", "place"), [(10, "n2"), (0, "n1")])
def test_the_weight_of_scarcity_moves_the_pod(weight, place):
    """Of two nodes with GPUs the fuller one is filled up, against what binpack alone would say of
    their cores.
    """
    snapshot = cluster(
        nodes=[node("n1", cpu=4, gpu=8), node("n2", cpu=64, gpu=4)],
        queues=[queue("default")],
        jobs=[job("a", cpu=1, memory="1Gi", gpu=1)],
    )
    plugins = ["binpack", PluginConfig("scarcity", {}, {"scarcity.weight": weight})]

    assert binds(run(snapshot, policy("allocate", plugins))) == {"a-0": place}
