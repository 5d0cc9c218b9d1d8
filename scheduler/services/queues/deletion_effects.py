"""What deleting queues takes along, and what it leaves: said before it is done, and afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scheduler.domain.plans import counted
from scheduler.models import Grant, Job, PodGroup


@dataclass(frozen=True, slots=True)
class Aftermath:
    """Records of jobs and podgroups stay; the roles that were granted on the queues go.

    A suspended job stays as a record too, but it has no queue to be resumed in.
    """

    jobs: int = 0
    podgroups: int = 0
    suspended_jobs: int = 0
    grants: int = 0

    @property
    def sentence(self) -> str:
        """What there is none of is not mentioned."""
        return " ".join(self.sentences)

    @property
    def sentences(self) -> list[str]:
        sentences = []
        if self.jobs:
            sentences.append(
                f"{_several(self.jobs, 'job record', 'stays', 'stay')} and can be found by the "
                "queue's name."
            )
        if self.suspended_jobs:
            sentences.append(
                f"{counted(self.suspended_jobs, 'suspended job')} cannot be resumed any more."
            )
        if self.grants:
            sentences.append(f"{_several(self.grants, 'role', 'goes', 'go')} with the queue.")
        return sentences


def _several(number: int, noun: str, one: str, many: str) -> str:
    if number == 1:
        return f"1 {noun} {one}"
    return f"{counted(number, noun)} {many}"


def aftermath_of(queues: Iterable[str]) -> Aftermath:
    place = {"queue__name__in": list(queues), "queue__deleted_at": None}
    jobs = Job.objects.filter(**place)
    return Aftermath(
        jobs=jobs.count(),
        podgroups=PodGroup.objects.filter(**place).count(),
        suspended_jobs=jobs.filter(phase="Aborted").count(),
        grants=Grant.objects.filter(**place).count(),
    )
