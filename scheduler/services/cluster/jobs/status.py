"""The status of a Job, as Volcano's controller writes it: what is to be sent, as a merge patch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from scheduler.clusters.kubernetes.values import PodPhase
from scheduler.domain.jobs.facts import JobStep
from scheduler.domain.jobs.phases import FINISHED, JobPhase
from scheduler.services.cluster.jobs.restarts import LAST_COMMAND, PREFIX
from scheduler.services.cluster.jobs.situation import Situation

Status = dict[str, Any]

MOST_CONDITIONS: Final = 50
"""A job that is started again all the time would grow without end."""
_COUNTED: Final = {
    PodPhase.PENDING: "pending",
    PodPhase.RUNNING: "running",
    PodPhase.SUCCEEDED: "succeeded",
    PodPhase.FAILED: "failed",
    PodPhase.UNKNOWN: "unknown",
}


def counts_of(situation: Situation) -> Status:
    """How many pods have come how far. A pod that is leaving counts as nothing else."""
    counts: Counter[str] = Counter()
    by_task: dict[str, Counter[str]] = {}
    for pod in situation.pods:
        if situation.is_leftover(pod) or situation.is_surplus(pod):
            continue
        if pod.meta.deleted:
            counts["terminating"] += 1
            continue
        counts[_COUNTED[pod.phase]] += 1
        by_task.setdefault(pod.task, Counter())[pod.phase.value] += 1
    status: Status = {key: counts[key] for key in (*_COUNTED.values(), "terminating")}
    status["taskStatusCount"] = {task: {"phase": dict(each)} for task, each in by_task.items()}
    status["minAvailable"] = situation.job.job.min_available
    return status


def status_after(
    situation: Situation, steps: Sequence[JobStep], *, command_uid: str = ""
) -> Status:
    """After these steps, in full, so far as we write it."""
    job = situation.job
    retries = job.retry_count
    version = job.version
    controlled = dict(situation.controlled)
    status = counts_of(situation)
    for step in steps:
        retries = 0 if step.forgives else retries + step.retries
        version += step.new_pods
        if step.forgives or step.new_pods:
            controlled = {key: text for key, text in controlled.items() if not _is_restart(key)}
        if step.new_pods or step.stop_pods:
            status["taskStatusCount"] = {}
        if step.again:
            controlled[PREFIX + step.again] = _restart_of(situation, step)
            status["taskStatusCount"].pop(step.again, None)
    if command_uid:
        controlled[LAST_COMMAND] = command_uid
    status["retryCount"] = retries
    status["version"] = version
    status["controlledResources"] = controlled
    return {**status, **_state_after(situation, steps)}


def _is_restart(key: str) -> bool:
    return key.startswith(PREFIX)


def _restart_of(situation: Situation, step: JobStep) -> str:
    """Only the pods that failed or were taken away, or all of the task."""
    restarts = situation.restarts(step.again)
    if not step.only_failed:
        return restarts.once_more(None, ())
    indexes = []
    for pod in situation.current_pods(step.again):
        if pod.phase is PodPhase.FAILED or pod.meta.deleted:
            indexes.append(pod.task_index or 0)
    return restarts.once_more(indexes, situation.unfinished_restarts(step.again))


def _state_after(situation: Situation, steps: Sequence[JobStep]) -> Status:
    """The phase with its moment, and the conditions. Nothing for no steps."""
    if not steps:
        return {}
    last = steps[-1]
    moment = situation.now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    state: Status = {"phase": last.phase.value, "message": last.message[:1024]}
    found: Status = {"state": state}
    if last.phase.value == situation.job.phase:
        return found
    state["lastTransitionTime"] = moment
    condition = {"status": last.phase.value, "lastTransitionTime": moment}
    before = situation.job.status.get("conditions") or []
    found["conditions"] = [*before, condition][-MOST_CONDITIONS:]
    if last.phase in FINISHED and situation.job.meta.created:
        found["runningDuration"] = _duration(situation.job.meta.created, situation.now)
    return found


def _duration(begin: datetime, end: datetime) -> str:
    """As Go writes one."""
    return f"{max(0, int((end - begin).total_seconds()))}s"


def first_status(situation: Situation) -> Status:
    """Of a job that nobody has looked at yet."""
    return status_after(situation, [JobStep(JobPhase.PENDING)])


def changes(before: Mapping[str, Any], wanted: Mapping[str, Any]) -> Status:
    """What differs, as a merge patch. A number that is not there counts as 0."""
    found: Status = {}
    for key, value in wanted.items():
        was = before.get(key)
        if isinstance(value, Mapping):
            inner = merged_changes(was or {}, value)
            if inner:
                found[key] = inner
        elif was != value and (value or was):
            found[key] = value
    return found


def merged_changes(before: Mapping[str, Any], wanted: Mapping[str, Any]) -> Status:
    """A key that is gone is taken out, except in the state, of which we do not write everything."""
    found = changes(before, wanted)
    if "phase" in wanted and isinstance(wanted["phase"], str):
        return found
    for key in before:
        if key not in wanted:
            found[key] = None
    return found
