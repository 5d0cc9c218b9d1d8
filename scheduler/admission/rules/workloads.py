"""May this job, podgroup or pod go into that queue?

One check of the queue for every kind of work and every door.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from scheduler.admission.facts import QUEUE_ANNOTATION, Facts
from scheduler.admission.reading.queue import Reading
from scheduler.admission.reading.waiting_times import check_waiting_time
from scheduler.admission.reading.workload import (
    JobManifest,
    PodGroupManifest,
    PodManifest,
    read_job,
    read_pod,
    read_podgroup,
)
from scheduler.admission.rules.backlogs import check_backlogs, check_room, check_run_time
from scheduler.admission.rules.job_changes import check_job_change, stays_in_queue
from scheduler.admission.rules.jobs import check_job_itself, check_size
from scheduler.admission.rules.known_queues import unknown_queue
from scheduler.admission.rules.namespaces import check_namespace
from scheduler.admission.violations import Verdict, Violation, without_repeats
from scheduler.domain.lifecycle import TAKES_WORK
from scheduler.domain.plans import counted
from scheduler.domain.queues import DEFAULT, ROOT, QueueState, QueueTree

T = TypeVar("T")

_BUDGETS = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")


def check_queue_takes_work(
    queue: str,
    tree: QueueTree,
    facts: Facts,
    *,
    field: str = "spec.queue",
    again: bool = False,
) -> Iterator[Violation]:
    """The queue is there, is a leaf and not root, and is Open or Suspended.

    `again` is for work that was admitted before and comes back (a job that restarts): it may also
    return to a Closing queue.
    """
    if queue not in tree:
        yield unknown_queue(queue, field)
        return
    if queue == ROOT:
        yield Violation(
            "queue_is_root",
            queue,
            field,
            "root takes no work of its own; it only holds other queues.",
            "name a leaf queue",
        )
        return
    children = tree.children(queue)
    if children:
        message = (
            f"{queue} has {counted(len(children), 'child', 'children')} and takes no work of its "
            "own; only a leaf queue does."
        )
        yield Violation(
            "queue_not_leaf",
            queue,
            field,
            message,
            f"name a queue below {queue}, such as {children[0].name}",
        )
    yield from _check_state(queue, facts, field, again)


def _check_state(queue: str, facts: Facts, field: str, again: bool) -> Iterator[Violation]:
    state = facts.states.get(queue)
    if state in TAKES_WORK or (again and state is QueueState.CLOSING):
        return
    if state:
        shown = state.value
    else:
        shown = "in no state yet"
    message = f"{queue} is {shown} and takes no jobs; a queue must be Open or Suspended for that."
    yield Violation("queue_not_open", queue, field, message, f"open {queue}, or name another queue")


def admit_job(manifest: object, tree: QueueTree, facts: Facts) -> Verdict:
    """A job that is to be created."""
    return job_verdict(read_job(manifest, facts), tree, facts)


def job_verdict(reading: Reading[JobManifest], tree: QueueTree, facts: Facts) -> Verdict:
    shape = Verdict(reading.violations, reading.notices)
    if reading.value is None:
        return shape
    job = reading.value
    rules = [
        *check_queue_takes_work(job.queue, tree, facts),
        *check_namespace(job.queue, job.metadata.namespace, facts),
        *check_job_itself(job),
        *check_room(
            job.metadata.name,
            job.queue,
            facts,
            jobs=1,
            pods=job.replicas,
            more=job.replicas,
        ),
        *check_run_time(job.metadata.name, job.queue, _declared_seconds(job), facts),
    ]
    return shape + Verdict(without_repeats(rules))


def _declared_seconds(job: JobManifest) -> float | None:
    """How long its longest task says that it runs; None where none says so."""
    known = [task.template.run_seconds for task in job.tasks]
    return max((seconds for seconds in known if seconds is not None), default=None)


def admit_job_change(manifest: object, old_manifest: object, facts: Facts) -> Verdict:
    """A job that is to be changed; `old_manifest` is it as stored.

    A flaw that it had before does not keep it from being changed.
    """
    reading = read_job(manifest, facts)
    old = read_job(old_manifest, facts)
    known = set(old.violations)
    shape = Verdict(
        tuple(violation for violation in reading.violations if violation not in known),
        reading.notices,
    )
    if (
        reading.value is None
        or not isinstance(manifest, Mapping)
        or not isinstance(old_manifest, Mapping)
    ):
        return shape
    changes = check_job_change(reading.value, manifest, old_manifest, facts)
    if old.value:
        before = old.value.metadata.annotations
    else:
        before = {}
    waiting = check_waiting_time(reading.value.metadata.annotations, reading.value.queue, before)
    growth = _check_growth(reading.value, old.value, facts)
    return shape + Verdict(
        without_repeats([*changes, *check_size(reading.value), *growth, *waiting])
    )


def _check_growth(
    job: JobManifest,
    before: JobManifest | None,
    facts: Facts,
) -> Iterator[Violation]:
    """A job that gets more pods is asked like a new one.

    One that was too large before may become smaller.
    """
    more = job.replicas
    if before:
        more -= before.replicas
    if more > 0:
        yield from check_room(
            job.metadata.name,
            job.queue,
            facts,
            jobs=0,
            pods=job.replicas,
            more=more,
            field="spec.tasks",
        )


def admit_podgroup(
    manifest: object,
    tree: QueueTree,
    facts: Facts,
    *,
    again: bool = False,
) -> Verdict:
    """A podgroup that is to be created."""
    return podgroup_verdict(read_podgroup(manifest, facts), tree, facts, again=again)


def podgroup_verdict(
    reading: Reading[PodGroupManifest],
    tree: QueueTree,
    facts: Facts,
    *,
    again: bool = False,
) -> Verdict:
    shape = Verdict(reading.violations, reading.notices)
    if reading.value is None:
        return shape
    queue = reading.value.queue
    rules = [
        *_check_named_queue(queue, tree, facts, again=again),
        *check_namespace(queue, reading.value.metadata.namespace, facts),
        *check_waiting_time(reading.value.metadata.annotations, queue),
        *check_backlogs(queue, facts, jobs=1, pods=0),
    ]
    return shape + Verdict(tuple(rules))


def _check_named_queue(
    queue: str,
    tree: QueueTree,
    facts: Facts,
    *,
    field: str = "spec.queue",
    again: bool = False,
) -> Iterator[Violation]:
    # work that names no queue is never refused for want of the default one
    if queue == DEFAULT and DEFAULT not in tree:
        return
    yield from check_queue_takes_work(queue, tree, facts, field=field, again=again)


def admit_podgroup_change(manifest: object, old_manifest: object, facts: Facts) -> Verdict:
    """A podgroup stays in the queue it was admitted to."""
    reading = read_podgroup(manifest, facts)
    old = read_podgroup(old_manifest, facts, is_new=False)
    shape = Verdict(reading.violations, reading.notices)
    if (
        reading.value is None
        or old.value is None
        or not isinstance(manifest, Mapping)
        or not isinstance(old_manifest, Mapping)
    ):
        return shape
    before = old.value.metadata.annotations
    shape += Verdict(
        tuple(check_waiting_time(reading.value.metadata.annotations, reading.value.queue, before))
    )
    if stays_in_queue(manifest, old_manifest, facts):
        return shape
    message = (
        f"spec.queue of {reading.value.metadata.name} cannot be changed from {old.value.queue} to "
        f"{reading.value.queue}."
    )
    fix = f"write {old.value.queue}, or create the podgroup again"
    return shape + Verdict(
        (Violation("immutable_field_changed", reading.value.queue, "spec.queue", message, fix),)
    )


def admit_pod(manifest: object, tree: QueueTree, facts: Facts) -> Verdict:
    """A pod that is to be created.

    One of another scheduler is none of our business; one of a gang was admitted with its podgroup.
    """
    if _scheduler_of(manifest) not in facts.scheduler_names:
        return Verdict()
    reading = read_pod(manifest)
    shape = Verdict(reading.violations, reading.notices)
    if reading.value is None:
        return shape
    return shape + Verdict(
        without_repeats(
            [*_check_budgets(reading.value), *_check_bare_pod(reading.value, tree, facts)]
        )
    )


def _scheduler_of(manifest: object) -> object:
    if isinstance(manifest, Mapping):
        spec = manifest.get("spec")
    else:
        spec = None
    if isinstance(spec, Mapping):
        name = spec.get("schedulerName")
    else:
        name = None
    if isinstance(name, str):
        return name
    return ""


def _check_bare_pod(pod: PodManifest, tree: QueueTree, facts: Facts) -> Iterator[Violation]:
    if pod.podgroup:
        return
    queue = pod.queue or facts.queue_of_namespace(pod.metadata.namespace) or DEFAULT
    field = f"metadata.annotations[{QUEUE_ANNOTATION}]"
    yield from _check_named_queue(queue, tree, facts, field=field)
    yield from check_namespace(queue, pod.metadata.namespace, facts)
    yield from check_waiting_time(pod.metadata.annotations, queue)
    yield from check_backlogs(queue, facts, jobs=1, pods=1, field=field)


def _check_budgets(pod: PodManifest) -> Iterator[Violation]:
    """The disruption budget: one of two annotations, a count or a part from 1% to 99%."""
    given = [key for key in _BUDGETS if key in pod.metadata.annotations]
    for key in given:
        value = pod.metadata.annotations[key]
        if not _is_budget(value):
            message = f"{key} is {value[:40]}; it must be a whole number above 0 or from 1% to 99%."
            yield Violation(
                "invalid_disruption_budget",
                pod.queue,
                f"metadata.annotations[{key}]",
                message,
                "write 1, or 50%",
            )
    if len(given) > 1:
        message = f"{given[0]} and {given[1]} cannot be given together."
        yield Violation(
            "invalid_disruption_budget",
            pod.queue,
            "metadata.annotations",
            message,
            "leave one of them out",
        )


def _is_budget(text: str) -> bool:
    digits = text.removesuffix("%")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 9):
        return False
    most = 2**31 - 1
    if text.endswith("%"):
        most = 99
    return 1 <= int(digits) <= most
