"""Pods: what they ask for, who they belong to, and how far they have come."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from scheduler.admission.facts import QUEUE_ANNOTATION
from scheduler.admission.reading.pod import is_sidecar
from scheduler.admission.reading.workload import GROUP_ANNOTATIONS
from scheduler.clusters.kubernetes.read.common import (
    Raw,
    read_amounts,
    read_condition,
    read_meta,
    read_moment,
    section,
    whole_number,
)
from scheduler.clusters.kubernetes.values import Condition, ObjectMeta, PodObject, PodPhase
from scheduler.domain.pod_requests import InitContainer, pod_requests
from scheduler.domain.pod_rules import affinity_of, spread_of
from scheduler.domain.resources import Resources
from scheduler.domain.unsupported import unsupported_parts

QUEUE_LABELS: Final = (QUEUE_ANNOTATION, "volcano.sh/queue-name", "kai.scheduler/queue")
"""In this order: ours and Volcano's annotation, as a label too; KubeRay's; that of KAI."""

MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"
TASK: Final = "volcano.sh/task-spec"
TASK_INDEX: Final = "volcano.sh/task-index"
JOB_VERSION: Final = "volcano.sh/job-version"
PREEMPTABLE: Final = "volcano.sh/preemptable"
STATIC_POD: Final = "kubernetes.io/config.mirror"

_BY_SCHEDULER: Final = "ByScheduler"
"""Kubernetes and Volcano say PreemptionByScheduler, Fumarole ReclaimByScheduler too."""
_TOLERATION_FIELDS: Final = ("key", "operator", "value", "effect")


def read_pod(raw: Raw) -> PodObject:
    meta = read_meta(raw)
    spec = raw["spec"]
    status = section(raw, "status")
    annotations = meta.annotations
    group_of_pods = section(spec, "schedulingGroup")
    ended = _terminated_states(status)
    return PodObject(
        meta=meta,
        scheduler_name=spec.get("schedulerName", ""),
        node=spec.get("nodeName", ""),
        phase=PodPhase(status.get("phase") or "Pending"),
        requests=read_requests(spec, status),
        priority=spec.get("priority") or 0,
        priority_class=spec.get("priorityClassName", ""),
        preemption_policy=spec.get("preemptionPolicy") or "PreemptLowerPriority",
        group=_first_of(annotations, GROUP_ANNOTATIONS),
        native_group=group_of_pods.get("podGroupName", ""),
        queue=queue_asked_for(meta),
        min_member=whole_number(annotations.get(MIN_MEMBER)),
        task=annotations.get(TASK) or meta.labels.get(TASK, ""),
        task_index=whole_number(annotations.get(TASK_INDEX) or meta.labels.get(TASK_INDEX)),
        job_version=whole_number(annotations.get(JOB_VERSION)),
        preemptable=_is_preemptable(meta),
        node_selector=section(spec, "nodeSelector"),
        affinity=affinity_of(section(spec, "affinity"), meta.labels),
        tolerations=_read_tolerations(spec),
        spread=tuple(spread_of(spec.get("topologySpreadConstraints") or (), meta.labels)),
        gates=tuple(gate["name"] for gate in spec.get("schedulingGates") or ()),
        claims=_claims(spec),
        unsupported=unsupported_parts(spec),
        exit_code=_exit_code(status, ended),
        reason=status.get("reason", ""),
        message=_message(status, ended),
        started=_started(status),
        finished=_latest(ended, "finishedAt"),
        scheduled=_scheduled_condition(status),
        preempted=_preemption_message(status),
        mirrored=STATIC_POD in annotations,
    )


def _first_of(texts: Raw, keys: Iterable[str]) -> str:
    for key in keys:
        if texts.get(key):
            return str(texts[key])
    return ""


def queue_asked_for(meta: ObjectMeta) -> str:
    """By a pod or a native podgroup itself; "" if it names none."""
    return meta.annotations.get(QUEUE_ANNOTATION, "") or _first_of(meta.labels, QUEUE_LABELS)


def _is_preemptable(meta: ObjectMeta) -> bool:
    """Unless it says otherwise."""
    told = meta.annotations.get(PREEMPTABLE) or meta.labels.get(PREEMPTABLE)
    return told != "false"


def _read_tolerations(spec: Raw) -> tuple[dict[str, str], ...]:
    found: list[dict[str, str]] = []
    for toleration in spec.get("tolerations") or ():
        kept = {key: toleration[key] for key in _TOLERATION_FIELDS if toleration.get(key)}
        found.append(kept)
    return tuple(found)


def _claims(spec: Raw) -> tuple[str, ...]:
    found: list[str] = []
    for volume in spec.get("volumes") or ():
        claim = volume.get("persistentVolumeClaim")
        if claim:
            found.append(claim["claimName"])
    return tuple(found)


def read_requests(spec: Raw, status: Raw) -> Resources:
    """What it takes on a node.

    While a pod on a node is resized, it takes the larger of what it has and what it is to have.
    """
    granted = None
    if spec.get("nodeName"):
        granted = _Granted(status)
    containers = [_of_container(item, granted) for item in spec["containers"]]
    init_containers: list[InitContainer] = []
    for item in spec.get("initContainers") or ():
        stays = is_sidecar(item)
        # only what runs on can be resized
        requests = _of_container(item, granted if stays else None)
        init_containers.append(InitContainer(requests, stays))
    whole = section(spec, "resources")
    return pod_requests(
        containers,
        init_containers,
        of_pod=_of_whole_pod(whole, granted),
        limits_of_pod=read_amounts(whole.get("limits")),
        overhead=read_amounts(spec.get("overhead")),
    )


class _Granted:
    """What the kubelet has granted to each container of a pod, and to the pod as a whole."""

    def __init__(self, status: Raw) -> None:
        self._is_final = _is_infeasible(status)
        self._whole = status
        self._statuses: dict[str, Raw] = {}
        for key in ("containerStatuses", "initContainerStatuses"):
            for item in status.get(key) or ():
                self._statuses[item["name"]] = item

    def to_container(self, name: str, asked: Resources) -> Resources:
        return self._most(self._statuses.get(name, {}), asked)

    def to_whole_pod(self, asked: Resources) -> Resources:
        return self._most(self._whole, asked)

    def _most(self, status: Raw, asked: Resources) -> Resources:
        """Of what it has, what it was promised and what it is to have."""
        if status.get("resources") is None:
            return asked
        given = (status["resources"].get("requests"), status.get("allocatedResources"))
        amounts = [read_amounts(quantities) for quantities in given]
        if not self._is_final:
            amounts.append(asked)
        return _largest(amounts)


def _is_infeasible(status: Raw) -> bool:
    """The kubelet has refused the resize: what the spec asks for will not come."""
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodResizePending" and condition.get("reason") == "Infeasible":
            return True
    return False


def _of_container(container: Raw, granted: _Granted | None) -> Resources:
    """A limit without a request is the request."""
    resources = section(container, "resources")
    asked = read_amounts({**section(resources, "limits"), **section(resources, "requests")})
    if granted is None:
        return asked
    return granted.to_container(container["name"], asked)


def _of_whole_pod(whole: Raw, granted: _Granted | None) -> Resources:
    """Only of the resources that are asked for the pod as a whole."""
    asked = read_amounts(whole.get("requests"))
    if granted is None or not asked:
        return asked
    most = granted.to_whole_pod(asked)
    return Resources({name: most.get(name, 0) for name in asked})


def _largest(amounts: list[Resources]) -> Resources:
    first = amounts[0]
    if all(other == first for other in amounts):
        return first
    most: dict[str, int] = {}
    for part in amounts:
        for name, amount in part.items():
            most[name] = max(amount, most.get(name, 0))
    return Resources(most)


def _terminated_states(status: Raw) -> list[dict[str, Any]]:
    """Of the containers that have ended for good, each with its name; not of sidecars."""
    found: list[dict[str, Any]] = []
    for item in status.get("containerStatuses") or ():
        ended = section(item, "state").get("terminated")
        if ended:
            found.append({**ended, "name": item["name"]})
    return found


def _exit_code(status: Raw, ended: list[dict[str, Any]]) -> int | None:
    """Of the first container that failed; 0 once all have ended well."""
    for state in ended:
        if state.get("exitCode"):
            return int(state["exitCode"])
    if ended and len(ended) == len(status["containerStatuses"]):
        return 0
    return None


def _message(status: Raw, ended: list[dict[str, Any]]) -> str:
    """Of the pod, else of the first container that failed: "main: OOMKilled"."""
    told = status.get("message")
    if told:
        return str(told)
    for state in ended:
        if state.get("exitCode"):
            words = state.get("message") or state.get("reason") or "failed"
            return f"{state['name']}: {words}"
    return _waiting_message(status)


_USUAL_WAITS: Final = ("ContainerCreating", "PodInitializing", "")


def _waiting_message(status: Raw) -> str:
    """Why a container does not start: "main: ImagePullBackOff: Back-off pulling image"."""
    for key in ("initContainerStatuses", "containerStatuses"):
        for item in status.get(key) or ():
            waiting = section(section(item, "state"), "waiting")
            reason = waiting.get("reason", "")
            if reason not in _USUAL_WAITS:
                words = waiting.get("message") or ""
                return f"{item['name']}: {reason}: {words}".removesuffix(": ")
    return ""


def _started(status: Raw) -> datetime | None:
    """When its first container began to run."""
    moments: list[str] = []
    for item in status.get("containerStatuses") or ():
        state = section(item, "state")
        current = state.get("running") or state.get("terminated") or {}
        if current.get("startedAt"):
            moments.append(current["startedAt"])
    if moments:
        return read_moment(min(moments))
    return None


def _latest(ended: list[dict[str, Any]], key: str) -> datetime | None:
    moments = [state[key] for state in ended if state.get(key)]
    if moments:
        return read_moment(max(moments))
    return None


def _scheduled_condition(status: Raw) -> Condition | None:
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled":
            return read_condition(condition)
    return None


def _preemption_message(status: Raw) -> str:
    """All schedulers say it in the same way. A drain is another reason."""
    for condition in status.get("conditions") or ():
        reason = str(condition.get("reason", ""))
        if condition["type"] == "DisruptionTarget" and reason.endswith(_BY_SCHEDULER):
            return str(condition.get("message") or reason)
    return ""
