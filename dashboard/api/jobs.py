"""/api/v1/jobs/: jobs, and commands to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.filters import JobFilters
from dashboard.api.framework import permissions
from dashboard.api.framework.collection import ManifestSet, Objects, Orderings, Rows, Verbs
from dashboard.api.framework.errors import not_found
from dashboard.api.framework.formats import EventStreamRenderer
from dashboard.api.framework.json_cache import JsonCache
from dashboard.api.framework.visible_rows import visible
from dashboard.api.objects import job_object
from dashboard.api.pod_logs import JOB_FOLLOWING, follow_logs, names_of, whole_number
from dashboard.api.schema.openapi import Operation, Operations
from dashboard.api.watch.endpoint import WATCH_PARAMETERS, ReadObjects, Stamps, Watched
from scheduler.domain.jobs.policies import JobAction
from scheduler.models import ExpectedStart, Job, PodGroup
from scheduler.models.stamps import stamp_of
from scheduler.selectors.jobs.gangs import WAITING, PhaseCounts, pods_by_phase
from scheduler.selectors.jobs.log_pods import LogPods
from scheduler.selectors.jobs.run_limits import RunLimits, run_limits
from scheduler.selectors.jobs.start_times import expected_starts, starts_of_waiting
from scheduler.selectors.jobs.whole_jobs import jobs_by_ids
from scheduler.services.jobs import changes, submit
from scheduler.services.jobs.submit_many import submit_jobs

_EXAMPLE_CONTAINER = {
    "name": "main",
    "resources": {"requests": {"cpu": "2", "memory": "4Gi"}},
}
_EXAMPLE_TASK = {
    "name": "worker",
    "replicas": 4,
    "template": {"spec": {"containers": [_EXAMPLE_CONTAINER]}},
}
_EXAMPLE = OpenApiExample(
    "A gang of four",
    request_only=True,
    value={
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"queue": "team-a", "minAvailable": 4, "tasks": [_EXAMPLE_TASK]},
    },
)
_COMMAND = Operation(
    schema.JobCommandAnswer,
    takes=schema.Reason,
    errors=(404, 409, 412),
    optional_body=True,
)
_JSON_CACHE = JsonCache()
_JOINED = ("podgroup__id", "podgroup__phase", "queue_id")


def _stamps() -> dict[str, Any]:
    """Of the job and of its podgroup."""
    return {"spec": stamp_of(Job), "now": stamp_of(PodGroup)}


class Jobs(Watched, ManifestSet):
    noun = "job"
    takes_lists_in_steps = True
    lookups = ("namespace", "name")
    filter_class = JobFilters
    search_fields = ("name", "owner", "queue__name")
    orderings: ClassVar[Orderings] = {
        "created": "created_at",
        "name": "name",
        "namespace": "namespace",
        "phase": "phase",
        "queue": "queue__name",
        "user": "owner",
    }
    default_ordering = "-created"
    verbs: ClassVar[Verbs] = {
        "suspend": {"post": "suspend"},
        "resume": {"post": "resume"},
        "restart": {"post": "restart"},
        "cancel": {"post": "cancel"},
        "log/follow": {"get": "follow_log"},
    }
    rules: ClassVar[permissions.Rules] = {
        "list": permissions.signed_in,
        "retrieve": permissions.signed_in,
        "follow_log": permissions.signed_in,
        "create": permissions.SUBMIT,
        "update": permissions.SUBMIT,
        "partial_update": permissions.SUBMIT,
        "destroy": permissions.SUBMIT,
        "suspend": permissions.SUBMIT,
        "resume": permissions.SUBMIT,
        "restart": permissions.SUBMIT,
        "cancel": permissions.SUBMIT,
    }
    operations: ClassVar[Operations] = {
        "list": Operation(
            schema.Job, many=True, errors=(410,), parameters=WATCH_PARAMETERS, streams=True
        ),
        "retrieve": Operation(schema.Job),
        "create": Operation(
            schema.saved(schema.Job),
            schema.JobManifest,
            201,
            bulk=True,
            examples=(_EXAMPLE,),
            summary="Submit a job",
        ),
        "update": Operation(schema.saved(schema.Job), schema.JobManifest),
        "partial_update": Operation(schema.saved(schema.Job), schema.JobManifest),
        "destroy": Operation(schema.Gone),
        "suspend": _COMMAND,
        "resume": _COMMAND,
        "restart": _COMMAND,
        "cancel": _COMMAND,
        "follow_log": JOB_FOLLOWING,
    }

    @property
    def known_parameters(self) -> frozenset[str]:
        known = super().known_parameters
        if self.action_name == "follow_log":
            known |= names_of(JOB_FOLLOWING.parameters)
        return known

    def get_renderers(self) -> list[Any]:
        if getattr(self, "action", "") == "follow_log":
            return [*super().get_renderers(), EventStreamRenderer()]
        return super().get_renderers()

    def visible_rows(self) -> QuerySet[Any]:
        return visible(Job.objects.select_related("queue", "podgroup"), self.access)

    def as_objects(self, rows: Rows) -> Objects:
        pods = pods_by_phase([_podgroup_of(job) for job in rows])
        limits = run_limits()
        expected = starts_of_waiting(getattr(job, "podgroup", None) for job in rows)
        objects = []
        for job in rows:
            group = _podgroup_of(job)
            limit = limits.get(job.queue_id)
            objects.append(job_object(job, pods.get(group, {}), limit, expected.get(group)))
        return objects

    def page(self, request: Request) -> HttpResponseBase:
        if not self.wants_plain_json:
            return self.paged_response(self.filter_rows(self.visible_rows()))
        return self.standing_page(self._cached_list)

    def _cached_list(self) -> Response:
        found = self.filter_rows(visible(Job.objects.all(), self.access))
        pages, rows = self.stamped_page(found, *_JOINED, **_stamps())
        stamps, read = self._stamped(rows)
        return Response(pages.json_page_of(_JSON_CACHE.texts_of(stamps, read)))

    def stamped_list(self, most: int) -> tuple[Stamps, ReadObjects]:
        found = self.filter_rows(visible(Job.objects.all(), self.access))
        rows = found.annotate(**_stamps()).values("id", *_JOINED, *_stamps())
        return self._stamped(rows.order_by("id")[:most])

    def _stamped(self, rows: Iterable[Mapping[str, Any]]) -> tuple[Stamps, ReadObjects]:
        rows = [*rows]
        pods = pods_by_phase([row["podgroup__id"] for row in rows if row["podgroup__id"]])
        limits = run_limits()
        waiting = [row["podgroup__id"] for row in rows if row["podgroup__phase"] in WAITING]
        expected = expected_starts(waiting)
        stamps = {}
        for row in rows:
            group = row["podgroup__id"]
            stamps[row["id"]] = (
                row["spec"],
                row["now"],
                pods.get(group),
                limits.get(row["queue_id"]),
                _stamp(expected, group),
            )
        return stamps, partial(_objects_by_key, pods, limits, expected)

    def create(self, request: Request) -> Response:
        """A list is made many at once, unless each of its jobs has an answer to be kept."""
        items = self.items_of_list()
        if items is None or self.keyed is not None or self.dry_run:
            return super().create(request)
        return self.list_response(self._submit_all(items))

    def _submit_all(self, manifests: Iterable[Any]) -> Iterator[Response | Exception]:
        for made in submit_jobs([*manifests], by=self.actor):
            if isinstance(made, Exception):
                yield made
            else:
                yield self._made(made)

    def create_object(self, manifest: Any) -> Response:
        return self._made(submit.submit_job(manifest, by=self.actor, dry_run=self.dry_run))

    def _made(self, made: submit.Submitted) -> Response:
        return self.saved_response(
            job_object(made.job, {"Pending": made.pods}, made.run_limit),
            made.notices,
            created=True,
            version=made.job.resource_version,
            location=f"/api/v1/jobs/{made.job.namespace}/{made.job.name}/",
        )

    def update_object(self, *, merge: bool, **where: str) -> Response:
        made = changes.update_job(
            where["namespace"],
            where["name"],
            self.request.data,
            by=self.actor,
            merge=merge,
            expected_version=self.expected_version,
            dry_run=self.dry_run,
        )
        row = made.job
        if not self.dry_run:
            row = self.row_or_404()
        body = self.as_objects([row])[0]
        version = row.resource_version
        return self.saved_response(body, made.notices, changed=made.changed, version=version)

    def destroy(self, request: Request, namespace: str, name: str) -> Response:
        self.row_or_404()
        changes.delete_job(
            namespace,
            name,
            by=self.actor,
            expected_version=self.expected_version,
            dry_run=self.dry_run,
        )
        message = f"{namespace}/{name} was deleted."
        return self.response_with({"message": message, "dryRun": self.dry_run})

    def suspend(self, request: Request, namespace: str, name: str) -> Response:
        return self._command(namespace, name, JobAction.ABORT)

    def resume(self, request: Request, namespace: str, name: str) -> Response:
        return self._command(namespace, name, JobAction.RESUME)

    def restart(self, request: Request, namespace: str, name: str) -> Response:
        return self._command(namespace, name, JobAction.RESTART)

    def cancel(self, request: Request, namespace: str, name: str) -> Response:
        return self._command(namespace, name, JobAction.TERMINATE)

    def follow_log(self, request: Request, namespace: str, name: str) -> HttpResponseBase:
        job = self.row_or_404()
        gang = getattr(job, "podgroup", None)
        if gang is None:
            raise not_found(f"{namespace}/{name} has no pods.")
        task = request.query_params.get("task", "")
        return follow_logs(self, gang, LogPods(gang.pk, "", task, whole_number(request, "index")))

    def _command(self, namespace: str, name: str, action: JobAction) -> Response:
        self.row_or_404()
        result = submit.command_job(
            namespace,
            name,
            action,
            by=self.actor,
            reason=self.reason,
            dry_run=self.dry_run,
            expected_version=self.expected_version,
        )
        return self.response_with(job_command_answer(result, action, self.dry_run))


def _stamp(expected: Mapping[int, ExpectedStart], group: int) -> datetime | None:
    """When it was foretold. Each look foretells anew."""
    if group not in expected:
        return None
    return expected[group].made_at


def _objects_by_key(
    pods: Mapping[int, PhaseCounts],
    limits: RunLimits,
    expected: Mapping[int, ExpectedStart],
    ids: list[int],
) -> dict[int, dict[str, Any]]:
    """`pods` counts the pods of each podgroup, `expected` says when it starts."""
    objects: dict[int, dict[str, Any]] = {}
    for job in jobs_by_ids(ids):
        group = _podgroup_of(job)
        limit = limits.get(job.queue_id)
        objects[job.pk] = job_object(job, pods.get(group, {}), limit, expected.get(group))
    return objects


def _podgroup_of(job: Job) -> int:
    """0 where it has none any more."""
    if not hasattr(job, "podgroup"):
        return 0
    return int(job.podgroup.pk)


def job_command_answer(
    result: submit.JobCommandResult,
    action: JobAction,
    dry_run: bool,
) -> dict[str, Any]:
    return {
        "changed": result.changed,
        "message": result.message,
        "dryRun": dry_run,
        "command": action.value,
        "job": str(result.job),
        "phase": result.job.phase,
    }
