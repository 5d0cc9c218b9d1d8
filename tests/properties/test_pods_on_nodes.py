"""Requests and constraints of pods, as they come from the API server, against an oracle.

From the JSON of a pod through the reader, the class and the constraint to the mask of nodes.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scheduler.clusters.kubernetes.read.cluster_objects import read_node
from scheduler.clusters.kubernetes.read.pods import read_pod
from scheduler.clusters.kubernetes.read.volumes import read_claim, read_volume
from scheduler.clusters.kubernetes.resources import CLAIMS, VOLUMES
from scheduler.clusters.kubernetes.watch_events import Changed
from scheduler.domain.nodes import Node, NodeTable
from scheduler.domain.resources import Resources
from scheduler.engine.state.constraints import suitable_nodes
from scheduler.selectors.sessions.snapshot_rows import constraint_of
from scheduler.services.cluster.mirror.classes import class_of
from scheduler.services.cluster.mirror.pod_rules import RuleWatch
from scheduler.services.cluster.mirror.store import Store
from tests.oracles import pod_on_node

KEYS = ("zone", "disk", "size")
VALUES = ("a", "b", "5", "10", "007")
RESOURCES = ("cpu", "memory", "nvidia.com/gpu", "hugepages-2Mi", "ephemeral-storage")
WHOLE_POD = ("cpu", "memory", "hugepages-2Mi")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

keys = st.sampled_from(KEYS)
label_values = st.sampled_from(VALUES)
amounts = st.integers(0, 9).map(str)
quantities = st.dictionaries(st.sampled_from(RESOURCES), amounts, max_size=3)
whole_pod = st.dictionaries(st.sampled_from(WHOLE_POD), amounts, min_size=1, max_size=2)


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


# Pods


def containers(prefix: str, *, least: int, may_stay: bool) -> st.SearchStrategy[list[Any]]:
    fields: dict[str, Any] = {"resources": optional(requests=quantities)}
    rest: dict[str, Any] = {}
    if may_stay:
        rest["restartPolicy"] = st.just("Always")
    one = st.fixed_dictionaries(fields, optional=rest)
    return st.lists(one, min_size=least, max_size=3).map(
        lambda found: [
            {"name": f"{prefix}{number}", "image": "i", **each} for number, each in enumerate(found)
        ]
    )


def expressions(allowed_keys: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    lists = st.lists(label_values, min_size=1, max_size=2)
    one = st.lists(st.sampled_from(("3", "5", "7")), min_size=1, max_size=1)
    return st.one_of(
        st.fixed_dictionaries(
            {"key": allowed_keys, "operator": st.sampled_from(("In", "NotIn")), "values": lists}
        ),
        st.fixed_dictionaries(
            {"key": allowed_keys, "operator": st.sampled_from(("Exists", "DoesNotExist"))}
        ),
        st.fixed_dictionaries(
            {"key": allowed_keys, "operator": st.sampled_from(("Gt", "Lt")), "values": one}
        ),
    )


names = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(("In", "NotIn")),
        "values": st.lists(st.sampled_from(("n1", "n2")), min_size=1, max_size=1),
    }
)
terms = st.lists(
    optional(
        matchExpressions=st.lists(expressions(keys), max_size=2),
        matchFields=st.lists(names, max_size=1),
    ),
    min_size=1,
    max_size=3,
)
selectors = st.fixed_dictionaries({"nodeSelectorTerms": terms})
tolerations = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"operator": st.just("Exists")},
            optional={"key": keys, "effect": st.sampled_from(EFFECTS)},
        ),
        st.fixed_dictionaries(
            {"key": keys},
            optional={
                "operator": st.just("Equal"),
                "value": label_values,
                "effect": st.sampled_from(EFFECTS),
            },
        ),
        st.fixed_dictionaries(
            {
                "key": keys,
                "operator": st.sampled_from(("Gt", "Lt")),
                "value": st.sampled_from(("3", "5", "7")),
            }
        ),
        st.just(
            {
                "key": "node.kubernetes.io/unschedulable",
                "operator": "Exists",
                "effect": "NoSchedule",
            }
        ),
    ),
    max_size=3,
)


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": draw(containers("c", least=1, may_stay=False)),
        "initContainers": draw(containers("i", least=0, may_stay=True)),
        "tolerations": draw(tolerations),
        "nodeSelector": draw(st.dictionaries(keys, label_values, max_size=1)),
    }
    if draw(st.booleans()):
        spec["affinity"] = {"nodeAffinity": {REQUIRED: draw(selectors)}}
    if draw(st.booleans()):
        spec["resources"] = {"requests": draw(whole_pod)}
    if draw(st.booleans()):
        spec["overhead"] = draw(quantities)
    status: dict[str, Any] = {"phase": "Pending"}
    if draw(st.booleans()):
        spec["nodeName"] = "n1"
        status = draw(statuses(spec))
    metadata = {"name": "p", "namespace": "default", "uid": "u1"}
    return {"metadata": metadata, "spec": spec, "status": status}


@st.composite
def statuses(draw: st.DrawFn, spec: dict[str, Any]) -> dict[str, Any]:
    """Of a pod that runs, and may be resized."""
    status: dict[str, Any] = {"phase": "Running", "conditions": []}
    for kind, key in (
        ("containers", "containerStatuses"),
        ("initContainers", "initContainerStatuses"),
    ):
        status[key] = []
        for container in spec[kind]:
            told = draw(_granted)
            status[key].append({"name": container["name"], **told})
    status |= draw(_granted)
    if draw(st.booleans()):
        reason = draw(st.sampled_from(("Infeasible", "Deferred")))
        status["conditions"].append(
            {"type": "PodResizePending", "status": "True", "reason": reason}
        )
    return status


_granted = optional(resources=optional(requests=quantities), allocatedResources=quantities)


# Nodes and volumes

taints = st.lists(
    st.fixed_dictionaries(
        {"key": keys, "effect": st.sampled_from(EFFECTS)}, optional={"value": label_values}
    ),
    max_size=2,
)


@st.composite
def nodes(draw: st.DrawFn) -> list[dict[str, Any]]:
    found = []
    for name in ("n1", "n2", "n3"):
        spec: dict[str, Any] = {"taints": draw(taints)}
        if draw(st.booleans()):
            spec["unschedulable"] = True
        labels = draw(st.dictionaries(keys, label_values, max_size=3))
        found.append({"metadata": {"name": name, "uid": name, "labels": labels}, "spec": spec})
    return found


volumes = st.lists(
    st.fixed_dictionaries(
        {"spec": optional(nodeAffinity=st.fixed_dictionaries({"required": selectors}))}
    ),
    max_size=2,
)


# The tests


@given(pods())
def test_a_pod_takes_what_the_oracle_says(pod):
    found = read_pod(pod).requests

    expected = {name: str(amount) for name, amount in pod_on_node.requests_of(pod).items()}
    assert without_nothing(found) == without_nothing(Resources.parse(expected))


def without_nothing(amounts: Resources) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if amount}


@given(pods(), nodes(), volumes)
def test_a_pod_may_run_where_the_oracle_says(pod, cluster, mounted):
    expected = [pod_on_node.may_run(pod, node, mounted) for node in cluster]

    assert mask_of(pod, cluster, mounted) == expected


def mask_of(
    pod: dict[str, Any], cluster: list[dict[str, Any]], mounted: list[dict[str, Any]]
) -> list[bool]:
    store = Store()
    for number, volume in enumerate(mounted):
        put_volume(store, f"v{number}", volume)
    spec = {**pod["spec"], "volumes": [claim_of(f"v{number}") for number in range(len(mounted))]}
    row = class_of(read_pod({**pod, "spec": spec}), RuleWatch(()), store)
    constraint = constraint_of(row.node_selector, row.affinity, row.tolerations, row.spread)
    table = NodeTable.build([engine_node(raw) for raw in cluster], ["cpu"])
    return [bool(each) for each in suitable_nodes(constraint, table)]


def claim_of(name: str) -> dict[str, Any]:
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}


def put_volume(store: Store, name: str, volume: dict[str, Any]) -> None:
    raw_volume = {"metadata": {"name": name, "uid": f"pv-{name}"}, **volume}
    raw_claim = {
        "metadata": {"name": name, "namespace": "default", "uid": f"pvc-{name}"},
        "spec": {"volumeName": name},
        "status": {"phase": "Bound"},
    }
    store.take(Changed(VOLUMES, "1", read_volume(raw_volume)))
    store.take(Changed(CLAIMS, "1", read_claim(raw_claim)))


def engine_node(raw: dict[str, Any]) -> Node:
    node = read_node(raw)
    return Node(
        node.meta.name,
        node.allocatable,
        labels=node.meta.labels,
        taints=node.taints,
        unschedulable=node.unschedulable,
    )
