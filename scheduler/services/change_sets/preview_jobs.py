"""Jobs that a preview tries out as if they were submitted now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from scheduler.admission.facts import Facts
from scheduler.admission.reading.workload import JobManifest, read_job, read_podgroup
from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.queues import DEFAULT, ROOT, QueueState, QueueTree
from scheduler.domain.resources import Resources
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import Actor, submitter
from scheduler.services.files.items import Item
from scheduler.services.files.merge import readable
from scheduler.services.jobs.submit import check_job
from scheduler.services.jobs.trial_jobs import MOST_PODS, label_keys, name_taken

JOB: Final = "Job"
PODGROUP: Final = "PodGroup"
TRIED: Final = (JOB, PODGROUP)
MOST_JOBS: Final = 100


def job_manifests(given: Sequence[Item]) -> list[dict[str, Any]]:
    """These documents as jobs. Raises `Rejected` with every flaw of shape."""
    problems: list[Violation] = []
    found: list[dict[str, Any]] = []
    for item in given:
        try:
            if item.contradicts is not None:
                message = f"{item.name} is named twice."
                raise Rejected([Violation("named_twice", "", "metadata.name", message)])
            found.append(_as_job(item))
        except Rejected as refusal:
            problems += [_placed(problem, item.index) for problem in refusal.violations]
    if len(given) > MOST_JOBS:
        message = f"A preview tries out at most {MOST_JOBS} jobs, not {len(given)}."
        problems.append(Violation("too_many", "", "documents", message, "leave some out"))
    if problems:
        raise Rejected(problems)
    return found


def _placed(violation: Violation, index: int) -> Violation:
    """With its place in the file, if it is not the first one there."""
    if not index:
        return violation
    return replace(violation, field=f"[{index}].{violation.field}".rstrip("."))


def _as_job(item: Item) -> dict[str, Any]:
    if item.kind == PODGROUP:
        return _job_of_podgroup(item.manifest)
    return dict(item.manifest)


def _job_of_podgroup(manifest: Any) -> dict[str, Any]:
    """A podgroup does not say what its pods are like: `minMember` of them share `minResources`."""
    group = readable(read_podgroup(manifest, Facts()))
    if not group.min_resources:
        message = "spec.minResources must say what the podgroup needs: it is tried out by that."
        fix = "write minResources, or give a Job"
        raise Rejected([Violation("required", "", "spec.minResources", message, fix)])
    shares = {}
    for resource, amount in group.min_resources.items():
        if resource != "pods":
            shares[resource] = -(-amount // group.min_member)
    requests = Resources(shares).to_quantities()
    container = {"name": "pod", "image": "pod", "resources": {"requests": requests}}
    task = {
        "name": "pod",
        "replicas": group.min_member,
        "template": {"spec": {"containers": [container]}},
    }
    spec = {"queue": group.queue, "minAvailable": group.min_member, "tasks": [task]}
    if group.priority_class:
        spec["priorityClassName"] = group.priority_class
    metadata = {"name": group.metadata.name, "namespace": group.metadata.namespace or DEFAULT}
    return {
        "kind": JOB,
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "metadata": metadata,
        "spec": spec,
    }


def admitted_jobs(
    manifests: Iterable[Mapping[str, Any]],
    by: Actor,
    tree: QueueTree | None = None,
    states: Mapping[str, QueueState] | None = None,
) -> tuple[JobManifest, ...]:
    """As submitting would read and judge them, on the tree as it is or as it would be.

    Raises `Forbidden`, and `Rejected` with every violation.
    """
    problems: list[Violation] = []
    found: list[JobManifest] = []
    for index, manifest in enumerate(manifests):
        job, violations, _ = check_job(manifest, submitter(by), tree, states)
        if job is not None:
            access.require_to_submit(by, job.queue)
            violations += (*name_taken(job), *_too_large(job), *_named_twice(job, found))
            found.append(job)
        problems += [_placed(problem, index) for problem in violations]
    if problems:
        raise Rejected(problems)
    return tuple(found)


def _too_large(job: JobManifest) -> Iterable[Violation]:
    if job.replicas > MOST_PODS:
        message = (
            f"A gang of {job.replicas} pods is too large to be tried out; {MOST_PODS} is the most."
        )
        yield Violation("too_many", job.queue, "spec.tasks", message)


def _named_twice(job: JobManifest, others: Iterable[JobManifest]) -> Iterable[Violation]:
    if key_of(job) in {key_of(other) for other in others}:
        message = f"{key_of(job)} is named twice."
        yield Violation("named_twice", job.queue, "metadata.name", message, "choose another name")


def key_of(job: JobManifest) -> str:
    return f"{job.metadata.namespace or DEFAULT}/{job.metadata.name}"


def with_new_queues(by: Actor, tree: QueueTree) -> Actor:
    """The same caller, who has the same rights on queues that are still to be made as on those
    above them.
    """
    mine = access.access_for(by)
    parents = dict(mine.parents)
    for spec in tree:
        if spec.name != ROOT:
            parents.setdefault(spec.name, spec.parent or ROOT)
    return replace(by, access=replace(mine, parents=parents))


def labels_of(manifests: Iterable[Mapping[str, Any]]) -> frozenset[str] | None:
    """The labels that rules of their pods look at, as far as they can be read."""
    read = [read_job(manifest, Facts()).value for manifest in manifests]
    return label_keys(job for job in read if job is not None)
