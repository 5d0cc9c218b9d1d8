"""Whatever file is accepted, the same file again changes nothing: for every kind, whatever it
leaves out, adds or spells differently.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from scheduler.models import AuditEntry
from tests.dashboard.api.conftest import Caller, queue
from tests.dashboard.api.manifest_strategies import (
    AMOUNTS,
    CPU,
    GPU,
    KINDS,
    MEMORY,
    TEXTS,
    manifests,
    of,
)

pytestmark = pytest.mark.django_db

_QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much]


@pytest.fixture(autouse=True)
def surroundings(admin: Caller) -> None:
    admin.post("queues/", [queue("team"), queue("leaf", "team")])
    admin.post(
        "priorityclasses/",
        {"metadata": {"name": "high"}, "spec": {"value": 10}},
        expect=201,
    )
    lab = {"metadata": {"name": "lab", "annotations": {"scheduling.volcano.sh/queue-name": "leaf"}}}
    admin.post("namespaces/", lab, expect=201)


def assert_nothing_changes(admin: Caller, manifest: Any, of_what: Any) -> None:
    entries = AuditEntry.objects.count()
    answer = admin.ask("POST", "apply/", manifest)
    assert admin.last.status_code == 200, (json.dumps(of_what), json.dumps(manifest), answer)
    assert [(item["operation"], item["diff"]) for item in answer["results"]] == [
        ("unchanged", [])
    ], json.dumps(of_what)
    assert AuditEntry.objects.count() == entries, json.dumps(of_what)


def address_of(manifest: dict[str, Any]) -> str:
    kind = {"PriorityClass": "priorityclasse"}.get(manifest["kind"], manifest["kind"].lower())
    namespaced = KINDS[manifest["kind"]][1]
    return (
        f"{kind}s/"
        + (f"{manifest['metadata'].get('namespace') or 'default'}/" if namespaced else "")
        + "fresh/"
    )


def respelled(value: Any) -> Any:
    """Every amount in it written otherwise."""
    for spellings in (CPU, MEMORY, GPU):
        if (
            not isinstance(value, (dict, list))
            and value in spellings[1:]
            and not isinstance(value, (bool, int))
        ):
            return spellings[0]
    if isinstance(value, dict):
        return {key: respelled(inner) for key, inner in value.items()}
    return [respelled(inner) for inner in value] if isinstance(value, list) else value


def applied_twice(admin: Caller, manifest: dict[str, Any]) -> None:
    made = admin.ask("POST", "apply/", manifest)
    if admin.last.status_code != 200:
        return
    assert made["results"][0]["operation"] == "created"
    assert_nothing_changes(admin, manifest, manifest)
    assert_nothing_changes(admin, respelled(copy.deepcopy(manifest)), manifest)
    read = admin.get(address_of(manifest))
    assert_nothing_changes(admin, read, manifest)
    if manifest["kind"] != "Pod":
        assert admin.put(address_of(manifest), read)["changed"] is False
        is_unknown = (
            read["status"].get("state") == "Unknown"
        )  # which a wish alone, without that status, ends
        assert admin.patch(address_of(manifest), {"spec": read["spec"]})["changed"] is is_unknown


def twice(admin: Caller, kind: str, examples: int) -> None:
    accepted = []

    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=_QUIET,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
    )
    @given(manifest=manifests(kind))
    def check(manifest: dict[str, Any]) -> None:
        with transaction.atomic():
            applied_twice(admin, manifest)
            accepted.append(admin.last.status_code == 200)
            transaction.set_rollback(True)

    check()
    assert sum(accepted) > len(accepted) / 4, "hardly any of them was accepted"


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_file_again_changes_nothing(admin: Caller, kind: str):
    twice(admin, kind, examples=25)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_many_files_again_change_nothing(admin: Caller, kind: str):
    twice(admin, kind, examples=1500)


# The other half: what is changed does change.

_CHANGES: dict[str, list[tuple[str, Any]]] = {
    "Queue": [
        ("spec.weight", 9),
        ("spec.capability", {"cpu": "90"}),
        ("spec.deserved", {"cpu": "80"}),
        ("spec.guarantee", {"resource": {"cpu": "3"}}),
        ("spec.reclaimable", False),
        ("spec.parent", "team"),
        ("spec.priority", 4),
        ("spec.dequeueStrategy", "fifo"),
        ("spec.state", "Suspended"),
        ("spec.type", "x"),
        ("metadata.labels", {"a": "b"}),
        ("metadata.annotations", {"a": "b"}),
    ],
    "Job": [
        ("spec.minAvailable", 1),
        ("spec.priorityClassName", "high"),
        ("metadata.labels", {"a": "b"}),
    ],
    "PodGroup": [
        ("spec.minMember", 7),
        ("spec.minResources", {"cpu": "7"}),
        ("spec.priorityClassName", "high"),
        ("spec.minTaskMember", {"a": 3}),
    ],
    "Node": [
        ("spec.unschedulable", True),
        ("status.allocatable", {"cpu": "7"}),
        ("metadata.labels", {"a": "b"}),
    ],
    "Namespace": [("metadata.annotations", {"a": "b"})],
    "PriorityClass": [
        ("spec.value", 7),
        ("spec.globalDefault", True),
        ("spec.preemptionPolicy", "Never"),
        ("spec.description", "x"),
        ("value", 7),
        ("description", "y"),
    ],
}
_TASKS = [
    {
        "name": "t",
        "replicas": 2,
        "template": {"spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}},
    }
]
_PLAIN: dict[str, dict[str, Any]] = {
    "Job": {"spec": {"tasks": _TASKS}},
    "PriorityClass": {"value": 1},
}


def plain(kind: str) -> dict[str, Any]:
    return {
        "apiVersion": KINDS[kind][0],
        "kind": kind,
        "metadata": {"name": "fresh"},
        **copy.deepcopy(_PLAIN.get(kind, {})),
    }


def with_field(manifest: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(manifest)
    *outer, last = path.split(".")
    here = changed
    for part in outer:
        here = here.setdefault(part, {})
    here[last] = value
    return changed


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [(kind, *change) for kind, changes in _CHANGES.items() for change in changes],
)
@pytest.mark.parametrize("way", ["apply", "patch"])
def test_a_field_that_is_changed_is_changed_whichever_way(
    admin: Caller,
    way: str,
    kind: str,
    path: str,
    value: Any,
):
    admin.post("apply/", plain(kind))
    stored_at = path if "." in path else f"spec.{path}"
    changed = with_field(plain(kind), path, value)

    if way == "apply":
        assert admin.post("apply/", changed)["results"][0]["operation"] == "updated"
    else:
        assert admin.patch(address_of(changed), with_field({}, path, value))["changed"] is True

    found = admin.get(address_of(changed))
    for part in stored_at.split("."):
        found = found[part]
    assert found == value
    assert_nothing_changes(admin, changed, changed)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("spec.queue", "leaf"),
        ("spec.maxRetry", 9),
        ("spec.plugins", {"svc": []}),
        ("spec.tasks", [{**_TASKS[0], "name": "other"}]),
        (
            "spec.tasks",
            [
                {
                    **_TASKS[0],
                    "template": {
                        "spec": {"containers": [{"resources": {"requests": {"cpu": "1001m"}}}]}
                    },
                }
            ],
        ),
    ],
)
def test_what_a_job_may_not_change_is_refused_in_a_file_too(admin: Caller, field: str, value: Any):
    admin.post("apply/", plain("Job"))

    refused = admin.post("apply/", with_field(plain("Job"), field, value), expect=400)

    assert refused["violations"][0]["ruleId"] == "immutable_field_changed"


def test_work_that_its_namespace_sent_elsewhere_stays_there(admin: Caller):
    for kind in ("Job", "PodGroup"):
        manifest = with_field(
            with_field(plain(kind), "metadata.namespace", "lab"), "spec.queue", "default"
        )
        manifest["metadata"]["name"] = f"fresh-{kind.lower()}"
        admin.post("apply/", manifest)

        again = admin.post("apply/", manifest)["results"][0]

        assert (
            again["operation"],
            admin.get(f"{kind.lower()}s/lab/fresh-{kind.lower()}/")["spec"]["queue"],
        ) == ("unchanged", "leaf")


def test_a_file_that_says_two_things_of_one_object_is_refused(admin: Caller):
    one = plain("Queue")
    other = with_field(plain("Queue"), "spec.weight", 3)

    refused = admin.post("apply/", [one, other], expect=400)
    assert (refused["violations"][0]["ruleId"], refused["violations"][0]["field"]) == (
        "named_twice",
        "[1].metadata.name",
    )
    assert [item["operation"] for item in admin.post("apply/", [one, one])["results"]] == [
        "created",
        "unchanged",
    ]


def test_a_pod_in_a_file_has_a_name(admin: Caller):
    nameless = {"kind": "Pod", "metadata": {"generateName": "web-"}, "spec": {}}

    assert admin.post("apply/", nameless, expect=400)["violations"][0]["ruleId"] == "name_required"


TREES = st.lists(
    st.tuples(
        st.integers(0, 9),
        of("Open", "Closed", "Suspended"),
        of(1, 5),
        AMOUNTS,
        TEXTS.map(lambda labels: labels or {}),
    ),
    max_size=8,
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=_QUIET,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
)
@given(rows=TREES)
def test_an_exported_tree_is_applied_with_no_change_and_makes_the_same_tree_elsewhere(
    admin: Caller, rows: Any
):
    """Whatever states its queues are in, and however they inherit them."""
    with transaction.atomic():
        names = ["team"]
        for number, (parent, state, weight, amounts, labels) in enumerate(rows):
            spec = {
                "parent": names[parent % len(names)],
                "state": state,
                "weight": weight,
                "capability": amounts,
            }
            admin.ask(
                "POST",
                "queues/",
                {"metadata": {"name": f"q{number}", "labels": labels}, "spec": spec},
            )
            names += [f"q{number}"] if admin.last.status_code == 201 else []
        exported = admin.ask("GET", "queues/root/export/", Accept="application/yaml", expect=200)
        again = admin.post("apply/", exported)
        transaction.set_rollback(True)
    assert again["changed"] is False, again

    with transaction.atomic():
        admin.post("apply/", exported)
        assert (
            admin.ask("GET", "queues/root/export/", Accept="application/yaml", expect=200)
            == exported
        )
        transaction.set_rollback(True)


def test_a_queue_that_came_as_unknown_stays_so_until_its_state_is_named(admin: Caller):
    manifest = {**plain("Queue"), "status": {"state": "Unknown"}}
    admin.post("apply/", manifest)
    assert_nothing_changes(admin, plain("Queue"), manifest)
    exported = admin.ask("GET", "queues/fresh/export/", Accept="application/yaml", expect=200)[0]
    assert_nothing_changes(admin, exported, manifest)
    assert admin.get("queues/fresh/")["status"]["state"] == "Unknown"

    admin.post("apply/", with_field(plain("Queue"), "spec.state", "Open"))

    assert admin.get("queues/fresh/")["status"]["state"] == "Open"
