"""Scenario files are read into clusters, refused with their place, and written so that they read
back the same.
"""

import json

import pytest

from scheduler.domain.nodes import Node, Taint
from scheduler.domain.pod_rules import ForeignPods, PodRules, PodSelector, PodTerm, Spread
from scheduler.domain.queues import QueueSpec, QueueState
from scheduler.domain.requirements import Requirement
from scheduler.domain.resources import Resources
from scheduler.domain.snapshot import Queue, Snapshot
from scheduler.domain.workloads import (
    Constraint,
    NodeTerm,
    Phase,
    Pod,
    PodGroup,
    PodStatus,
    PreferredTerm,
    Toleration,
)
from scheduler.engine.policy import Flag, PluginConfig, Policy
from scheduler.engine.presets import DEFAULT_POLICY
from scheduler.scenarios.clusters import cluster_of
from scheduler.scenarios.files import ScenarioError, read_file, read_scenarios
from scheduler.scenarios.writing import scenario_document

SMALL = """
name: small
nodes: [{name: n1, allocatable: {cpu: 4, memory: 8Gi, pods: 10}}]
queues: [{name: q1}]
podgroups: [{name: train, namespace: ns, queue: q1, minMember: 2}]
pods:
- {name: train-0, namespace: ns, podgroup: train, requests: {cpu: 500m}}
- {name: train-1, namespace: ns, podgroup: train, requests: {cpu: 500m}}
"""


def only(text: str):
    (scenario,) = read_scenarios(text, "test.yaml")
    return scenario


def complaint(text: str) -> str:
    with pytest.raises(ScenarioError) as refusal:
        read_scenarios(text, "test.yaml")
    return str(refusal.value)


def test_a_scenario_without_conf_uses_the_default_policy():
    scenario = only(SMALL)

    assert scenario.policy == DEFAULT_POLICY
    assert [pod.key for pod in scenario.cluster.pods] == ["ns/train-0", "ns/train-1"]
    assert scenario.cluster.pods[0].request == Resources({"cpu": 500})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param(SMALL, ["small"], id="one"),
        pytest.param("- name: a\n- name: b", ["a", "b"], id="a list"),
        pytest.param("cases:\n- name: a\n- name: b", ["a", "b"], id="cases"),
        pytest.param('{"cases": [{"name": "a"}]}', ["a"], id="json"),
    ],
)
def test_a_file_holds_one_scenario_or_many(text, names):
    assert [scenario.name for scenario in read_scenarios(text, "test.yaml")] == names


@pytest.mark.parametrize(
    ("written", "on"), [("off", False), ("on", True), ('"off"', False), ("false", False)]
)
def test_unlisted_flags_may_be_quoted_or_not(written, on):
    scenario = only(
        f"conf: {{actions: [allocate], tiers: [[{{name: gang}}]], unlistedFlags: {written}}}"
    )

    assert scenario.policy.unlisted_flags is on


def test_defaults_are_volcanos():
    scenario = only(
        """
priorityClasses: [{name: high, value: 100, preemptionPolicy: Never}]
queues: [{name: q1}]
podgroups:
- {name: a, queue: q1, priorityClassName: high}
- {name: b, queue: q1, priorityClassName: nowhere}
pods: [{name: p, podgroup: a}, {name: bound, podgroup: a, node: n9}]
"""
    )

    first, second = scenario.cluster.podgroups
    assert (first.priority, first.phase, first.min_resources, first.namespace) == (
        100,
        Phase.PENDING,
        None,
        "default",
    )
    assert second.priority == 0
    assert scenario.cluster.queues[0] == Queue(QueueSpec("q1"))
    assert [(pod.priority, pod.preemptable, pod.status) for pod in scenario.cluster.pods] == [
        (1, True, PodStatus.PENDING),
        (1, True, PodStatus.BOUND),
    ]


def test_states_follow_from_the_tree_unless_the_holder_is_written():
    scenario = only(
        """
queues:
- {name: a, state: Suspended}
- {name: a1, parent: a}
- {name: b, state: Closing}
- {name: b1, parent: b}
- {name: c1, parent: c, heldBy: c, state: Closing}
"""
    )

    states = {queue.name: (queue.state, queue.held_by) for queue in scenario.cluster.queues}
    assert states == {
        "a": (QueueState.SUSPENDED, "a"),
        "a1": (QueueState.SUSPENDED, "a"),
        "b": (QueueState.CLOSING, ""),
        "b1": (QueueState.CLOSING, ""),
        "c1": (QueueState.CLOSING, "c"),
    }


@pytest.mark.parametrize("nested", ["{cpu: 2}", "{resource: {cpu: 2}}"])
def test_a_guarantee_is_read_flat_or_nested(nested):
    assert only(f"queues: [{{name: q, guarantee: {nested}}}]").cluster.queues[
        0
    ].spec.guarantee == Resources({"cpu": 2000})


def test_steps_add_objects_and_name_their_actions():
    scenario = only(
        """
priorityClasses: [{name: high, value: 7}]
queues: [{name: q}]
steps:
- {session: 1, actions: [allocate], expect: {bindMap: {}}}
- add: {podgroups: [{name: late, queue: q, priorityClassName: high}]}
"""
    )

    assert [step.actions for step in scenario.steps] == [("allocate",), None]
    assert scenario.steps[1].more.podgroups[0].priority == 7


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "nodes: [{name: n, cpus: 4}]", "nodes[0].cpus: is not a known key", id="unknown key"
        ),
        pytest.param("surprise: 1", "surprise: is not a known key", id="unknown section"),
        pytest.param(
            "- name: a\n- nodes: [{}]", "[1].nodes[0].name: must be given", id="place in a list"
        ),
        pytest.param("cases: [{pods: 3}]", "cases[0].pods: must be a list", id="place in cases"),
        pytest.param(
            "nodes: [{name: n, allocatable: {cpu: 1 Gi}}]",
            "nodes[0].allocatable.cpu: “1 Gi” is not a quantity",
            id="quantity",
        ),
        pytest.param(
            "nodes: [{name: n, allocatable: {cpu: 1_000}}]",
            "nodes[0].allocatable.cpu: “1_000” is not a quantity",
            id="underscore",
        ),
        pytest.param(
            "pods: [{name: p, podgroup: g, requests: {memory: -1}}]",
            "pods[0].requests.memory: must not be below zero",
            id="below zero",
        ),
        pytest.param(
            "pods: [{name: p, podgroup: g, requests: {nvidia.com/gpu: 0.5}}]",
            "pods[0].requests.nvidia.com/gpu: “0.5” is a fraction",
            id="half a GPU",
        ),
        pytest.param(
            "nodes: [{name: n, allocatable: {memory: 4Ei}}]",
            "nodes: together they have more memory than can be counted",
            id="too much",
        ),
        pytest.param(
            "queues: [{name: q}, {name: q}]", "queues[1].name: “q” is given twice", id="twice"
        ),
        pytest.param(
            "queues: [{name: q, state: Open}, {name: r, state: Ajar}]",
            "queues[1].state: must be one of",
            id="state",
        ),
        pytest.param(
            "queues: [{name: q, weight: 70000}]",
            "queues[0].weight: must be between 0 and 65535",
            id="weight",
        ),
        pytest.param(
            "podgroups: [{name: g, creationTimestamp: noon}]",
            "podgroups[0].creationTimestamp: must be a time",
            id="time",
        ),
        pytest.param("probe: [open session]", "probe: asks the scheduler's insides", id="probe"),
        pytest.param(
            "testPlugins: [{name: x}]",
            "testPlugins: needs a plugin that exists only in a test",
            id="test plugins",
        ),
        pytest.param(
            "conf: {actions: [nap], tiers: []}",
            "conf.actions[0]: “nap” is not an action",
            id="policy",
        ),
        pytest.param(
            "steps: [{actions: [nap]}]", "steps[0].actions: “nap” is not an action", id="step"
        ),
        pytest.param(
            "pods: [{name: p, podgroup: g, tolerations: [{operator: Maybe}]}]",
            "pods[0].tolerations[0].operator: must be one of",
            id="toleration",
        ),
        pytest.param("[]", "there is no scenario in it", id="empty list"),
        pytest.param("just text", "must be a mapping", id="text"),
        pytest.param("a: b: c", "this is not YAML", id="broken"),
    ],
)
def test_what_can_not_be_used_is_refused_with_file_and_place(text, expected):
    assert complaint(text).startswith("test.yaml: ")
    assert expected in complaint(text)


def test_a_file_that_is_not_there_is_told_so(tmp_path):
    with pytest.raises(ScenarioError, match="cannot be read: No such file or directory"):
        read_file(str(tmp_path / "none.yaml"), lambda: "")


def test_what_has_no_effect_is_warned_about():
    scenario = only("podgroups: [{name: g}]\npods: [{name: p, podgroup: lost}]")

    assert scenario.warnings == (
        "pod default/p belongs to the podgroup default/lost, which is not there; it is left out",
    )


def everything() -> Snapshot:
    """One of each thing that a snapshot can hold."""
    others = PodSelector((Requirement("app", "In", ("db",)), Requirement("old", "DoesNotExist")))
    nobody = PodSelector((Requirement("", "In"),), everywhere=True)
    rules = PodRules(
        affinity=(PodTerm(others, "zone"), PodTerm(nobody, "zone")),
        anti_affinity=(PodTerm(PodSelector((), ("ns", "other")), "host"),),
        spread=(Spread(others, "zone", 2, 3, any_node=True), Spread(others, "host", 1)),
    )
    foreign = ForeignPods("kube-system", (("app", "db"),), 3, rules.anti_affinity)
    where = Constraint(
        node_selector=(("zone", "a"),),
        required=(
            NodeTerm(
                (Requirement("gpu", "In", ("a100", "h100")), Requirement("old", "DoesNotExist"))
            ),
            NodeTerm((), (Requirement("metadata.name", "In", ("n1",)),)),
        ),
        preferred=(PreferredTerm(7, NodeTerm((Requirement("cores", "Gt", ("8",)),))),),
        tolerations=(
            Toleration("dedicated", "Equal", "ml", "NoSchedule"),
            Toleration(operator="Exists"),
        ),
        rules=rules,
        unsupported=("hostPort",),
    )
    return Snapshot.build(
        nodes=[
            Node(
                "n1",
                Resources({"cpu": 4000, "memory": 2**33, "pods": 10, "nvidia.com/gpu": 8000}),
                {"zone": "a"},
                (Taint("dedicated", "ml"), Taint("old", "", "NoExecute")),
            ),
            Node("n2", Resources({"cpu": 1500}), unschedulable=True, foreign=(foreign,)),
            Node("n3", ready=False),
        ],
        queues=[
            Queue(
                QueueSpec(
                    "a",
                    weight=3,
                    capability=Resources({"cpu": 0}),
                    guarantee=Resources({"memory": 7}),
                    reclaimable=False,
                    state=QueueState.CLOSING,
                ),
                QueueState.CLOSING,
                "a",
            ),
            Queue(
                QueueSpec("a1", parent="a", deserved=Resources({"cpu": 1}), priority=5, type="x"),
                QueueState.OPEN,
                "",
                4.5,
            ),
            Queue(QueueSpec("root", parent="")),
        ],
        podgroups=[
            PodGroup(
                "g",
                "a1",
                "ns",
                2,
                {"worker": 1},
                Resources({"cpu": 10}),
                Phase.INQUEUE,
                9,
                12.5,
                3,
                0.25,
                "held by an admin",
                "no quota",
            ),
            PodGroup("h", "nowhere", "ns", min_resources=Resources()),
        ],
        pods=[
            Pod(
                "p0",
                "ns/g",
                "ns",
                Resources({"cpu": 1}),
                "n1",
                PodStatus.RELEASING,
                4,
                "worker",
                where,
                False,
                False,
                True,
                1.1,
                True,
                "n2",
                8,
            ),
            Pod("p1", "ns/g", "ns", Resources({"cpu": 0}), "gone", PodStatus.RUNNING),
            Pod("p2", "ns/g", "ns", status=PodStatus.BINDING, node="n1", labels={"app": "db"}),
        ],
        taken_at=1e9 + 0.1,
        session=17,
        paused=True,
    )


def test_everything_written_reads_back_the_same():
    snapshot = everything()
    snapshot.groups.said[:] = [-(2**62), 0]
    policy = Policy(
        ("reclaim",),
        ((PluginConfig("gang", {Flag.JOB_READY: False}),),),
        {"shed": {"graceSessions": 1}},
        unlisted_flags=False,
    )

    again = only(json.dumps(scenario_document(snapshot, policy, "all")))

    assert again.policy == policy
    assert cluster_of(again.cluster.snapshot()) == cluster_of(snapshot)
    assert scenario_document(again.cluster.snapshot(), again.policy, "all") == scenario_document(
        snapshot, policy, "all"
    )
