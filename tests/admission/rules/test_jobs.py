"""What holds inside a job: it is judged by its manifest alone, the same through every door."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.admission.facts import Facts
from scheduler.admission.reviews import Request, review
from scheduler.admission.rules.workloads import admit_job, admit_job_change
from scheduler.domain.queues import QueueSpec, QueueState, QueueTree

TREE = QueueTree([QueueSpec("root", parent=""), QueueSpec("default")])
FACTS = Facts(states={"default": QueueState.OPEN})


def job(name: str = "train", template: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    tasks = [{"name": "worker", "replicas": 1, "template": template or {}}]
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"tasks": tasks, **spec}}


def task(name: str, *needed: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "replicas": 1, "dependsOn": {"name": list(needed)}, **fields}


def broken(manifest: object) -> set[tuple[str, str]]:
    return {
        (violation.rule_id, violation.field)
        for violation in admit_job(manifest, TREE, FACTS).violations
    }


def required(*expressions: object) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def preferred(*wishes: object) -> dict[str, Any]:
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": list(wishes)}}


@pytest.mark.parametrize(
    "affinity",
    [
        {"nodeAffinity": "east"},
        {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": 7}
            }
        },
        {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": ["east"]}
            }
        },
        required({"operator": "Exists"}),
        required({"key": "zone"}),
        required({"key": {"zone": 1}, "operator": "Exists"}),
        required({"key": "zone", "operator": "Resembles"}),
        required({"key": "zone", "operator": "In", "values": [{"east": 1}]}),
        required({"key": "cores", "operator": "Gt", "values": ["many"]}),
        required({"key": "cores", "operator": "Lt", "values": []}),
        preferred("east"),
        preferred({"weight": "heavy", "preference": {}}),
        preferred({"weight": 101, "preference": {}}),
    ],
)
def test_an_affinity_that_no_session_could_read_is_refused(affinity: dict[str, Any]):
    ((rule, field),) = broken(job(template={"spec": {"affinity": affinity}}))

    assert rule in ("invalid_value", "number_out_of_range")
    assert field.startswith("spec.tasks[0].template.spec.affinity.nodeAffinity")


def test_an_affinity_as_kubernetes_has_it_is_taken():
    affinity = {
        **required(
            {"key": "zone", "operator": "In", "values": ["east"]},
            {"key": "cores", "operator": "Gt", "values": ["8"]},
        ),
        "podAffinity": {"whatever": 1},
    }

    assert broken(job(template={"spec": {"affinity": affinity}})) == set()


@pytest.mark.parametrize("toleration", [{"operator": "Roughly"}, {"effect": "NoFun"}])
def test_a_toleration_of_an_unknown_kind_is_refused(toleration: dict[str, str]):
    ((rule, field),) = broken(job(template={"spec": {"tolerations": [toleration]}}))

    assert (rule, field) == (
        "invalid_value",
        f"spec.tasks[0].template.spec.tolerations[0].{next(iter(toleration))}",
    )


RUN = "fumarole.io/run-seconds"
EXIT = "fumarole.io/exit-code"


@pytest.mark.parametrize(
    ("mark", "text"),
    [
        (RUN, "inf"),
        (RUN, "nan"),
        (RUN, "1e400"),
        (RUN, "-5"),
        (RUN, "long"),
        (EXIT, "inf"),
        (EXIT, "1e300"),
        (EXIT, "256"),
    ],
)
def test_what_a_simulated_cluster_is_told_must_be_a_number_it_can_count_with(mark: str, text: str):
    found = broken(job(template={"metadata": {"annotations": {mark: text}}}))

    assert found == {("invalid_value", f"spec.tasks[0].template.metadata.annotations[{mark}]")}


@pytest.mark.parametrize("text", ["²s", "99999999999999h", "soon", "-1s"])
def test_a_waiting_time_must_be_a_length_of_time(text: str):
    asked = job()
    asked["metadata"]["annotations"] = {"sla-waiting-time": text}

    assert broken(asked) == {("invalid_value", "metadata.annotations[sla-waiting-time]")}


def test_nor_can_it_be_changed_to_anything_else():
    stored = job()
    asked = job()
    stored["metadata"]["annotations"] = {"sla-waiting-time": "stored before there was a rule"}
    asked["metadata"]["annotations"] = {"sla-waiting-time": "soon"}

    assert [found.rule_id for found in admit_job_change(asked, stored, Facts()).violations] == [
        "invalid_value"
    ]
    assert not admit_job_change(stored, stored, Facts()).violations


def test_a_namespace_is_a_single_label():
    asked = job()
    asked["metadata"]["namespace"] = "n" * 64

    assert ("invalid_name", "metadata.namespace") in broken(asked)


def test_the_names_of_its_pods_must_fit():
    assert broken(job("a" * 243)) == set()
    assert broken(job("a" * 250)) == {("too_long", "metadata.name")}


def test_all_tasks_together_have_a_limit():
    many = [task(f"t{number}", replicas=60_000, minAvailable=1) for number in range(2)]

    assert broken(job(tasks=many)) == {("too_many_pods_in_job", "spec.tasks")}


def test_a_job_can_not_grow_past_the_limit_either():
    before = job(tasks=[task("a", replicas=60_000), task("b", replicas=1)])
    after = job(tasks=[task("a", replicas=60_000), task("b", replicas=60_000)])

    violations = admit_job_change(after, before, FACTS).violations

    assert [violation.rule_id for violation in violations] == ["too_many_pods_in_job"]


@pytest.mark.parametrize(
    "tasks",
    [
        [task("a", "a")],
        [task("a", "nobody")],
        [task("a", "b"), task("b", "a")],
        [task("a"), task("b", "d"), task("c", "b"), task("d", "c", "a")],
    ],
    ids=["itself", "nobody", "each other", "a ring"],
)
def test_tasks_that_could_never_begin_are_refused(tasks: list[dict[str, Any]]):
    assert {rule for rule, _ in broken(job(tasks=tasks))} == {"invalid_dependency"}


def test_tasks_that_begin_one_after_the_other_are_taken():
    assert broken(job(tasks=[task("a"), task("b", "a"), task("c", "a", "b")])) == set()


def test_more_than_a_thousand_tasks_need_names_of_their_own_too():
    assert ("duplicate_task_name", "spec.tasks") in broken(
        job(tasks=[task(f"t{number // 2}") for number in range(1002)])
    )


@pytest.mark.parametrize(
    "spec",
    [{"policies": [{"event": "Sneeze", "action": "AbortJob"}]}, {"tasks": [task("a", "nobody")]}],
)
def test_the_webhook_refuses_what_every_other_door_does(spec: dict[str, Any]):
    verdict = review("jobs", Request("CREATE", new=job(**spec)), TREE, FACTS)

    assert not verdict.allowed


@pytest.mark.parametrize(
    "part",
    ["\x00", "\ud800", {"deep": [{"\x00": 1}]}, float("inf")],
    ids=["nul", "half a pair", "a key", "endless"],
)
def test_what_is_kept_as_it_came_must_be_fit_to_be_kept(part: object):
    found = broken(
        job(template={"spec": {"containers": [{"image": part}]}}, plugins={"svc": [part]})
    )

    assert {rule for rule, _ in found} == {"invalid_value"}
    assert {field.partition(".image")[0].partition(".svc")[0] for _, field in found} == {
        "spec.plugins",
        "spec.tasks[0].template.spec.containers[0]",
    }


def test_how_many_are_waited_for_is_all_or_any():
    tasks = [task("a"), task("b"), task("c", "a", "b")]
    tasks[2]["dependsOn"]["iteration"] = "some"

    assert broken(job(tasks=tasks)) == {("invalid_dependency", "spec.tasks[2].dependsOn.iteration")}
    tasks[2]["dependsOn"]["iteration"] = "any"
    assert broken(job(tasks=tasks)) == set()


@pytest.mark.parametrize(
    ("policies", "field"),
    [
        ([("PodFailed", None), ("PodFailed", None)], "spec.policies[1].event"),
        ([(["PodEvicted", "PodFailed"], None), ("PodFailed", None)], "spec.policies[1].event"),
        ([("Unknown", None), ("JobUnknown", None)], "spec.policies[1].event"),
        ([(None, 3), (None, 3)], "spec.policies[1].exitCode"),
        ([("PodEvicted", None), ("*", None)], "spec.policies[1].event"),
    ],
)
@pytest.mark.parametrize("of_task", [False, True])
def test_what_two_policies_answer_is_refused(
    policies: list[tuple[Any, Any]],
    field: str,
    of_task: bool,
):
    given = [
        {
            key: value
            for key, value in zip(("event", "exitCode"), pair, strict=True)
            if value is not None
        }
        for pair in policies
    ]
    written = [
        {"events" if isinstance(value, list) else key: value for key, value in one.items()}
        | {"action": "RestartJob"}
        for one in given
    ]
    asked = job(tasks=[task("a", policies=written)]) if of_task else job(policies=written)
    place = "spec.tasks[0]." + field.removeprefix("spec.") if of_task else field

    assert broken(asked) == {("invalid_policy", place)}


@pytest.mark.parametrize(
    "policies",
    [
        [{"event": "PodFailed", "events": ["PodFailed"], "action": "RestartJob"}],
        [
            {"event": "PodFailed", "action": "RestartJob"},
            {"exitCode": 3, "action": "AbortJob"},
            {"exitCode": 4, "action": "AbortJob"},
        ],
        [{"event": "*", "action": "RestartJob"}, {"exitCode": 3, "action": "AbortJob"}],
    ],
)
def test_policies_that_answer_different_things_go_together(policies: list[Any]):
    assert broken(job(policies=policies)) == set()


@pytest.mark.parametrize("containers", ["containers", "initContainers"])
def test_a_container_asks_for_no_more_than_its_limit(containers: str):
    def asking(requests: dict[str, Any], limits: dict[str, Any]) -> Any:
        return job(
            tasks=[
                task(
                    "a",
                    template={
                        "spec": {
                            containers: [{"resources": {"requests": requests, "limits": limits}}]
                        }
                    },
                )
            ]
        )

    where = f"spec.tasks[0].template.spec.{containers}[0].resources.requests"
    assert broken(asking({"cpu": "2", "memory": "1Gi"}, {"cpu": "1500m", "memory": "1Gi"})) == {
        ("request_exceeds_limit", f"{where}.cpu")
    }
    assert broken(asking({"nvidia.com/gpu": 2}, {"nvidia.com/gpu": 1})) == {
        ("request_exceeds_limit", f"{where}.nvidia.com/gpu")
    }
    assert broken(asking({"cpu": "1000m"}, {"cpu": "1", "memory": "1Gi"})) == set()
    assert broken(asking({"nvidia.com/gpu": 2}, {})) == set()


def between_pods(**term: object) -> dict[str, Any]:
    given = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}, **term}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [given]}}


def spread(**given: object) -> list[dict[str, object]]:
    return [{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **given}]


@pytest.mark.parametrize(
    "spec",
    [
        {"affinity": between_pods(topologyKey="")},
        {"affinity": between_pods(topologyKey=7)},
        {"affinity": between_pods(labelSelector="app=db")},
        {"affinity": between_pods(labelSelector={"matchLabels": {"app": ["db"]}})},
        {"affinity": between_pods(labelSelector={"matchExpressions": [{"operator": "In"}]})},
        {
            "affinity": between_pods(
                labelSelector={"matchExpressions": [{"key": "a", "operator": "Gt"}]}
            )
        },
        {"affinity": between_pods(namespaces="all")},
        {"topologySpreadConstraints": spread(topologyKey="")},
        {"topologySpreadConstraints": spread(maxSkew=0)},
        {"topologySpreadConstraints": spread(minDomains="many")},
        {"topologySpreadConstraints": spread(whenUnsatisfiable="Perhaps")},
        {"topologySpreadConstraints": spread(nodeTaintsPolicy="Sometimes")},
        {"topologySpreadConstraints": "even"},
    ],
)
def test_a_rule_between_pods_that_no_session_could_read_is_refused(spec: dict[str, Any]):
    ((_, field),) = broken(job(template={"spec": spec}))

    assert field.startswith(f"spec.tasks[0].template.spec.{next(iter(spec))}")


def test_rules_between_pods_as_kubernetes_has_them_are_taken():
    spec = {
        "affinity": between_pods(namespaces=["a"], matchLabelKeys=["version"]),
        "topologySpreadConstraints": spread(labelSelector={}, nodeAffinityPolicy="Ignore"),
    }

    assert broken(job(template={"spec": spec})) == set()
