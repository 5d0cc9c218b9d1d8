"""What is to be done for a job, worked out from what the cluster tells."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from scheduler.clusters.kubernetes.job_objects import pod_manifest, podgroup_manifest
from scheduler.clusters.kubernetes.read.pods import read_pod
from scheduler.clusters.kubernetes.read.workloads import read_command, read_job, read_podgroup
from scheduler.clusters.kubernetes.values import JobObject, PodObject
from scheduler.domain.resources import Resources
from scheduler.services.cluster.jobs.plan import MOST_PODS, Plan, plan_for
from scheduler.services.cluster.jobs.restarts import LAST_COMMAND, PREFIX, read_restarts
from scheduler.services.cluster.jobs.situation import Situation
from tests.services.cluster.jobs.examples import job as manifest
from tests.services.cluster.jobs.examples import task

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


def a_job(*tasks: dict[str, Any], status: dict[str, Any] | None = None, **spec: Any) -> JobObject:
    raw = manifest("train", *tasks, **spec)
    raw["metadata"] |= {"uid": "u1", "namespace": "default", "resourceVersion": "7"}
    return read_job({**raw, "status": status or {"state": {"phase": "Running"}}})


def a_pod(job: JobObject, index: int, phase: str = "Running", *, restarts: int = 0, **given: Any):
    task = next(each for each in job.job.tasks if each.name == given.get("task", "worker"))
    raw = pod_manifest(job, task, index, restarts)
    raw["metadata"] |= {"uid": f"{task.name}-{index}-{restarts}", "resourceVersion": "9"}
    raw["spec"]["nodeName"] = "n1"
    ended = {"exitCode": given.get("code", 1)}
    raw["status"] = {"phase": phase}
    if phase == "Failed":
        raw["status"]["containerStatuses"] = [{"name": "nginx", "state": {"terminated": ended}}]
    return read_pod(raw)


def leaving(pod: PodObject) -> PodObject:
    return replace(pod, meta=replace(pod.meta, deleted=NOW))


def plan(job: JobObject, *pods: PodObject, **given: Any) -> Plan:
    raw = podgroup_manifest(job, Resources.parse({"cpu": str(job.job.min_available)}))
    raw["metadata"] |= {"uid": "g1", "resourceVersion": "8"}
    group = given.pop("podgroup", read_podgroup(raw))
    return plan_for(Situation(job, NOW, pods, group, **given))


def with_status(job: JobObject, plan: Plan) -> JobObject:
    """As the cluster tells of the job after this plan was carried out."""
    merged = _merge(dict(job.status), plan.status)
    state = merged.get("state") or {}
    return replace(
        job,
        status=merged,
        phase=state.get("phase", ""),
        message=state.get("message", ""),
        retry_count=merged.get("retryCount", 0),
        version=merged.get("version", 0),
    )


def _merge(before: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """RFC 7386."""
    merged = dict(before)
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = _merge(merged.get(key) or {}, value)
        else:
            merged[key] = value
    return merged


def test_a_new_job_is_told_pending_before_anything_is_made():
    job = a_job(task("worker", 2), status={"state": {}})

    found = plan(job, podgroup=None)

    assert found.is_decision
    assert found.status["state"]["phase"] == "Pending"
    assert found.podgroup is None
    assert found.pods_to_make == ()


def test_the_podgroup_and_the_pods_are_made_with_the_names_that_volcano_gives():
    job = a_job(task("worker", 2), status={"state": {"phase": "Pending"}}, minAvailable=2)

    found = plan(job, podgroup=None)

    assert found.podgroup["metadata"]["name"] == "train-u1"
    assert found.podgroup["spec"]["minMember"] == 2
    assert found.podgroup["spec"]["minResources"] == {"cpu": "2"}
    assert [(new.task.name, new.index) for new in found.pods_to_make] == [
        ("worker", 0),
        ("worker", 1),
    ]


def test_a_large_job_gets_its_pods_in_several_rounds():
    found = plan(a_job(task("worker", MOST_PODS + 1), minAvailable=1))

    assert len(found.pods_to_make) == MOST_PODS


def test_nothing_is_done_for_a_job_that_is_as_it_should_be():
    job = a_job(task("worker", 1), minAvailable=1)
    job = with_status(job, plan(job, a_pod(job, 0)))

    assert plan(job, a_pod(job, 0)).is_empty


def test_a_task_waits_for_the_one_it_depends_on():
    tasks = (task("first", 1), task("worker", 2, dependsOn={"name": ["first"]}))
    job = a_job(*tasks, minAvailable=1)

    waits = plan(job, a_pod(job, 0, "Pending", task="first"))
    begins = plan(job, a_pod(job, 0, task="first"))

    assert waits.pods_to_make == ()
    assert {new.task.name for new in begins.pods_to_make} == {"worker"}


def test_a_failed_pod_restarts_the_job_once_however_often_it_is_looked_at():
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    job = a_job(task("worker", 2), minAvailable=2, policies=policies)
    pods = (a_pod(job, 0, "Failed"), a_pod(job, 1))

    first = plan(job, *pods)
    job = with_status(job, first)
    second = plan(job, *pods)

    assert first.status["state"]["phase"] == "Restarting"
    assert first.status["retryCount"] == 1
    assert "retryCount" not in second.status
    assert {pod.meta.uid for pod in second.pods_to_delete} == {"worker-0-0", "worker-1-0"}


def test_after_a_restart_pods_of_the_last_run_make_way_for_new_ones():
    job = a_job(task("worker", 1), status={"state": {"phase": "Restarting"}}, minAvailable=1)

    old = a_pod(job, 0, "Succeeded")
    begins = plan(job, old)
    job = with_status(job, begins)

    assert begins.status["state"]["phase"] == "Pending"
    assert begins.status["version"] == 1
    assert plan(job, old).pods_to_delete == (old,)
    assert plan(job, old).pods_to_make == ()
    assert len(plan(job).pods_to_make) == 1


def test_only_the_pod_that_failed_starts_again_and_counts_once():
    policies = [{"event": "PodFailed", "action": "RestartPod"}]
    job = a_job(task("worker", 3), minAvailable=1, policies=policies)
    pods = (a_pod(job, 0, "Failed"), a_pod(job, 1), a_pod(job, 2))

    first = plan(job, *pods)
    job = with_status(job, first)
    second = plan(job, *pods)
    third = plan(job, pods[1], pods[2])

    assert first.status["controlledResources"] == {PREFIX + "worker": "1:0"}
    assert first.status["retryCount"] == 1
    assert second.pods_to_delete == (pods[0],)
    assert "retryCount" not in second.status
    assert [new.index for new in third.pods_to_make] == [0]


def test_another_pod_that_fails_later_is_another_retry():
    policies = [{"event": "PodFailed", "action": "RestartPod"}]
    job = a_job(task("worker", 2), minAvailable=1, policies=policies)
    job = with_status(job, plan(job, a_pod(job, 0, "Failed"), a_pod(job, 1)))

    # the first is still there
    found = plan(job, a_pod(job, 0, "Failed"), a_pod(job, 1, "Failed"))

    assert found.status["retryCount"] == 2
    assert found.status["controlledResources"] == {PREFIX + "worker": "2:0,1"}


def test_all_pods_of_a_task_start_again():
    policies = [{"event": "PodFailed", "action": "RestartTask"}]
    job = a_job(task("worker", 2), minAvailable=1, policies=policies)
    pods = (a_pod(job, 0, "Failed"), a_pod(job, 1))

    job = with_status(job, plan(job, *pods))
    found = plan(job, *pods)

    assert read_restarts(job.status["controlledResources"], "worker").again is None
    assert found.pods_to_delete == pods
    assert plan(job, a_pod(job, 0, restarts=1), a_pod(job, 1, restarts=1)).pods_to_delete == ()


def test_an_exit_code_chooses_the_policy():
    policies = [
        {"exitCode": 3, "action": "RestartJob"},
        {"event": "PodFailed", "action": "AbortJob"},
    ]
    job = a_job(task("worker", 1), minAvailable=1, policies=policies)

    assert plan(job, a_pod(job, 0, "Failed", code=3)).status["state"]["phase"] == "Restarting"
    assert plan(job, a_pod(job, 0, "Failed", code=4)).status["state"]["phase"] == "Aborting"


def test_a_pod_that_is_taken_away_is_evicted_and_one_that_went_unseen_too():
    policies = [{"event": "PodEvicted", "action": "RestartJob"}]
    job = a_job(task("worker", 2), minAvailable=1, policies=policies)
    pods = (a_pod(job, 0), a_pod(job, 1))
    job = with_status(job, plan(job, *pods))

    for seen in ((pods[0], leaving(pods[1])), (pods[0],)):
        found = plan(job, *seen)
        assert found.status["state"]["phase"] == "Restarting"
        assert found.doubts_pods


def test_without_a_policy_a_pod_that_went_is_made_again():
    job = a_job(task("worker", 2), minAvailable=1)
    job = with_status(job, plan(job, a_pod(job, 0), a_pod(job, 1)))

    found = plan(job, a_pod(job, 0))

    assert [new.index for new in found.pods_to_make] == [1]


def test_pods_beyond_the_replicas_go():
    job = a_job(task("worker", 1), minAvailable=1)

    assert plan(job, a_pod(job, 0), a_pod(job, 1)).pods_to_delete == (a_pod(job, 1),)


def test_the_podgroup_follows_a_job_that_was_scaled():
    small = a_job(task("worker", 1), minAvailable=1)
    raw = podgroup_manifest(small, Resources.parse({"cpu": "1"}))
    raw["metadata"] |= {"uid": "g1", "resourceVersion": "8"}

    found = plan(a_job(task("worker", 3), minAvailable=3), podgroup=read_podgroup(raw))

    assert found.podgroup_changes == {
        "minMember": 3,
        "minTaskMember": {"worker": 3},
        "minResources": {"cpu": "3"},
    }


def test_a_job_that_has_ended_keeps_pods_that_have_ended_and_loses_its_podgroup():
    job = a_job(task("worker", 2), status={"state": {"phase": "Failed"}}, minAvailable=1)

    busy = plan(job, a_pod(job, 0, "Failed"), a_pod(job, 1))
    quiet = plan(job, a_pod(job, 0, "Failed"))

    assert busy.pods_to_delete == (a_pod(job, 1),)
    assert busy.ended_podgroup is None
    assert quiet.pods_to_delete == ()
    assert quiet.ended_podgroup is not None


def test_a_job_with_a_lifetime_goes_when_it_is_over():
    state = {"phase": "Completed", "lastTransitionTime": (NOW - timedelta(seconds=9)).isoformat()}
    job = a_job(task("worker", 1), status={"state": state}, ttlSecondsAfterFinished=10)

    assert plan(job).look_at == NOW + timedelta(seconds=1)
    assert not plan(job).ends_job
    over = a_job(task("worker", 1), status={"state": state}, ttlSecondsAfterFinished=9)
    assert plan(over).ends_job


def test_a_command_is_obeyed_once():
    job = a_job(task("worker", 1), minAvailable=1)
    order = read_command(
        {
            "metadata": {"name": "c", "namespace": "default", "uid": "c1"},
            "action": "RestartJob",
            "target": {"kind": "Job", "name": "train"},
        }
    )

    first = plan(job, a_pod(job, 0), commands=(order,))
    # killed before the Command was deleted; the job has gone on meanwhile
    obeyed = with_status(job, first)
    gone_on = with_status(obeyed, plan(obeyed))
    again = plan(gone_on, commands=(order,))

    assert first.status["state"]["phase"] == "Restarting"
    assert first.status["controlledResources"] == {LAST_COMMAND: "c1"}
    assert gone_on.phase == "Pending"
    assert again.status == {}
    assert again.obeyed is not None


def test_a_command_that_the_phase_forbids_is_refused_and_over():
    job = a_job(task("worker", 1), status={"state": {"phase": "Completed"}}, minAvailable=1)
    order = read_command(
        {
            "metadata": {"name": "c", "namespace": "default", "uid": "c1"},
            "action": "AbortJob",
            "target": {"kind": "Job", "name": "train"},
        }
    )

    found = plan(job, commands=(order,))

    assert found.status == {}
    assert found.obeyed.refused
    assert found.obeyed.message == "it is Completed and has no pods left to stop"


def test_a_job_that_is_being_deleted_is_left_to_the_garbage_collector():
    job = a_job(task("worker", 1), minAvailable=1)

    assert plan(replace(job, meta=replace(job.meta, deleted=NOW))).is_empty
