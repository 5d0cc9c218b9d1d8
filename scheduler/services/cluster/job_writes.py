"""Jobs of a real cluster are written to its API server; the mirror brings the change in.

One place sends, whoever asked. Nothing is written to the tables first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from django.db import connection

from scheduler.admission.defaults import job_defaults, with_defaults
from scheduler.admission.facts import Facts
from scheduler.admission.reading.workload import JobManifest
from scheduler.admission.violations import Notice, Rejected
from scheduler.clusters.kubernetes.client import Client, Object, Timeouts
from scheduler.clusters.kubernetes.credentials import CredentialsError
from scheduler.clusters.kubernetes.errors import ApiError, Conflict, NotFound
from scheduler.clusters.kubernetes.resources import COMMANDS, JOBS
from scheduler.conf import conf, schedules_cluster
from scheduler.domain.jobs.policies import JobAction
from scheduler.models import Job
from scheduler.services.cluster.api_server import api_server
from scheduler.services.cluster.jobs.commands import RECORDED
from scheduler.services.cluster.mirror.object_rows import OWNER
from scheduler.services.cluster.queue_writes import SENT_TO_CLUSTER, are_queues_in_cluster
from scheduler.services.cluster.server_refusals import Attempt, refusal_of_server

MIRROR_SECONDS: Final = 2.0
_STEP_SECONDS: Final = 0.02
_PATIENCE_SECONDS: Final = 5.0
_TIMEOUTS: Final = Timeouts(connect=3.0, read=10.0)  # somebody waits at a page


def are_jobs_in_cluster() -> bool:
    """Whether a change of jobs is sent to a real cluster."""
    return schedules_cluster() and are_queues_in_cluster()


def sent_notice(queue: str) -> Notice:
    return Notice("sent_to_cluster", queue, SENT_TO_CLUSTER)


# New jobs


def send_new_job(
    manifest: Mapping[str, Any], reading: JobManifest, facts: Facts, owner: str
) -> Object:
    """As the API server stores it. Raises `Rejected`."""
    attempt = Attempt("job", reading.metadata.name, "created", reading.queue)
    namespace = reading.metadata.namespace or "default"
    body = stored_form(manifest, facts, owner)
    with _refusals_of(attempt) as client:
        try:
            return client.create(JOBS, body, namespace)
        except NotFound as problem:
            raise _nowhere(attempt, namespace, problem) from problem


def _nowhere(attempt: Attempt, namespace: str, problem: NotFound) -> Rejected:
    """Either the namespace is missing, or the kind is."""
    if problem.details.get("kind") == "namespaces":
        message = f"There is no namespace {namespace} in the cluster."
        fix = f"create it: kubectl create namespace {namespace}"
        return attempt.rejected("namespace_not_found", "metadata.namespace", message, fix)
    message = f"The cluster does not know jobs of Volcano ({JOBS.api_version})."
    fix = "install the definition: manage.py kubernetes install"
    return attempt.rejected("kind_not_in_cluster", "kind", message, fix)


def stored_form(manifest: Mapping[str, Any], facts: Facts, owner: str) -> dict[str, Any]:
    """With the defaults of creation, and with the name of whoever submits it.

    One that names no scheduler is for ours.
    """
    filled = with_defaults(manifest, job_defaults(manifest, facts))
    given: Mapping[str, Any] = manifest.get("metadata") or {}
    metadata = {key: given[key] for key in ("name", "labels") if given.get(key)}
    metadata["annotations"] = {**(given.get("annotations") or {}), OWNER: owner}
    spec = dict(filled["spec"])
    if not (manifest.get("spec") or {}).get("schedulerName"):
        spec["schedulerName"] = conf().kubernetes.scheduler_names[0]
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": metadata,
        "spec": spec,
    }


# Commands


def send_command(job: Job, action: JobAction) -> str:
    """The uid of the Command. Whoever controls the jobs there carries it out. Raises `Rejected`."""
    target = {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "name": job.name,
        "uid": str(job.uid),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    body = {
        "apiVersion": COMMANDS.api_version,
        "kind": COMMANDS.kind,
        "metadata": {
            "generateName": f"{job.name[:200]}-{action.value.lower()}-",
            "annotations": {RECORDED: "true"},
            "ownerReferences": [target],
        },
        "target": target,
        "action": action.value,
    }
    with _refusals_of(Attempt("job", job.name, "told", job.queue.name)) as client:
        made = client.create(COMMANDS, body, job.namespace)
    return str(made["metadata"]["uid"])


# Changes


def send_changes(job: Job, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """The fields that differ between these two manifests. Gives the new version.

    What somebody else changed meanwhile is refused, with both values. Raises `Rejected`.
    """
    attempt = Attempt("job", job.name, "changed", job.queue.name)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    with _refusals_of(attempt) as client:
        while True:
            live = client.get(JOBS, job.name, job.namespace)
            _refuse_other_job(attempt, job, live)
            changes = _changes(attempt, live, before, after)
            try:
                written = client.patch(JOBS, job.name, changes, job.namespace)
                return str(written["metadata"]["resourceVersion"])
            except Conflict:  # the status changes all the time
                if time.monotonic() > deadline:
                    raise


def _refuse_other_job(attempt: Attempt, job: Job, live: Object) -> None:
    if live["metadata"]["uid"] != str(job.uid):
        message = f"The job {job.name} was deleted in the cluster and created again meanwhile."
        raise attempt.rejected("changed_in_cluster", "metadata.uid", message, "look at it again")


def _changes(
    attempt: Attempt, live: Object, before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"resourceVersion": live["metadata"]["resourceVersion"]}
    for key in ("labels", "annotations"):
        metadata[key] = _map_changes(before["metadata"][key], after["metadata"][key])
    metadata["annotations"].pop(OWNER, None)  # whoever submitted it did
    spec: dict[str, Any] = {}
    for key, usual in (("minAvailable", 0), ("priorityClassName", "")):
        was = before["spec"].get(key, usual)
        wanted = after["spec"].get(key, usual)
        if was != wanted:
            _refuse_changed(attempt, f"spec.{key}", was, live["spec"].get(key, was))
            spec[key] = wanted
    if before["spec"]["tasks"] != after["spec"]["tasks"]:
        spec["tasks"] = list(
            _scaled_tasks(attempt, live, before["spec"]["tasks"], after["spec"]["tasks"])
        )
    return {"metadata": metadata, "spec": spec}


def _map_changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    changes: dict[str, str | None] = {}
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            changes[key] = after.get(key)
    return changes


def _scaled_tasks(
    attempt: Attempt,
    live: Object,
    before: Sequence[Mapping[str, Any]],
    after: Sequence[Mapping[str, Any]],
) -> Iterator[dict[str, Any]]:
    """A list is sent whole, so it is the cluster's own with the changed numbers in it."""
    tasks = live["spec"]["tasks"]
    if len(tasks) != len(after):
        _refuse_changed(attempt, "spec.tasks", len(after), len(tasks))
    for number, (task, was, wanted) in enumerate(zip(tasks, before, after, strict=True)):
        scaled = dict(task)
        for key in ("replicas", "minAvailable"):
            if was[key] != wanted[key]:
                place = f"spec.tasks[{number}].{key}"
                _refuse_changed(attempt, place, was[key], task.get(key, was[key]))
                scaled[key] = wanted[key]
        yield scaled


def _refuse_changed(attempt: Attempt, place: str, ours: object, theirs: object) -> None:
    if ours == theirs:
        return
    message = (
        f"{place} of the job {attempt.name} was changed in the cluster meanwhile: "
        f"it is {theirs} by now, and was {ours}. Nothing was written."
    )
    raise attempt.rejected("changed_in_cluster", place, message, "look at it again, then decide")


# The end


def send_deletion(job: Job) -> None:
    """With everything that it owns. One that is gone already is as good. Raises `Rejected`."""
    attempt = Attempt("job", job.name, "deleted", job.queue.name)
    with _refusals_of(attempt) as client, suppress(NotFound):
        client.delete(JOBS, job.name, job.namespace, uid=str(job.uid), propagation="Background")


@contextmanager
def _refusals_of(attempt: Attempt) -> Iterator[Client]:
    try:
        yield api_server(_TIMEOUTS)
    except ApiError as problem:
        raise refusal_of_server(attempt, problem) from problem
    except CredentialsError as problem:
        message = f"The {attempt.noun} {attempt.name} was not {attempt.deed}: {problem}"
        raise attempt.away(message) from problem


# The mirror


def shows(is_so: Callable[[], object], seconds: float = MIRROR_SECONDS) -> bool:
    """Wait a moment until the tables have what was written. False where that takes longer."""
    if connection.in_atomic_block and connection.vendor == "sqlite":
        return bool(is_so())  # nobody else can write while this lasts
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(_STEP_SECONDS)
    return True
