"""A field that nobody knows is pointed out with its place, in every kind of object, at every level,
through every door; nothing is swallowed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.dashboard.api.conftest import Caller, job, queue

pytestmark = pytest.mark.django_db

JUNK = "junkField"
_CONTAINER = {
    "name": "main",
    "image": "busybox",
    "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
}
_POD = {
    "containers": [_CONTAINER],
    "initContainers": [_CONTAINER],
    "nodeSelector": {"zone": "a"},
    "affinity": {"nodeAffinity": {}},
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
}
_TASK = {
    "name": "worker",
    "replicas": 1,
    "policies": [{"event": "PodFailed", "action": "RestartJob"}],
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": _POD},
}
_FIRST = {"name": "first", "replicas": 1, "template": {"spec": {"containers": [_CONTAINER]}}}
_TOPOLOGY = {"mode": "soft", "highestTierAllowed": 1}
MANIFESTS: dict[str, dict[str, Any]] = {
    "queues": {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "fresh", "labels": {"a": "b"}, "annotations": {"a": "b"}},
        "spec": {
            "parent": "root",
            "guarantee": {"resource": {"cpu": "1"}},
            "deserved": {"cpu": "2"},
        },
        "status": {"state": "Open"},
    },
    "jobs": {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "fresh", "namespace": "default"},
        "spec": {
            "queue": "leaf",
            "policies": [{"event": "PodFailed", "action": "RestartJob"}],
            "networkTopology": _TOPOLOGY,
            "tasks": [{**_TASK, "dependsOn": {"name": ["first"]}}, _FIRST],
        },
        "status": {"state": {"phase": "Pending"}},
    },
    "podgroups": {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "fresh", "namespace": "default"},
        "spec": {
            "queue": "leaf",
            "minMember": 1,
            "minResources": {"cpu": "1"},
            "networkTopology": _TOPOLOGY,
            "subGroupPolicy": [{"name": "a", "subGroupSize": 1, "networkTopology": _TOPOLOGY}],
        },
        "status": {"phase": "Pending"},
    },
    "pods": {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "fresh",
            "namespace": "default",
            "annotations": {"scheduling.volcano.sh/queue-name": "leaf"},
        },
        "spec": {"schedulerName": "volcano", **_POD},
        "status": {"phase": "Pending"},
    },
    "nodes": {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "fresh"},
        "spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "1"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    },
    "namespaces": {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "fresh"},
        "spec": {},
        "status": {"phase": "Active"},
    },
    "priorityclasses": {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "fresh"},
        "spec": {"value": 5},
        "status": {},
    },
    "commands": {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": "fresh"},
        "action": "SuspendQueue",
        "target": {"kind": "Queue", "name": "leaf"},
        "spec": {},
        "status": {},
    },
}
# Names in these are free: labels, resources, a task's name, what only a cluster reads, what other
# servers report.
_FREE = (
    "labels",
    "annotations",
    "nodeSelector",
    "nodeAffinity",
    "requests",
    "limits",
    "capability",
    "deserved",
    "resource",
    "allocatable",
    "minResources",
    "state",
)


def levels(value: Any, path: str = "") -> Iterator[str]:
    """Every place where an object has fields of its own."""
    if isinstance(value, dict):
        yield path
        for key, inner in value.items():
            if key not in _FREE:
                yield from levels(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from levels(inner, f"{path}[{index}]")


def with_junk(manifest: dict[str, Any], path: str) -> dict[str, Any]:
    whole = copy.deepcopy(manifest)
    here: Any = whole
    for step in path.replace("[", ".[").split(".") if path else ():
        here = here[int(step[1:-1])] if step.startswith("[") else here[step]
    here[JUNK] = 1
    return whole


PLACES = [(kind, path) for kind, manifest in MANIFESTS.items() for path in levels(manifest)]


@pytest.fixture(autouse=True)
def tree(admin: Caller) -> None:
    admin.post("queues/", [queue("team"), queue("leaf", "team")])


def names(answer: Any, path: str) -> bool:
    place = f"{path}.{JUNK}" if path else JUNK
    return any(warning["message"].startswith(f"{place} is not ") for warning in answer["warnings"])


@pytest.mark.parametrize(("kind", "path"), PLACES)
def test_it_is_named_whichever_way_it_came(admin: Caller, kind: str, path: str):
    manifest = with_junk(MANIFESTS[kind], path)

    said = {
        "collection": names(admin.post(f"{kind}/?dry_run=true", manifest, expect=200), path),
        "apply": names(admin.post("apply/?dry_run=true", manifest, expect=200)["results"][0], path),
        "validate": names(admin.post("validate/", manifest, expect=200)["results"][0], path),
    }

    assert said == {"collection": True, "apply": True, "validate": True}


def _first_result(answer: Any) -> Any:
    """A problem has its warnings at the top: most of a job cannot be changed, and is refused as a
    whole.
    """
    return answer["results"][0] if "results" in answer else answer


@pytest.mark.parametrize(
    ("kind", "path"), [place for place in PLACES if place[0] not in ("pods", "commands")]
)
def test_it_is_named_when_the_object_is_changed(admin: Caller, kind: str, path: str):
    manifest = MANIFESTS[kind]
    admin.post(f"{kind}/", manifest, expect=201)
    where = "default/fresh" if "namespace" in manifest["metadata"] else "fresh"
    changed = with_junk(manifest, path)

    said = {
        "put": names(admin.ask("PUT", f"{kind}/{where}/?dry_run=true", changed), path),
        "patch": names(admin.ask("PATCH", f"{kind}/{where}/?dry_run=true", changed), path),
        "apply": names(_first_result(admin.ask("POST", "apply/?dry_run=true", changed)), path),
    }

    assert said == {"put": True, "patch": True, "apply": True}


@pytest.mark.parametrize("kind", [kind for kind in MANIFESTS if kind != "commands"])
def test_what_was_read_can_be_sent_back_without_a_warning(admin: Caller, kind: str):
    manifest = MANIFESTS[kind]
    made = admin.post(f"{kind}/", manifest, expect=201)
    assert [warning for warning in made["warnings"] if warning["code"] == "unknown_field"] == []
    where = "default/fresh" if "namespace" in manifest["metadata"] else "fresh"

    again = admin.post("apply/", admin.get(f"{kind}/{where}/"), expect=200)["results"][0]

    assert [
        warning["field"] for warning in again["warnings"] if warning["code"] == "unknown_field"
    ] == []


def test_what_a_node_has_is_not_looked_for_in_its_spec(admin: Caller):
    made = admin.post(
        "nodes/",
        {"metadata": {"name": "n"}, "spec": {"allocatable": {"cpu": "4"}}},
        expect=201,
    )

    assert made["warnings"][0]["field"] == "spec.allocatable"
    assert made["warnings"][0]["message"].endswith("did you mean status.allocatable?")


def test_fields_that_are_known_but_not_used_are_named_too(admin: Caller):
    made = job("fresh", "leaf", runningEstimate="1h")
    made["spec"]["tasks"][0] |= {"topologyPolicy": "none", "partitionPolicy": {}}

    warned = admin.post("jobs/", made, expect=201)["warnings"]

    assert {warning["field"] for warning in warned if warning["code"] == "unused_field"} == {
        "spec.runningEstimate",
        "spec.tasks[0].topologyPolicy",
        "spec.tasks[0].partitionPolicy",
    }
