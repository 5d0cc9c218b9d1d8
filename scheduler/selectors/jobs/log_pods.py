"""The pods whose logs are read: one, or some of a gang."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db.models import QuerySet

from scheduler.domain.jobs.phases import FINISHED
from scheduler.models import Pod, PodGroup

MOST_PODS: Final = 10
_ENDED: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class FoundPods:
    """`left_out` are more than can be read at once. `is_over`: no more will be made or started."""

    pods: list[Pod]
    left_out: int
    is_over: bool


@dataclass(frozen=True, slots=True)
class LogPods:
    """Of the gang with this number: the pod of this name, or those of a task, or all."""

    gang: int
    pod: str = ""
    task: str = ""
    index: int | None = None

    @property
    def is_single(self) -> bool:
        return bool(self.pod)

    def now(self) -> FoundPods:
        wanted = self._wanted()
        pods = list(wanted[: MOST_PODS + 1])
        left_out = 0
        if len(pods) > MOST_PODS:
            left_out = wanted.count() - MOST_PODS
        return FoundPods(pods[:MOST_PODS], left_out, self._is_over(pods))

    def _wanted(self) -> QuerySet[Pod]:
        pods = Pod.objects.filter(podgroup_id=self.gang).order_by("task", "index", "pk")
        if self.pod:
            pods = pods.filter(name=self.pod)
        if self.task:
            pods = pods.filter(task=self.task)
        if self.index is not None:
            pods = pods.filter(index=self.index)
        return pods.select_related("podgroup__queue", "podgroup__job", "node")

    def _is_over(self, pods: list[Pod]) -> bool:
        gang = PodGroup.objects.filter(pk=self.gang).select_related("job").first()
        if gang is None:
            return True
        if gang.job is not None:
            return gang.job.phase in FINISHED  # a job that was cancelled has no pods any more
        return bool(pods) and all(pod.phase in _ENDED for pod in pods)

    def ending(self) -> str:
        """How the gang has ended, in a sentence."""
        gang = PodGroup.objects.filter(pk=self.gang).select_related("job").first()
        if gang is None:
            return "The job was deleted."
        if gang.job is None:
            return f"The pods of {gang} have ended."
        return f"The job {gang} has ended: {gang.job.phase}."
