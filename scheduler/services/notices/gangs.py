"""What is said of jobs and gangs: they started, were evicted, finished or failed.

Each function asks first whether anybody wants to know, and returns at once if nobody does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q

from scheduler.domain.notices import Note, NoticeKind
from scheduler.domain.queues import ROOT
from scheduler.models import Job, PodGroup
from scheduler.models.workload import FINISHED_JOB_PHASES
from scheduler.selectors.notices.rules import watches_of
from scheduler.services.notices.publish import publish

LATE: Final = timedelta(minutes=10)
"""What a cluster tells of a longer time ago is not news."""
STEP: Final = 2000

_ENDS: Final = {
    "Completed": (NoticeKind.JOB_FINISHED, "has finished"),
    "Terminated": (NoticeKind.JOB_FINISHED, "was ended"),
    "Failed": (NoticeKind.JOB_FAILED, "has failed"),
}
"""By phase. An Aborted job is only suspended."""


def say_session(
    started: Collection[int],
    ended: Collection[int],
    evicted: Mapping[int, str],
    number: int,
) -> None:
    """What a session did to gangs, by the keys of their rows. Of those evicted, why.

    `ended` counts where they have no job: a job says so itself.
    """
    if not (started or ended or evicted):
        return
    kinds = {NoticeKind.JOB_STARTED, NoticeKind.JOB_FINISHED, NoticeKind.JOB_EVICTED}
    watches = watches_of(kinds)
    notes: list[Note] = []
    if NoticeKind.JOB_STARTED in watches:
        notes += _started(started, f"session-{number}")
    if NoticeKind.JOB_EVICTED in watches:
        notes += _evicted(evicted, number)
    if NoticeKind.JOB_FINISHED in watches:
        notes += _gangs_ended(ended)
    publish(notes, watches)


def _started(ids: Collection[int], when: str) -> Iterator[Note]:
    for gang in _gangs(ids):
        yield _note(
            gang,
            NoticeKind.JOB_STARTED,
            f"started:{gang.uid}:{when}",
            "has started",
            f"It runs in the queue {gang.queue.name or ROOT}.",
        )


def _evicted(reasons: Mapping[int, str], number: int) -> Iterator[Note]:
    for gang in _gangs(reasons):
        yield _note(
            gang,
            NoticeKind.JOB_EVICTED,
            f"evicted:{gang.uid}:session-{number}",
            "lost pods",
            reasons[gang.pk],
        )


def _gangs_ended(ids: Collection[int]) -> Iterator[Note]:
    for gang in _gangs(ids):
        if gang.job_id is None:
            yield _note(
                gang,
                NoticeKind.JOB_FINISHED,
                f"Completed:{gang.uid}:{gang.finished_at}",
                "has finished",
            )


def _gangs(ids: Collection[int]) -> Iterator[PodGroup]:
    keys = list(ids)
    for first in range(0, len(keys), STEP):
        rows = PodGroup.objects.filter(pk__in=keys[first : first + STEP])
        yield from rows.select_related("queue").defer("pod_conditions", "reason_checks")


def say_jobs_moved(moved: Iterable[tuple[Job, str]]) -> None:
    """Jobs as they are now, with the phase that each had before."""
    ended = [job for job, before in moved if job.phase != before and job.phase in _ENDS]
    _say_jobs_ended(ended)


def say_mirrored(keys: Iterable[str], now: datetime, *, starts: bool) -> None:
    """What a real cluster told of these gangs ("namespace/name").

    With `starts` another scheduler places the pods: then no session says that a gang has started.
    """
    names = list(keys)
    kinds = {NoticeKind.JOB_STARTED, NoticeKind.JOB_FINISHED, NoticeKind.JOB_FAILED}
    watches = watches_of(kinds)
    if not names or not watches:
        return
    named = _named(names)
    jobs = Job.objects.filter(named, finished_at__gte=now - LATE, phase__in=FINISHED_JOB_PHASES)
    notes = list(_jobs_ended(jobs.select_related("queue")))
    if starts and NoticeKind.JOB_STARTED in watches:
        running = PodGroup.objects.filter(named, phase="Running", started_at__gte=now - LATE)
        for pk, at in running.values_list("pk", "started_at"):
            notes += _started([pk], str(at))
    publish(notes, watches)


def _named(keys: Sequence[str]) -> Q:
    by_namespace: dict[str, list[str]] = {}
    for key in keys:
        namespace, _, name = key.partition("/")
        by_namespace.setdefault(namespace, []).append(name)
    found = Q()
    for namespace, names in by_namespace.items():
        found |= Q(namespace=namespace, name__in=names)
    return found


def _say_jobs_ended(jobs: Sequence[Job]) -> None:
    if not jobs:
        return
    watches = watches_of({NoticeKind.JOB_FINISHED, NoticeKind.JOB_FAILED})
    if watches:
        publish(_jobs_ended(jobs), watches)


def _jobs_ended(jobs: Iterable[Job]) -> Iterator[Note]:
    for job in jobs:
        if job.phase in _ENDS:
            kind, words = _ENDS[job.phase]
            key = f"{job.phase}:{job.uid}:{job.finished_at}"
            yield _note(job, kind, key, words, _as_sentence(job.shown_message))


def _as_sentence(words: str) -> str:
    if not words:
        return ""
    return f"{words[0].upper()}{words[1:].removesuffix('.')}."


def _note(
    thing: Job | PodGroup,
    kind: NoticeKind,
    key: str,
    words: str,
    message: str = "",
) -> Note:
    return Note(
        kind,
        key,
        f"Job {thing.namespace}/{thing.name} {words}",
        message,
        queue=thing.queue.name,
        namespace=thing.namespace,
        name=thing.name,
        owner=thing.owner,
    )
