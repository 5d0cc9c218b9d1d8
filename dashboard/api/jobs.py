"""/api/v1/jobs/, podgroups/ and pods/: what is to run, and why it waits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import permissions, schema
from dashboard.api.base import EndpointSet, Objects, Rows, visible
from dashboard.api.filters import JobFilters, PodFilters, PodGroupFilters
from dashboard.api.json_cache import Shelf
from dashboard.api.objects import job_object, pod_object, podgroup_object, stamp
from dashboard.api.schema.openapi import Form
from dashboard.http.visibility import Sight
from scheduler.domain.access import Access
from scheduler.domain.jobs import JobAction
from scheduler.domain.shown_phases import shown_phase
from scheduler.models import Job, Pod, PodGroup
from scheduler.models.stamps import stamp_of
from scheduler.selectors.jobs.gangs import WAITING, PhaseCounts, pods_by_phase, standing_of
from scheduler.selectors.jobs.page import gang_named
from scheduler.selectors.jobs.timeline import Span, timeline_of
from scheduler.services.jobs import changes, podgroups, submit

_EXAMPLE = OpenApiExample(
    "A gang of four",
    request_only=True,
    value={
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {
            "queue": "team-a",
            "minAvailable": 4,
            "tasks": [
                {
                    "name": "worker",
                    "replicas": 4,
                    "template": {
                        "spec": {
                            "containers": [
                                {
                                    "name": "main",
                                    "resources": {"requests": {"cpu": "2", "memory": "4Gi"}},
                                }
                            ]
                        }
                    },
                }
            ],
        },
    },
)
_NAMESPACED = ("namespace", "name")
_TIMES: Mapping[str, str] = {
    "created": "created_at",
    "name": "name",
    "namespace": "namespace",
    "phase": "phase",
}


_SHELF = Shelf()


def _objects(pods: Mapping[int, PhaseCounts], ids: list[int]) -> dict[int, dict[str, Any]]:
    """Jobs by key; `pods` counts them by podgroup."""
    found = Job.objects.filter(pk__in=ids).select_related("queue", "podgroup")
    return {job.pk: job_object(job, pods.get(_podgroup_of(job), {})) for job in found}


def _podgroup_of(job: Job) -> int:
    """0 where it has none any more."""
    return int(job.podgroup.pk) if hasattr(job, "podgroup") else 0


_JOB_COMMAND = Form(
    schema.JobCommandAnswer, takes=schema.Reason, errors=(404, 409, 412), optional_body=True
)


def _is_readable(access: Access, queue: int) -> bool:
    return access.readable is None or queue in access.readable


class Jobs(EndpointSet):
    kind = "job"
    takes_lists_in_steps = True
    lookups = _NAMESPACED
    filter_class = JobFilters
    search_fields = ("name", "owner", "queue__name")
    orderings: ClassVar[Mapping[str, str]] = {**_TIMES, "queue": "queue__name", "user": "owner"}
    default_ordering = "-created"
    verbs: ClassVar[Mapping[str, Mapping[str, str]]] = {
        name: {"post": name} for name in ("suspend", "resume", "restart", "cancel")
    }
    rules: ClassVar[Mapping[str, permissions.Rule]] = {
        **dict.fromkeys(("list", "retrieve"), permissions.signed_in),
        **dict.fromkeys(
            (
                "create",
                "update",
                "partial_update",
                "destroy",
                "suspend",
                "resume",
                "restart",
                "cancel",
            ),
            permissions.SUBMIT,
        ),
    }
    forms: ClassVar[Mapping[str, Form]] = {
        "list": Form(schema.Job, many=True),
        "retrieve": Form(schema.Job),
        "create": Form(
            schema.saved(schema.Job),
            schema.JobManifest,
            201,
            bulk=True,
            examples=(_EXAMPLE,),
            summary="Submit a job",
        ),
        "update": Form(schema.saved(schema.Job), schema.JobManifest),
        "partial_update": Form(schema.saved(schema.Job), schema.JobManifest),
        "destroy": Form(schema.Gone),
        **dict.fromkeys(("suspend", "resume", "restart", "cancel"), _JOB_COMMAND),
    }

    def query(self) -> QuerySet[Any]:
        return visible(Job.objects.select_related("queue", "podgroup"), self.access)

    def list(self, request: Request, *_args: Any, **_kwargs: Any) -> Response:
        if not self.wants_plain_json:
            return self.page(self.filtered(self.query()))
        found = self.filtered(visible(Job.objects.all(), self.access))
        pages, rows = self.stamped(
            found, "podgroup__id", spec=stamp_of(Job), now=stamp_of(PodGroup)
        )
        pods = pods_by_phase([row["podgroup__id"] for row in rows if row["podgroup__id"]])
        stamps = {
            row["id"]: (row["spec"], row["now"], pods.get(row["podgroup__id"])) for row in rows
        }
        return Response(pages.text(_SHELF.texts(stamps, partial(_objects, pods))))

    def present(self, rows: Rows) -> Objects:
        counts = pods_by_phase([_podgroup_of(job) for job in rows])
        return [job_object(job, counts.get(_podgroup_of(job), {})) for job in rows]

    def create(self, request: Request) -> Response:
        return self.each(self._create)

    def _create(self, manifest: Any) -> Response:
        made = submit.submit_job(manifest, by=self.actor, dry_run=self.dry_run)
        return self.saved(
            job_object(made.job, {"Pending": made.pods}),
            made.notices,
            created=True,
            version=made.job.resource_version,
            location=f"/api/v1/jobs/{made.job.namespace}/{made.job.name}/",
        )

    def update(self, request: Request, namespace: str, name: str) -> Response:
        return self._update(namespace, name, merge=False)

    def partial_update(self, request: Request, namespace: str, name: str) -> Response:
        return self._update(namespace, name, merge=True)

    def _update(self, namespace: str, name: str, merge: bool) -> Response:
        self.found()
        with self.rehearsal():
            made = changes.update_job(
                namespace,
                name,
                self.request.data,
                by=self.actor,
                merge=merge,
                expected_version=self.expected_version,
            )
            row = self.found()
            body = self.present([row])[0]
        return self.saved(body, made.notices, changed=made.changed, version=row.resource_version)

    def destroy(self, request: Request, namespace: str, name: str) -> Response:
        self.found()
        changes.delete_job(
            namespace,
            name,
            by=self.actor,
            expected_version=self.expected_version,
            dry_run=self.dry_run,
        )
        return self.answer({"message": f"{namespace}/{name} was deleted.", "dryRun": self.dry_run})

    def suspend(self, request: Request, namespace: str, name: str) -> Response:
        return self._command(namespace, name, JobAction.ABORT)

    def resume(self, request: Request, namespace: str, name: str) -> Response:
        return self._command(namespace, name, JobAction.RESUME)

    def restart(self, request: Request, namespace: str, name: str) -> Response:
        return self._command(namespace, name, JobAction.RESTART)

    def cancel(self, request: Request, namespace: str, name: str) -> Response:
        return self._command(namespace, name, JobAction.TERMINATE)

    def _command(self, namespace: str, name: str, action: JobAction) -> Response:
        self.found()
        result = submit.command_job(
            namespace,
            name,
            action,
            by=self.actor,
            reason=self.reason,
            dry_run=self.dry_run,
            expected_version=self.expected_version,
        )
        return self.answer(job_command_answer(result, action, self.dry_run))


def job_command_answer(
    result: submit.JobCommandResult, action: JobAction, dry_run: bool
) -> dict[str, Any]:
    return {
        "changed": result.changed,
        "message": result.message,
        "dryRun": dry_run,
        "command": action.value,
        "job": str(result.job),
        "phase": result.job.phase,
    }


class PodGroups(EndpointSet):
    kind = "podgroup"
    takes_lists_in_steps = True
    lookups = _NAMESPACED
    filter_class = PodGroupFilters
    search_fields = ("name", "owner", "queue__name")
    orderings: ClassVar[Mapping[str, str]] = {
        **_TIMES,
        "queue": "queue__name",
        "user": "owner",
        "priority": "priority",
    }
    default_ordering = "-created"
    verbs: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "explain": {"get": "explain"},
        "timeline": {"get": "timeline"},
    }
    rules: ClassVar[Mapping[str, permissions.Rule]] = {
        **dict.fromkeys(("list", "retrieve", "explain", "timeline"), permissions.signed_in),
        **dict.fromkeys(("create", "update", "partial_update", "destroy"), permissions.SUBMIT),
    }
    forms: ClassVar[Mapping[str, Form]] = {
        "list": Form(schema.PodGroup, many=True),
        "retrieve": Form(schema.PodGroup),
        "create": Form(schema.saved(schema.PodGroup), schema.PodGroupManifest, 201, bulk=True),
        "update": Form(schema.saved(schema.PodGroup), schema.PodGroupManifest),
        "partial_update": Form(schema.saved(schema.PodGroup), schema.PodGroupManifest),
        "destroy": Form(schema.Gone),
        "explain": Form(schema.Explanation, summary="Why it waits, in words and figures"),
        "timeline": Form(
            schema.Timeline,
            summary="What happened to it, step by step, and what the time between was spent on",
        ),
    }

    def query(self) -> QuerySet[Any]:
        return visible(PodGroup.objects.select_related("queue"), self.access)

    def present(self, rows: Rows) -> Objects:
        counts = pods_by_phase([group.pk for group in rows])
        return [podgroup_object(group, counts.get(group.pk, {})) for group in rows]

    def create(self, request: Request) -> Response:
        return self.each(self._create)

    def _create(self, manifest: Any) -> Response:
        with self.rehearsal():
            made = podgroups.submit_podgroup(manifest, by=self.actor)
            body = self.present([made.podgroup])[0]
        place = f"/api/v1/podgroups/{made.podgroup.namespace}/{made.podgroup.name}/"
        return self.saved(
            body, made.notices, created=True, version=made.podgroup.resource_version, location=place
        )

    def update(self, request: Request, namespace: str, name: str) -> Response:
        return self._update(namespace, name, merge=False)

    def partial_update(self, request: Request, namespace: str, name: str) -> Response:
        return self._update(namespace, name, merge=True)

    def _update(self, namespace: str, name: str, merge: bool) -> Response:
        self.found()
        with self.rehearsal():
            made = podgroups.update_podgroup(
                namespace,
                name,
                self.request.data,
                by=self.actor,
                merge=merge,
                expected_version=self.expected_version,
            )
            body = self.present([self.found()])[0]
        return self.saved(
            body, made.notices, changed=made.changed, version=made.podgroup.resource_version
        )

    def destroy(self, request: Request, namespace: str, name: str) -> Response:
        self.found()
        message = podgroups.delete_podgroup(
            namespace,
            name,
            by=self.actor,
            expected_version=self.expected_version,
            dry_run=self.dry_run,
        )
        return self.answer({"message": message, "dryRun": self.dry_run})

    def explain(self, request: Request, namespace: str, name: str) -> Response:
        found = standing_of(namespace, name)
        if found is None or not _is_readable(self.access, found["queue"]):
            raise self.nothing_found()
        return self.answer(explanation(found))

    def timeline(self, request: Request, namespace: str, name: str) -> Response:
        self.found()
        gang = gang_named(namespace, name)
        if gang is None:
            raise self.nothing_found()
        return self.answer(timeline_answer(gang, Sight(self.access.visible)))


_NOT_WAITING = {
    "Running": "It runs.",
    "Unknown": "Some of its pods run, and there is no room for the rest.",
    "Restarting": "Its pods are stopping, to begin again.",
    "Aborting": "Its pods are stopping; it can be resumed then.",
    "Aborted": "It was suspended and can be resumed.",
    "Completing": "Its pods are stopping.",
    "Terminating": "Its pods are stopping.",
}


def _why_not_waiting(phase: str, message: str) -> str:
    """How it stands, or how it ended and what was said then."""
    words = _NOT_WAITING.get(phase, "It has ended.")
    return f"{words} {message[:1].upper()}{message[1:]}.".replace("..", ".") if message else words


def timeline_answer(gang: PodGroup, sight: Sight) -> dict[str, Any]:
    found = timeline_of(gang)
    steps = [
        {
            "at": stamp(step.at),
            "title": step.title,
            "detail": step.detail,
            "kind": step.kind,
            "pods": step.pods,
            "beneficiary": seen.key if (seen := sight.job(step.whom, step.queue)) else "",
            "before": _spent(span),
        }
        for span, step in found.entries
    ]
    return {"podgroup": str(gang), "steps": steps, "now": _spent(found.now)}


def _spent(span: Span | None) -> dict[str, Any] | None:
    return (
        None
        if span is None
        else {"seconds": round(span.seconds, 3), "waited": span.waited, "waitedFor": span.what}
    )


def explanation(gang: Mapping[str, Any]) -> dict[str, Any]:
    """Why a gang waits; its place among those that wait in its queue, by priority and age."""
    phase = shown_phase(gang["phase"], gang["job__phase"])
    waiting = phase in WAITING
    unseen = "No session has looked at it yet; the next one will."
    return {
        "podgroup": f"{gang['namespace']}/{gang['name']}",
        "phase": phase,
        "waiting": waiting,
        "reason": (gang["reason_code"] or "AwaitingEvaluation") if waiting else "",
        "message": (gang["reason_message"] or unseen)
        if waiting
        else _why_not_waiting(phase, gang["job__message"] or ""),
        "figures": gang["reason_figures"] if waiting else {},
        "checks": gang["reason_checks"] if waiting else [],
        "session": gang["reason_session"],
        "evaluatedAt": stamp(gang["evaluated_at"]),
        "position": gang["ahead"] + 1 if waiting else None,
        "ahead": gang["ahead"] if waiting else None,
    }


class Pods(EndpointSet):
    kind = "pod"
    takes_lists_in_steps = True
    lookups = _NAMESPACED
    filter_class = PodFilters
    search_fields = ("name", "podgroup__name")
    orderings: ClassVar[Mapping[str, str]] = _TIMES
    default_ordering = "-created"
    rules: ClassVar[Mapping[str, permissions.Rule]] = {
        **dict.fromkeys(("list", "retrieve"), permissions.signed_in),
        **dict.fromkeys(("create", "destroy"), permissions.SUBMIT),
    }
    forms: ClassVar[Mapping[str, Form]] = {
        "list": Form(schema.Pod, many=True),
        "retrieve": Form(schema.Pod),
        "create": Form(schema.saved(schema.Pod), schema.PodManifest, 201, bulk=True),
        "destroy": Form(schema.Gone),
    }

    def query(self) -> QuerySet[Any]:
        return visible(
            Pod.objects.select_related("podgroup__queue", "node", "pod_class"),
            self.access,
            "podgroup__queue",
        )

    def present(self, rows: Rows) -> Objects:
        return [pod_object(pod) for pod in rows]

    def create(self, request: Request) -> Response:
        return self.each(self._create)

    def _create(self, manifest: Any) -> Response:
        with self.rehearsal():
            made = podgroups.submit_pod(manifest, by=self.actor)
            body = pod_object(made.pod)
        return self.saved(
            body,
            made.notices,
            created=True,
            location=f"/api/v1/pods/{made.pod.namespace}/{made.pod.name}/",
        )

    def destroy(self, request: Request, namespace: str, name: str) -> Response:
        self.found()
        message = podgroups.delete_pod(namespace, name, by=self.actor, dry_run=self.dry_run)
        return self.answer({"message": message, "dryRun": self.dry_run})
