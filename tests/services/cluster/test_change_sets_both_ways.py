"""Change sets on a real API server, where each queue is written by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler.admission.violations import Rejected
from scheduler.domain.change_sets import Crossed
from scheduler.models import ChangeSet, Queue
from scheduler.services.change_sets.apply import apply_change_set
from scheduler.services.change_sets.drafts import bring_up_to_date, create_change_set, revert
from tests.control_plane import objects
from tests.control_plane.objects import wait_until
from tests.services.change_sets.builders import edit, gone
from tests.services.cluster.test_queues_both_ways import (
    ADMIN,
    KIND,
    names,
    stored,
    wait_for,
    watching,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kubernetes]

NO_WEIGHT_13 = [
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-weight-13"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["scheduling.volcano.sh"],
                        "apiVersions": ["*"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": ["queues"],
                    }
                ]
            },
            "validations": [
                {"expression": "object.spec.weight != 13", "message": "13 brings bad luck"}
            ],
        },
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-weight-13"},
        "spec": {"policyName": "no-weight-13", "validationActions": ["Deny"]},
    },
]


def made(plane: Any, *queues: dict[str, Any]) -> None:
    for each in queues:
        plane.kubectl("apply", "-f", "-", given=json.dumps(each))


def specs(plane: Any) -> dict[str, Any]:
    """What kubectl shows of every queue, as far as people wrote it."""
    listed = json.loads(plane.kubectl("get", KIND, "-o", "json"))
    found = {}
    for queue in listed["items"]:
        spec = {name: value for name, value in queue["spec"].items() if value not in ({}, "")}
        found[queue["metadata"]["name"]] = spec
    return found


def test_a_set_is_applied_and_reverted(extended_control_plane):
    plane = extended_control_plane
    made(
        plane,
        objects.queue("research", weight=2, parent="root"),
        objects.queue("vision", weight=1, parent="research"),
        objects.queue("old", weight=3, parent="root"),
    )
    with watching(plane):
        wait_for("vision", weight=1)
        before = specs(plane)
        documents = [
            edit("fresh", parent="research", weight=4),
            edit("vision", parent="root", weight=7),
            edit("research", state="Suspended"),
            gone("Queue", "old"),
        ]
        change_set = create_change_set("all at once", documents, by=ADMIN)

        apply_change_set(change_set.pk, by=ADMIN)

        after = specs(plane)
        assert "old" not in after
        assert (after["fresh"]["parent"], after["fresh"]["weight"]) == ("research", 4)
        assert (after["vision"].get("parent", "root"), after["vision"]["weight"]) == ("root", 7)
        assert after["research"]["state"] == "Suspended"
        wait_for("research", state="Suspended")
        wait_until(lambda: not Queue.objects.filter(name="old").exists(), "the end of old")

        wait_for("fresh", weight=4)
        back = revert(change_set.pk, by=ADMIN)
        apply_change_set(back.pk, by=ADMIN)

        wait_until(lambda: names(plane) == set(before), "the queues of before")
        assert wishes(specs(plane)) == wishes(before)


def wishes(found: dict[str, Any]) -> dict[str, Any]:
    """What is left out is as usual: Open, below the root."""
    found_wishes = {}
    for name, spec in found.items():
        found_wishes[name] = (spec["weight"], spec.get("parent", "root"), spec.get("state", "Open"))
    return found_wishes


def test_what_the_server_refuses_in_the_middle_is_what_is_left(extended_control_plane):
    plane = extended_control_plane
    made(plane, *(objects.queue(name, weight=1, parent="root") for name in ("a", "b", "c")))
    made(plane, *NO_WEIGHT_13)
    with watching(plane):
        wait_for("c", weight=1)
        wait_until(lambda: is_refused(plane), "the policy to be in force")
        documents = [edit("a", weight=5), edit("b", weight=13), edit("c", weight=6)]
        change_set = create_change_set("one too many", documents, by=ADMIN)

        with pytest.raises(Rejected) as refused:
            apply_change_set(change_set.pk, by=ADMIN)

        assert "bad luck" in str(refused.value)
        assert {violation.queue for violation in refused.value.violations} == {"b"}
        assert [specs(plane)[name]["weight"] for name in "abc"] == [5, 1, 6]
        assert ChangeSet.objects.get(pk=change_set.pk).state == "Draft"
        wait_for("c", weight=6)
        wait_for("a", weight=5)
        left = bring_up_to_date(change_set.pk, by=ADMIN)
        assert [item.name for item in left.changes] == ["b"]


def is_refused(plane: Any) -> bool:
    try:
        plane.kubectl(
            "patch", KIND, "b", "--type=merge", "--dry-run=server", "-p", '{"spec":{"weight":13}}'
        )
    except Exception:
        return True
    return False


def test_what_kubectl_changed_meanwhile_stops_the_whole_set(extended_control_plane):
    plane = extended_control_plane
    made(plane, *(objects.queue(name, weight=1, parent="root") for name in ("a", "b")))
    with watching(plane):
        wait_for("b", weight=1)
        change_set = create_change_set("mine", [edit("a", weight=5), edit("b", weight=6)])
        plane.kubectl("patch", KIND, "b", "--type=merge", "-p", '{"spec":{"weight":9}}')
        wait_for("b", weight=9)

        with pytest.raises(Crossed, match="weight from 1 to 9"):
            apply_change_set(change_set.pk, by=ADMIN)

        assert stored(plane, "a")["spec"]["weight"] == 1
        apply_change_set(bring_up_to_date(change_set.pk).pk, by=ADMIN)
        assert [specs(plane)[name]["weight"] for name in "ab"] == [5, 6]
