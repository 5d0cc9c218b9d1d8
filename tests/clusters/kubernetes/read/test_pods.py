"""Pods of all sources, read into values."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from scheduler.clusters.kubernetes.read import read_object
from scheduler.clusters.kubernetes.read.pods import read_pod
from scheduler.clusters.kubernetes.resources import PODS
from scheduler.clusters.kubernetes.values import Owner, PodObject, PodPhase
from scheduler.domain.resources import Resources
from tests.clusters.kubernetes.raw import container, raw_pod


def annotated(**annotations: str) -> PodObject:
    return read_pod(raw_pod(meta={"annotations": annotations}))


def test_a_pod_with_almost_nothing_in_it_can_be_read():
    pod = read_object(PODS, {"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": []}})

    assert isinstance(pod, PodObject)
    assert pod.requests == Resources()
    assert pod.phase is PodPhase.PENDING
    assert not pod.takes_room


def test_who_a_pod_is_and_whose():
    owners = [
        {"kind": "Tool", "name": "t", "uid": "o0"},
        {"kind": "Job", "name": "web", "uid": "o1", "apiVersion": "batch/v1", "controller": True},
    ]
    pod = read_pod(
        raw_pod(meta={"ownerReferences": owners, "deletionTimestamp": "2026-11-17T12:00:09Z"})
    )

    assert pod.meta.key == "team/web-0"
    assert pod.meta.uid == "uid-of-web-0"
    assert pod.meta.resource_version == "7"
    assert pod.meta.created == datetime(2026, 11, 17, 12, tzinfo=UTC)
    assert pod.meta.deleted == datetime(2026, 11, 17, 12, 0, 9, tzinfo=UTC)
    assert pod.meta.owner == Owner("Job", "web", "o1", "batch/v1")
    assert pod.group_name == "podgroup-o1"


@pytest.mark.parametrize(
    "key", ["scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"]
)
def test_a_pod_of_a_volcano_job_names_its_group(key):
    assert annotated(**{key: "gang"}).group == "gang"


def test_what_the_controller_of_volcano_jobs_writes_on_a_pod():
    pod = annotated(
        **{
            "volcano.sh/task-spec": "worker",
            "volcano.sh/task-index": "12",
            "volcano.sh/job-version": "3",
        }
    )

    assert (pod.task, pod.task_index, pod.job_version) == ("worker", 12, 3)


def test_a_pod_of_the_native_kind_names_its_group_in_its_spec():
    pod = read_pod(raw_pod(schedulingGroup={"podGroupName": "gang"}))

    assert (pod.native_group, pod.group) == ("gang", "")
    assert pod.group_name == "podgroups.scheduling.k8s.io/gang"  # Volcano may have one "gang", too


@pytest.mark.parametrize(
    "marks",
    [
        pytest.param({"annotations": {"scheduling.volcano.sh/queue-name": "science"}}, id="lws"),
        pytest.param({"labels": {"scheduling.volcano.sh/queue-name": "science"}}, id="as-label"),
        pytest.param({"labels": {"volcano.sh/queue-name": "science"}}, id="kuberay"),
        pytest.param({"labels": {"kai.scheduler/queue": "science"}}, id="kai"),
        pytest.param(
            {
                "annotations": {"scheduling.volcano.sh/queue-name": "science"},
                "labels": {"volcano.sh/queue-name": "other"},
            },
            id="annotation-first",
        ),
    ],
)
def test_every_source_names_its_queue_in_its_own_way(marks):
    assert read_pod(raw_pod(meta=marks)).queue == "science"


def test_the_queue_of_kueue_is_not_ours():
    pod = read_pod(raw_pod(meta={"labels": {"kueue.x-k8s.io/queue-name": "science"}}))

    assert pod.queue == ""


@pytest.mark.parametrize(("text", "number"), [("4", 4), ("", None), ("-1", None), ("many", None)])
def test_the_least_members_of_a_group_that_we_make(text, number):
    assert annotated(**{"scheduling.volcano.sh/group-min-member": text}).min_member == number


@pytest.mark.parametrize(("text", "expected"), [("false", False), ("true", True), ("", True)])
def test_a_pod_can_be_preempted_unless_it_says_otherwise(text, expected):
    assert annotated(**{"volcano.sh/preemptable": text}).preemptable is expected


def test_priority_is_what_the_spec_says_whatever_its_class():
    pod = read_pod(
        raw_pod(
            priority=2_000_001_000,
            priorityClassName="system-node-critical",
            preemptionPolicy="Never",
        )
    )

    assert pod.priority == 2_000_001_000
    assert pod.priority_class == "system-node-critical"
    assert pod.preemption_policy == "Never"


def test_where_a_pod_may_run():
    toleration = {"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}
    pod = read_pod(raw_pod(nodeSelector={"zone": "a"}, tolerations=[toleration], affinity=affinity))

    assert pod.node_selector == {"zone": "a"}
    assert pod.affinity == affinity
    assert pod.tolerations == ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"},)


def test_gates_are_named():
    pod = read_pod(raw_pod(schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]))

    assert pod.gates == ("kueue.x-k8s.io/admission",)


REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}
BY_NAMESPACE_LABELS = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "zone", "namespaceSelector": {"matchLabels": {"team": "a"}}}
    ]
}
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"affinity": {"podAffinity": REQUIRED}}, ()),
        ({"affinity": {"podAntiAffinity": PREFERRED}}, ()),
        (
            {"affinity": {"podAntiAffinity": BY_NAMESPACE_LABELS}},
            ("namespaceSelector in podAntiAffinity",),
        ),
        (
            {"containers": [container(ports=[{"containerPort": 80, "hostPort": 80}])]},
            ("host ports (hostPort)",),
        ),
        ({"containers": [container(ports=[{"containerPort": 80}])]}, ()),
        ({"resourceClaims": [{"name": "gpu"}]}, ("resource claims (resourceClaims)",)),
        ({"volumes": [{"name": "v", "ephemeral": {}}, {"name": "e", "emptyDir": {}}]}, ()),
        (
            {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]},
            ("ephemeral volumes (volumes.ephemeral)",),
        ),
    ],
)
def test_what_no_session_can_honour_is_named(spec, expected):
    assert read_pod(raw_pod(**spec)).unsupported == expected


def test_only_the_spread_that_must_hold_is_kept_with_the_labels_of_the_pod_in_it():
    hard = {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "db"}},
        "matchLabelKeys": ["version", "absent"],
    }
    soft = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    raw = raw_pod(topologySpreadConstraints=[hard, soft])
    raw["metadata"]["labels"] = {"app": "db", "version": "2"}

    (found,) = read_pod(raw).spread

    assert found["labelSelector"] == {
        "matchLabels": {"app": "db"},
        "matchExpressions": [{"key": "version", "operator": "In", "values": ["2"]}],
    }


def test_claims_are_named():
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}},
        {"name": "scratch", "emptyDir": {}},
    ]

    assert read_pod(raw_pod(volumes=volumes)).claims == ("data-0",)


def test_a_static_pod_of_a_kubelet_is_marked():
    assert annotated(**{"kubernetes.io/config.mirror": "abc"}).mirrored
    assert not annotated().mirrored


# What it takes


def test_requests_are_counted_with_sidecars_limits_and_overhead():
    pod = read_pod(
        raw_pod(
            containers=[
                container(requests={"cpu": "500m", "memory": "1Gi"}),
                container("gpu", resources={"limits": {"nvidia.com/gpu": "2"}}),
            ],
            initContainers=[
                container("proxy", {"cpu": "1"}, restartPolicy="Always"),
                container("setup", {"memory": "3Gi"}),
            ],
            overhead={"cpu": "250m"},
        )
    )

    assert pod.requests == Resources.parse({"cpu": "1750m", "memory": "3Gi", "nvidia.com/gpu": "2"})


def test_resources_of_the_whole_pod_count_instead_of_the_containers():
    pod = read_pod(
        raw_pod(
            containers=[container(requests={"cpu": "1"}), container("b", {"cpu": "1"})],
            resources={"requests": {"cpu": "4"}, "limits": {"cpu": "8", "memory": "8Gi"}},
        )
    )

    assert pod.requests == Resources.parse({"cpu": "4", "memory": "8Gi"})


@pytest.mark.parametrize(
    ("text", "amount"), [("100u", 1), ("0.0015", 2), ("1", 1000), (2, 2000), ("1e20", 2**63 - 1)]
)
def test_odd_quantities_are_rounded_up_as_kubernetes_does(text, amount):
    pod = read_pod(raw_pod(containers=[container(requests={"cpu": text})]))

    assert pod.requests == Resources({"cpu": amount})


def resized(asked: str, given: str, *, node: str = "n1", reason: str = "Deferred") -> PodObject:
    status = {
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
        "containerStatuses": [
            {
                "name": "main",
                "allocatedResources": {"cpu": given},
                "resources": {"requests": {"cpu": given}},
            }
        ],
    }
    return read_pod(
        raw_pod(nodeName=node, containers=[container(requests={"cpu": asked})], status=status)
    )


def test_a_pod_that_is_resized_takes_the_larger_of_both():
    assert resized("4", "2").requests == Resources({"cpu": 4000})
    assert resized("2", "4").requests == Resources({"cpu": 4000})


def test_a_pod_that_is_resized_as_a_whole_takes_the_larger_of_both():
    """What is asked for the whole pod can be resized too, since Kubernetes 1.36."""
    status = {"allocatedResources": {"cpu": "6"}, "resources": {"requests": {"cpu": "5"}}}
    whole = {"requests": {"cpu": "3"}}

    pod = read_pod(raw_pod(nodeName="n1", resources=whole, status=status))

    assert pod.requests == Resources({"cpu": 6000})


def test_a_resize_that_the_node_refused_does_not_count():
    assert resized("4", "2", reason="Infeasible").requests == Resources({"cpu": 2000})


def test_a_pod_without_a_node_takes_what_it_asks_for():
    assert resized("4", "8", node="").requests == Resources({"cpu": 4000})


# How far it has come


def ended(name: str, code: int, finished: str = "2026-11-17T12:05:00Z", **fields: str):
    state = {
        "exitCode": code,
        "startedAt": "2026-11-17T12:01:00Z",
        "finishedAt": finished,
        **fields,
    }
    return {"name": name, "state": {"terminated": state}}


RUNNING = {"name": "log", "state": {"running": {"startedAt": "2026-11-17T12:02:00Z"}}}


def test_a_running_pod_has_begun_and_has_no_exit_code():
    pod = read_pod(
        raw_pod(nodeName="n1", status={"phase": "Running", "containerStatuses": [RUNNING]})
    )

    assert pod.phase is PodPhase.RUNNING
    assert pod.takes_room
    assert pod.started == datetime(2026, 11, 17, 12, 2, tzinfo=UTC)
    assert (pod.exit_code, pod.finished) == (None, None)


def test_one_container_that_ended_well_is_not_the_end():
    pod = read_pod(raw_pod(status={"containerStatuses": [ended("main", 0), RUNNING]}))

    assert pod.exit_code is None


def test_a_pod_that_ended_well():
    statuses = [ended("main", 0), ended("log", 0, "2026-11-17T12:09:00Z")]
    pod = read_pod(
        raw_pod(nodeName="n1", status={"phase": "Succeeded", "containerStatuses": statuses})
    )

    assert pod.exit_code == 0
    assert pod.finished == datetime(2026, 11, 17, 12, 9, tzinfo=UTC)
    assert not pod.takes_room


def test_a_pod_that_failed_says_which_container_and_why():
    statuses = [ended("log", 0), ended("main", 137, reason="OOMKilled")]
    pod = read_pod(raw_pod(status={"phase": "Failed", "containerStatuses": statuses}))

    assert pod.exit_code == 137
    assert pod.message == "main: OOMKilled"


def test_an_evicted_pod_says_so():
    status = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."}
    pod = read_pod(raw_pod(status=status))

    assert (pod.reason, pod.message, pod.exit_code) == (
        "Evicted",
        "The node was low on memory.",
        None,
    )


def test_the_condition_that_tells_why_it_waits():
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "no room",
        "lastTransitionTime": "2026-11-17T12:00:00Z",
    }
    pod = read_pod(
        raw_pod(status={"conditions": [{"type": "Ready", "status": "False"}, condition]})
    )

    assert pod.scheduled is not None
    assert (pod.scheduled.status, pod.scheduled.reason) == ("False", "Unschedulable")
