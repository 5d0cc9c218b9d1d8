"""A job of the cluster and what belongs to it at one moment, as the rules of its life see it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduler.admission.reading.workload import TaskManifest
from scheduler.clusters.kubernetes.job_objects import TASK_RESTART
from scheduler.clusters.kubernetes.read.common import whole_number
from scheduler.clusters.kubernetes.values import (
    CommandObject,
    JobObject,
    PodGroupObject,
    PodObject,
    PodPhase,
)
from scheduler.domain.jobs.dependencies import Dependency, dependency_of
from scheduler.domain.jobs.facts import DEFAULT_MAX_RETRY, JobFacts, TaskCount
from scheduler.domain.jobs.phases import AFTER_STOPPING, FINISHED, JobPhase
from scheduler.domain.jobs.policies import JobEvent
from scheduler.domain.jobs.reactions import PolicyEvent
from scheduler.services.cluster.jobs.restarts import TaskRestarts, read_restarts

_NO_LIMIT_OF_ITS_OWN = (-1, DEFAULT_MAX_RETRY)


@dataclass(frozen=True, slots=True)
class Situation:
    """`pods` are those that the job owns. `commands` to it are oldest first."""

    job: JobObject
    now: datetime
    pods: tuple[PodObject, ...] = ()
    podgroup: PodGroupObject | None = None
    commands: tuple[CommandObject, ...] = ()

    @property
    def phase(self) -> JobPhase:
        """One that nobody has looked at yet is Pending."""
        try:
            return JobPhase(self.job.phase)
        except ValueError:
            return JobPhase.PENDING

    @property
    def is_live(self) -> bool:
        """Whether it is to have pods."""
        return self.phase not in FINISHED and self.phase not in AFTER_STOPPING

    @property
    def controlled(self) -> Mapping[str, str]:
        return self.job.status.get("controlledResources") or {}

    def restarts(self, task: str) -> TaskRestarts:
        return read_restarts(self.controlled, task)

    # Pods

    def is_leftover(self, pod: PodObject) -> bool:
        """Of an earlier run of the job or of its task."""
        if (pod.job_version or 0) < self.job.version:
            return True
        made_after = whole_number(pod.meta.annotations.get(TASK_RESTART)) or 0
        return self.restarts(pod.task).means(pod.task_index or 0, made_after)

    def is_surplus(self, pod: PodObject) -> bool:
        """Of a task that is gone or has fewer pods by now."""
        task = self.task(pod.task)
        return task is None or (pod.task_index or 0) >= task.replicas

    def task(self, name: str) -> TaskManifest | None:
        return next((task for task in self.job.job.tasks if task.name == name), None)

    def current_pods(self, task: str) -> list[PodObject]:
        found = []
        for pod in self.pods:
            if pod.task == task and not self.is_leftover(pod) and not self.is_surplus(pod):
                found.append(pod)
        return found

    def unfinished_restarts(self, task: str) -> set[int]:
        """Numbers of pods that had to go for an earlier restart and are still there."""
        found = set()
        for pod in self.pods:
            if pod.task == task and self.is_leftover(pod):
                found.add(pod.task_index or 0)
        return found

    # Facts

    def facts(self) -> JobFacts:
        job = self.job.job
        if self.is_live:
            tasks = tuple(self._live_count(task) for task in job.tasks)
        else:
            tasks = tuple(self._leaving_counts())
        return JobFacts(
            phase=self.phase,
            min_available=job.min_available,
            tasks=tasks,
            dependencies={task.name: self._dependency(task) for task in job.tasks},
            min_success=job.min_success,
            retry_count=self.job.retry_count,
            max_retry=job.max_retry,
        )

    def _dependency(self, task: TaskManifest) -> Dependency:
        return dependency_of({"dependsOn": task.depends_on})

    def _live_count(self, task: TaskManifest) -> TaskCount:
        """A pod that is still to be made waits."""
        pods = self.current_pods(task.name)
        counts = Counter(_counted_as(pod) for pod in pods)
        created = self._has_begun(task, pods)
        if created:
            counts["pending"] += task.replicas - len(pods)
        return self._task_count(task, counts, created=created)

    def _has_begun(self, task: TaskManifest, pods: list[PodObject]) -> bool:
        if pods or not task.replicas or not self._dependency(task).names:
            return True
        return bool(self.restarts(task.name).retries or self.unfinished_restarts(task.name))

    def _leaving_counts(self) -> Iterator[TaskCount]:
        """While it stops, only whether pods are left matters."""
        left = [pod for pod in self.pods if not pod.is_finished]
        for number, task in enumerate(self.job.job.tasks):
            own = sum(1 for pod in left if pod.task == task.name)
            if not number:  # those of tasks that are gone have to leave too
                own += sum(1 for pod in left if self.task(pod.task) is None)
            yield self._task_count(task, {"leaving": own}, created=True)

    def _task_count(
        self, task: TaskManifest, counts: Mapping[str, int], *, created: bool
    ) -> TaskCount:
        most = None
        if task.max_retry not in _NO_LIMIT_OF_ITS_OWN:
            most = task.max_retry
        return TaskCount(
            task.name,
            task.replicas,
            task.min_available,
            created=created,
            retries=self.restarts(task.name).retries,
            max_retry=most,
            **counts,
        )

    # Events

    def events(self) -> list[PolicyEvent]:
        """What has happened to its pods, each thing once. What was answered is no event any more:
        the answer has made leftovers of the pods.
        """
        found: dict[PolicyEvent, None] = {}
        for task in self.job.job.tasks:
            pods = self.current_pods(task.name)
            for pod in pods:
                if event := _event_of(pod):
                    found[event, task.name, _code_of(pod, event)] = None
            if self._counted_before(task.name) > len(pods):
                found[JobEvent.POD_EVICTED, task.name, None] = None
        if self._is_unknown():
            found[JobEvent.JOB_UNKNOWN, "", None] = None
        return list(found)

    def _counted_before(self, task: str) -> int:
        """How many pods the status tells of: if there are fewer, some went unseen."""
        counts: Mapping[str, Any] = self.job.status.get("taskStatusCount") or {}
        told: Mapping[str, int] = (counts.get(task) or {}).get("phase") or {}
        manifest = self.task(task)
        if manifest is None:
            return 0
        return min(manifest.replicas, sum(told.values()))

    def _is_unknown(self) -> bool:
        """A part of the gang was lost while the rest runs on."""
        if self.podgroup is None or self.podgroup.phase != "Unknown":
            return False
        facts = self.facts()
        return facts.total("running") > 0 and facts.total("running") < facts.min_available


def _counted_as(pod: PodObject) -> str:
    if pod.meta.deleted and not pod.is_finished:
        return "leaving"
    if pod.phase is PodPhase.PENDING:
        return "placed" if pod.node else "pending"
    return _COUNTED_AS[pod.phase]


_COUNTED_AS = {
    PodPhase.RUNNING: "running",
    PodPhase.UNKNOWN: "running",
    PodPhase.SUCCEEDED: "succeeded",
    PodPhase.FAILED: "failed",
}


def _event_of(pod: PodObject) -> JobEvent | None:
    """Whoever evicts a pod deletes it; it may fail before it is gone."""
    if pod.phase is PodPhase.SUCCEEDED:
        return None
    if pod.meta.deleted:
        return JobEvent.POD_EVICTED
    if pod.phase is PodPhase.FAILED:
        return JobEvent.POD_FAILED
    return None


def _code_of(pod: PodObject, event: JobEvent) -> int | None:
    if event is JobEvent.POD_FAILED:
        return pod.exit_code
    return None
