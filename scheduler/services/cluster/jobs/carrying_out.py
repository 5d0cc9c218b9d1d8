"""A plan for a job becomes requests to the API server. Any of them may be repeated at any time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from scheduler.clusters.kubernetes import job_plugins
from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    NotFound,
    ServerError,
    TooMany,
)
from scheduler.clusters.kubernetes.job_objects import pod_manifest
from scheduler.clusters.kubernetes.job_plugins import SERVICES
from scheduler.clusters.kubernetes.reports import Event, send_event
from scheduler.clusters.kubernetes.resources import COMMANDS, JOBS, PODGROUPS, PODS, Resource
from scheduler.clusters.kubernetes.values import JobObject
from scheduler.outages import in_a_line
from scheduler.services.cluster.jobs.commands import note_obeyed
from scheduler.services.cluster.jobs.plan import CANNOT_MAKE, NewPod, Plan
from scheduler.services.cluster.jobs.restarts import read_restarts
from scheduler.services.cluster.jobs.situation import Situation
from scheduler.services.cluster.mirror.object_rows import version_number
from scheduler.services.sessions import lease

_TRIED_AGAIN: Final = (ServerError, TooMany)


class NotOurs(Exception):
    """Something of another owner has the name that is needed."""


@dataclass(frozen=True, slots=True)
class Done:
    """What the mirror has to hear of before the job is looked at again.

    `problem` says what the API server refused.
    """

    job_version: int = 0
    pods_version: int = 0
    problem: str = ""


class Hands:
    def __init__(self, client: Client, requests: Executor) -> None:
        self._client = client
        self._requests = requests

    def carry_out(self, situation: Situation, plan: Plan) -> Done:
        """Raises `ApiError` where it is to be tried again, and `Conflict` if the job has changed
        since it was looked at.
        """
        job = situation.job
        if plan.doubts_pods:
            unknown = self._unknown_pods(situation)
            if unknown:
                return Done(pods_version=unknown)
        if plan.is_decision or plan.obeyed:
            return self._decide(job, plan)
        if plan.ends_job:
            self._end_job(job)
            return Done()
        return self._follow_up(job, plan)

    def _unknown_pods(self, situation: Situation) -> int:
        """The version of the last pod that the mirror does not know yet; 0 if it knows them all.

        It may be a little behind: then pods that are there would be taken for lost.
        """
        job = situation.job
        listed = self._client.list(
            PODS, job.meta.namespace, label_selector=f"volcano.sh/job-name={job.meta.name}"
        )
        known = {pod.meta.uid for pod in situation.pods}
        last = 0
        for pod in listed:
            metadata = pod["metadata"]
            if _is_owned(pod, job) and metadata["uid"] not in known:
                last = max(last, version_number(metadata["resourceVersion"]))
        return last

    # Decisions

    def _decide(self, job: JobObject, plan: Plan) -> Done:
        version = 0
        if plan.status:
            version = self._write_status(job, plan.status)
        if not job.phase:
            self._tell_what_is_left_out(job)
        if plan.obeyed is not None:
            order = plan.obeyed.command
            note_obeyed(job, plan.obeyed)
            with suppress(NotFound, Conflict):
                self._client.delete(
                    COMMANDS, order.meta.name, order.meta.namespace, uid=order.meta.uid
                )
        return Done(job_version=version)

    def _tell_what_is_left_out(self, job: JobObject) -> None:
        missing = job_plugins.left_out(job)
        if missing:
            note = f"The job runs without what it asks for: {', '.join(missing)}."
            event = Event(JOBS, job.meta, "NotCarriedOut", note, "Controlling", "Warning")
            send_event(self._client, event, lease.name_of_this_process())

    def _write_status(self, job: JobObject, changes: dict[str, Any]) -> int:
        """With the version that was decided on: of two controllers only one succeeds."""
        metadata = {"uid": job.meta.uid, "resourceVersion": job.meta.resource_version}
        body = {"metadata": metadata, "status": changes}
        written = self._client.patch(JOBS, job.meta.name, body, job.meta.namespace, "status")
        return version_number(written["metadata"]["resourceVersion"])

    def _end_job(self, job: JobObject) -> None:
        with suppress(NotFound, Conflict):
            self._client.delete(
                JOBS,
                job.meta.name,
                job.meta.namespace,
                uid=job.meta.uid,
                resource_version=job.meta.resource_version,
                propagation="Background",
            )

    # What follows from them

    def _follow_up(self, job: JobObject, plan: Plan) -> Done:
        try:
            self._make_podgroup(job, plan)
        except (ApiError, NotOurs) as problem:
            return self._refused(job, problem)
        for pod in plan.pods_to_delete:
            self._delete(PODS, pod.meta.name, pod.meta.namespace, pod.meta.uid)
        if plan.ended_podgroup is not None:
            group = plan.ended_podgroup.meta
            self._delete(PODGROUPS, group.name, group.namespace, group.uid)
        try:
            pods_version = self._make_pods(job, plan)
        except (ApiError, NotOurs) as problem:
            return self._refused(job, problem)
        version = 0
        if plan.status:
            with suppress(Conflict, NotFound):  # figures, which are counted anew
                version = self._write_status(job, plan.status)
        return Done(job_version=version, pods_version=pods_version)

    def _refused(self, job: JobObject, problem: Exception) -> Done:
        """It is told in the status, once, and tried again later."""
        if isinstance(problem, _TRIED_AGAIN):
            raise problem
        words = f"{CANNOT_MAKE}{in_a_line(problem)}"[:1024]
        version = 0
        if job.message != words:
            version = self._write_status(job, {"state": {"message": words}})
        return Done(job_version=version, problem=words)

    def _make_podgroup(self, job: JobObject, plan: Plan) -> None:
        if plan.service is not None:
            self._make(SERVICES, job, plan.service)
        if plan.podgroup is not None:
            self._make(PODGROUPS, job, plan.podgroup)
        if plan.podgroup_changes:
            with suppress(NotFound):
                self._client.patch(
                    PODGROUPS, job.group_name, {"spec": plan.podgroup_changes}, job.meta.namespace
                )

    def _make_pods(self, job: JobObject, plan: Plan) -> int:
        def make(new: NewPod) -> int:
            restarts = _restarts_in(job, new.task.name)
            return self._make(PODS, job, pod_manifest(job, new.task, new.index, restarts))

        return max(self._all(make, plan.pods_to_make), default=0)

    def _all(self, make: Callable[[NewPod], int], pods: tuple[NewPod, ...]) -> list[int]:
        """The first problem stops those that have not begun."""
        futures = [self._requests.submit(make, pod) for pod in pods]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def _make(self, resource: Resource, job: JobObject, manifest: dict[str, Any]) -> int:
        """The version of it. One that is there already and is the job's own is as good as made."""
        try:
            made = self._client.create(resource, manifest, job.meta.namespace)
        except AlreadyExists:
            if resource is SERVICES:
                return 0  # whoever made it: pods can be found by it, or by their own
            name = manifest["metadata"]["name"]
            made = self._client.get(resource, name, job.meta.namespace)
            if not _is_owned(made, job):
                words = f"there is a {resource.kind} {name} that is not of this job"
                raise NotOurs(words) from None
        return version_number(made["metadata"]["resourceVersion"])

    def _delete(self, resource: Resource, name: str, namespace: str, uid: str) -> None:
        with suppress(NotFound, Conflict):
            self._client.delete(resource, name, namespace, uid=uid)


def _restarts_in(job: JobObject, task: str) -> int:
    return read_restarts(job.status.get("controlledResources") or {}, task).retries


def _is_owned(raw: dict[str, Any], job: JobObject) -> bool:
    for owner in raw["metadata"].get("ownerReferences") or ():
        if owner.get("uid") == job.meta.uid:
            return True
    return False
