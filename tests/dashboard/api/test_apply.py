"""Files of many objects: applied as a whole or not at all, compared, pruned, and checked
beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.models import AuditEntry, Queue
from tests.dashboard.api.conftest import Caller, job, node, queue

pytestmark = pytest.mark.django_db

FILE = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: child, labels: {team: a}}
spec: {parent: parent, deserved: {cpu: 2}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: parent, labels: {team: a}}
spec: {deserved: {cpu: 4}, weigth: 3}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: v1
kind: Namespace
metadata: {name: lab}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 8, memory: 16Gi, pods: 110}}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: lab}
spec:
  queue: child
  priorityClassName: high
  tasks:
  - name: worker
    replicas: 2
    template: {spec: {containers: [{name: main, resources: {requests: {cpu: 500m}}}]}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: own, namespace: lab}
spec: {queue: child, minMember: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: single, namespace: lab, annotations: {scheduling.k8s.io/group-name: own}}
spec: {containers: [{name: main, resources: {requests: {cpu: 1}}}]}
---
apiVersion: bus.volcano.sh/v1alpha1
kind: Command
action: SuspendQueue
target: {kind: Queue, name: parent}
"""


def operations(answer: dict[str, Any]) -> dict[str, str]:
    return {item["name"]: item["operation"] for item in answer["results"]}


def test_a_file_of_every_kind_is_applied_and_again_without_a_change(admin: Caller):
    first = admin.apply(FILE)
    assert set(operations(first).values()) == {"created", "executed"}
    assert len(first["results"]) == 9
    unknown = next(item for item in first["results"] if item["name"] == "parent")["warnings"]
    assert (unknown[0]["code"], "weight" in unknown[0]["message"]) == ("unknown_field", True)
    assert admin.get("queues/child/")["status"]["suspendedBy"] == "parent"
    assert admin.get("podgroups/lab/train/")["status"]["priority"] == 1000

    again = admin.apply(FILE)
    assert again["changed"] is False
    assert set(operations(again).values()) == {"unchanged"}


def test_a_dry_run_shows_the_differences_and_writes_nothing(admin: Caller):
    admin.post(
        "queues/",
        queue("a", capability={"cpu": "4", "memory": "8Gi"}, weight=2),
        expect=201,
    )
    entries = AuditEntry.objects.count()

    shown = admin.apply(
        "kind: Queue\nmetadata: {name: a}\nspec: {capability: {cpu: 6}}\n", "?dry_run=true"
    )
    assert shown["results"][0]["diff"] == [
        {"field": "spec.capability.cpu", "before": "4", "after": "6"},
        {
            "field": "spec.capability.memory",
            "before": "8Gi",
            "after": None,
        },  # what the file names, it names whole
    ]
    assert shown["dryRun"] is True
    assert admin.get("queues/a/")["spec"]["capability"] == {"cpu": "4", "memory": "8Gi"}
    assert AuditEntry.objects.count() == entries


def test_one_wrong_object_keeps_all_others_out(admin: Caller):
    text = (
        "kind: Queue\nmetadata: {name: good}\n---\nkind: Queue\nmetadata: {name: bad}\nspec: "
        "{weight: 0.5}\n---\nkind: Sofa\nmetadata: {name: x}\n"
    )

    problem = admin.apply(text, expect=400)
    fields = {violation["field"] for violation in problem["violations"]}
    assert fields == {"[1].spec.weight", "[2].kind"}
    assert not Queue.objects.filter(name="good").exists()


def test_quotas_that_need_each_other_are_changed_in_any_order(admin: Caller):
    admin.post(
        "queues/", [queue("p", deserved={"cpu": "4"}), queue("c", "p", deserved={"cpu": "4"})]
    )

    grown = (
        "kind: Queue\nmetadata: {name: c}\nspec: {deserved: {cpu: 8}}\n---\nkind: "
        "Queue\nmetadata: {name: p}\nspec: {deserved: {cpu: 8}}\n"
    )
    assert set(operations(admin.apply(grown)).values()) == {"updated"}
    shrunk = grown.replace("8", "2")
    assert set(operations(admin.apply(shrunk)).values()) == {"updated"}


def test_what_wears_the_label_and_is_not_in_the_file_is_pruned(admin: Caller):
    admin.apply(
        "kind: Queue\nmetadata: {name: keep, labels: {team: a}}\n---\nkind: "
        "Queue\nmetadata: {name: drop, labels: {team: a}}\nspec: {state: Closed}\n"
    )
    admin.post("queues/", queue("other"), expect=201)
    kept = "kind: Queue\nmetadata: {name: keep, labels: {team: a}}\n"

    shown = admin.apply(kept, "?prune=team=a&dry_run=true")
    assert operations(shown) == {"keep": "unchanged", "drop": "deleted"}
    admin.apply(kept, "?prune=team=a")
    assert set(Queue.objects.values_list("name", flat=True)) == {"root", "default", "keep", "other"}
    admin.apply(kept, "?prune=team", expect=400)


def test_a_proposed_set_is_checked_as_if_it_were_there(admin: Caller):
    checked = admin.post(
        "validate/",
        [
            {"kind": "Queue", **queue("p", deserved={"cpu": "2"})},
            {"kind": "Queue", **queue("c", "p", deserved={"cpu": "3"})},
            7,
        ],
    )

    assert checked["valid"] is False
    first, second, third = checked["results"]
    assert (first["valid"], first["operation"]) == (True, "created")
    assert second["violations"][0]["ruleId"] == "children_deserved_exceeds_parent"
    assert third["violations"]
    assert Queue.objects.count() == 2
    assert admin.post("validate/", {"kind": "Queue", **queue("p")})["valid"] is True


def test_nothing_and_too_much(admin: Caller):
    assert admin.apply("", expect=400)["violations"][0]["ruleId"] == "nothing_given"
    assert admin.apply("---\n" * 3, expect=400)["violations"][0]["ruleId"] == "nothing_given"
    assert admin.post("apply/", [{}] * 5001, expect=400)["violations"][0]["ruleId"] == "too_many"


def test_a_file_is_applied_with_its_senders_permissions(
    caller: Callable[..., Caller], admin: Caller
):
    admin.post("queues/", [queue("a"), queue("b")])
    ann = caller("ann", admin="a")

    assert operations(ann.apply("kind: Queue\nmetadata: {name: a1}\nspec: {parent: a}\n")) == {
        "a1": "created"
    }
    ann.apply("kind: Queue\nmetadata: {name: a}\nspec: {weight: 9}\n", expect=403)
    ann.apply("kind: Queue\nmetadata: {name: b1}\nspec: {parent: b}\n", expect=400)
    ann.apply("kind: Node\nmetadata: {name: n}\n", expect=403)


def test_pruned_queues_go_from_below_whichever_was_made_first(admin: Caller):
    admin.apply(
        "".join(
            (
                f"---\nkind: Queue\nmetadata: {{name: {name}, labels: {{team: a}}}}\nspec: "
                f"{{state: Closed}}\n"
            )
            for name in "ab"
        )
    )
    admin.apply("kind: Queue\nmetadata: {name: a}\nspec: {parent: b}\n")

    admin.apply("kind: Queue\nmetadata: {name: default}\n", "?prune=team=a")

    assert set(Queue.objects.values_list("name", flat=True)) == {"root", "default"}


def test_what_the_sender_may_not_see_is_neither_pruned_nor_in_his_way(
    caller: Callable[..., Caller], admin: Caller
):
    for name in ("mine", "theirs"):
        admin.post("queues/", queue(name), expect=201)
        admin.apply(
            f"kind: Queue\nmetadata: {{name: {name}-x, labels: {{team: a}}}}\nspec: "
            f"{{parent: {name}, state: Closed}}\n"
        )
    owner = caller("ada", admin="mine")

    owner.apply("kind: Queue\nmetadata: {name: mine-y}\nspec: {parent: mine}\n", "?prune=team=a")

    assert set(Queue.objects.values_list("name", flat=True)) == {
        "root",
        "default",
        "mine",
        "mine-y",
        "theirs",
        "theirs-x",
    }


def test_a_tree_that_is_as_the_file_says_is_looked_at_once(admin: Caller):
    """However many queues there are in it, or beside it."""
    small, large = (
        [{"kind": "Queue", **queue(f"q{number}")} for number in range(count)] for count in (2, 12)
    )
    admin.post("apply/", large)

    def asked(documents: list[dict[str, Any]]) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert admin.post("apply/", documents)["changed"] is False
        return len(queries)

    assert asked(large) == asked(small)


def test_warnings_of_a_tree_are_right_after_a_file(admin: Caller):
    """They are worked out once, at its end."""
    admin.post("nodes/", node("n1", cpu="4"), expect=201)
    admin.post(
        "apply/", [{"kind": "Queue", **queue(name, deserved={"cpu": "3"})} for name in ("a", "b")]
    )

    warned = [
        warning["code"]
        for name in ("root", "a", "b")
        for warning in admin.get(f"queues/{name}/")["status"]["warnings"]
    ]
    one_by_one = admin.post("queues/", queue("c", deserved={"cpu": "3"}), expect=201)
    assert warned
    assert {warning["code"] for warning in one_by_one["status"]["warnings"]} <= {*warned}


QUEUE_NAME = "scheduling.volcano.sh/queue-name"


def _of_each_kind(in_queue: str) -> dict[str, dict[str, Any]]:
    pod = {
        "metadata": {"name": "secret", "annotations": {QUEUE_NAME: in_queue}},
        "spec": {"containers": [{"name": "main"}]},
    }
    return {
        "queues": {"kind": "Queue", **queue("secret", in_queue)},
        "jobs": {"kind": "Job", **job("secret", in_queue)},
        "podgroups": {
            "kind": "PodGroup",
            "metadata": {"name": "secret"},
            "spec": {"queue": in_queue, "minMember": 1},
        },
        "pods": {"kind": "Pod", **pod},
    }


@pytest.mark.parametrize("kind", ["queues", "jobs", "podgroups", "pods"])
def test_applying_tells_no_more_of_what_is_out_of_sight_than_making_it(
    admin: Caller,
    caller: Callable[..., Caller],
    kind: str,
):
    """Asked for where one may not make it, the answer is the same whether there is one.

    Elsewhere the name is taken, and no more is said.
    """
    admin.post("queues/", [queue("theirs"), queue("ours")])
    theirs = _of_each_kind("theirs")[kind]
    ours = _of_each_kind("ours")[kind]
    ann = caller("ann", admin="ours")

    def answers() -> list[Any]:
        return [ann.ask("POST", f"{door}/", theirs) for door in ("apply", "validate")]

    before = answers()
    admin.post(f"{kind}/", theirs, expect=201)

    assert answers() == before
    assert "already" in ann.post("apply/", ours, expect=409)["detail"]
    assert "theirs" not in ann.last.content.decode()
