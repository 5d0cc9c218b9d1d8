"""/api/v1/commands/, events/ and audit/: what happened, and commands that become part of it."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.changes import change_set_object
from dashboard.api.filters import AuditFilters, CommandFilters, EventFilters
from dashboard.api.framework import permissions
from dashboard.api.framework.collection import Objects, Orderings, Rows, Verbs
from dashboard.api.framework.errors import bad_parameter
from dashboard.api.framework.formats import CSVRenderer, LinesRenderer
from dashboard.api.framework.visible_rows import visible
from dashboard.api.jobs import job_command_answer
from dashboard.api.objects import iso_time, record_object
from dashboard.api.queues.answers import command_answer
from dashboard.api.records import Records
from dashboard.api.schema.openapi import Operation, Operations
from dashboard.http.exports import all_rows, as_csv, as_json_lines, streamed
from scheduler.domain.access import Access, Permission
from scheduler.domain.jobs.policies import ACTION_NAMES, JobAction
from scheduler.models import AuditEntry, Command, Event, Job
from scheduler.selectors.queues.reused_names import records_of
from scheduler.services.change_sets.drafts import revert_entry
from scheduler.services.change_sets.verdicts import verdict_on
from scheduler.services.queues.orders import Ordered, give_order, give_orders

_EXAMPLE = OpenApiExample(
    "Suspend a queue",
    request_only=True,
    value={
        "action": "SuspendQueue",
        "target": {"kind": "Queue", "name": "team-a"},
        "reason": "quota change",
    },
)


class Commands(Records):
    noun = "command"
    filter_class = CommandFilters
    search_fields = ("target_name", "actor", "reason", "message")
    rules: ClassVar[permissions.Rules] = {**Records.rules, "create": permissions.SUBMIT}
    operations: ClassVar[Operations] = {
        "list": Operation(schema.Command, many=True),
        "retrieve": Operation(schema.Command),
        "create": Operation(
            schema.CommandAnswer,
            schema.GivenCommand,
            errors=(409,),
            bulk=True,
            summary="Command a queue or a job; it is carried out at once",
            examples=(_EXAMPLE,),
        ),
    }

    def visible_rows(self) -> QuerySet[Any]:
        seen = self.access.visible
        if seen is None:
            return Command.objects.all()
        to_queues = Q(records_of(seen, "created_at", "target_name"), target_kind="Queue")
        to_jobs = Q(Exists(_commanded_jobs(self.access)), target_kind="Job")
        return Command.objects.filter(to_queues | to_jobs)

    def as_objects(self, rows: Rows) -> Objects:
        return [command_object(row) for row in rows]

    def create(self, request: Request) -> Response:
        items = self.items_of_list()
        if items is None:
            ordered = give_order(request.data, by=self.actor, dry_run=self.dry_run)
            return self._ordered_response(ordered)
        results = give_orders(items, by=self.actor, dry_run=self.dry_run)
        return self.list_response(map(self._response_or_error, results))

    def _response_or_error(self, result: Ordered | Exception) -> Response | Exception:
        if isinstance(result, Exception):
            return result
        return self._ordered_response(result)

    def _ordered_response(self, ordered: Ordered) -> Response:
        return self.response_with(order_answer(ordered, self.dry_run))


def _commanded_jobs(access: Access) -> QuerySet[Job]:
    """The job that a command was for, if it may be seen: it has the name and was there by then."""
    named = Job.objects.filter(
        namespace=OuterRef("target_namespace"),
        name=OuterRef("target_name"),
        created_at__lte=OuterRef("created_at"),
    )
    return visible(named, access)


def order_answer(ordered: Ordered, dry_run: bool) -> dict[str, Any]:
    notices = []
    for notice in ordered.notices:
        notices.append({"code": notice.code, "message": notice.message})
    if ordered.queue is not None:
        answer = command_answer(ordered.queue, dry_run)
        return {**answer, "warnings": [*answer["warnings"], *notices]}
    assert ordered.job is not None
    action = JobAction(ACTION_NAMES[ordered.order.action].value)
    nothing = {"running": 0, "waiting": 0}
    return {
        **job_command_answer(ordered.job, action, dry_run),
        "queue": ordered.job.job.queue.name,
        "queues": [],
        "podgroups": nothing,
        "pods": nothing,
        "users": [],
        "warnings": notices,
    }


def command_object(row: Command) -> dict[str, Any]:
    target = {
        "kind": row.target_kind,
        "name": row.target_name,
        "namespace": row.target_namespace,
        "uid": row.target_uid,
    }
    spec = {"action": row.action, "target": target, "reason": row.reason}
    status = {
        "result": row.result,
        "message": row.message,
        "actor": row.actor,
        "door": row.door,
        "requestId": row.request_id,
        "executedAt": iso_time(row.executed_at),
        "effect": row.effect,
    }
    return record_object("Command", str(row.pk), row.created_at, spec, status, uid=str(row.uid))


class Events(Records):
    noun = "event"
    filter_class = EventFilters
    search_fields = ("name", "reason", "message")
    orderings: ClassVar[Orderings] = {"last": "last_at", "first": "first_at", "created": "id"}
    default_ordering = "-last"
    operations: ClassVar[Operations] = {
        "list": Operation(schema.Event, many=True),
        "retrieve": Operation(schema.Event),
    }

    def visible_rows(self) -> QuerySet[Any]:
        """Events of the cluster and its nodes belong to no queue: for everybody with a role."""
        seen = self.access.visible
        if seen is None:
            return Event.objects.all()
        condition = Q(records_of(seen, "last_at"))
        if self.access.may_anywhere(Permission.VIEW):
            condition |= Q(queue_name="", kind__in=("Cluster", "Node"))
        return Event.objects.filter(condition)

    def as_objects(self, rows: Rows) -> Objects:
        return [event_object(row) for row in rows]


def event_object(row: Event) -> dict[str, Any]:
    spec = {
        "type": row.type,
        "kind": row.kind,
        "namespace": row.namespace,
        "name": row.name,
        "queue": row.queue_name,
        "reason": row.reason,
        "message": row.message,
        "count": row.count,
        "firstAt": iso_time(row.first_at),
        "lastAt": iso_time(row.last_at),
    }
    return record_object("Event", str(row.pk), row.first_at, spec, {})


class Audit(Records):
    """For admins: what happened to their queues; for admins of the cluster, everything.

    `Accept: text/csv` or ndjson exports it whole.
    """

    noun = "audit entry"
    filter_class = AuditFilters
    search_fields = ("actor", "name", "message", "reason")
    orderings: ClassVar[Orderings] = {"at": "id"}
    default_ordering = "-at"
    rules: ClassVar[permissions.Rules] = {
        "list": permissions.ADMIN,
        "retrieve": permissions.ADMIN,
        "revert": permissions.ADMIN,
    }
    verbs: ClassVar[Verbs] = {"revert": {"post": "revert"}}
    operations: ClassVar[Operations] = {
        "list": Operation(
            schema.AuditRecord,
            many=True,
            summary="The audit log in pages; all of it as text/csv or application/x-ndjson",
        ),
        "retrieve": Operation(schema.AuditRecord),
        "revert": Operation(
            schema.saved(schema.ChangeSet),
            schema.Reason,
            201,
            optional_body=True,
            summary="A new change set that undoes this entry alone. Nothing is applied yet",
        ),
    }

    def revert(self, request: Request, name: str) -> Response:
        row = self.row_or_404()
        by = self.commander
        with self.undone_in_dry_run():
            made = revert_entry(row, by=by)
            body = change_set_object(made, verdict_on(made.changes, by=by))
        location = f"/api/v1/changes/{made.pk}/"
        version = made.resource_version
        return self.saved_response(body, (), created=True, location=location, version=version)

    def get_renderers(self) -> list[Any]:
        renderers = super().get_renderers()
        if self.action_name == "list":
            renderers += [CSVRenderer(), LinesRenderer()]
        return renderers

    def visible_rows(self) -> QuerySet[Any]:
        if self.access.is_cluster_admin:
            return AuditEntry.objects.all()
        administered = self.access.where(Permission.ADMINISTER)
        return AuditEntry.objects.filter(records_of(administered, "at"))

    def as_objects(self, rows: Rows) -> Objects:
        return [audit_object(row) for row in rows]

    def list(self, request: Request, *_args: Any, **_kwargs: Any) -> HttpResponseBase:
        chosen = self.answer_format
        if chosen in ("csv", "ndjson"):
            return self._export_as(chosen)
        return super().list(request)

    def _export_as(self, chosen: str) -> HttpResponseBase:
        for name in ("cursor", "page_size", "fields"):
            if name in self.request.query_params:
                message = f"An export has everything, so it takes no {name}."
                raise bad_parameter(name, message, "leave it out")
        oldest_first = self.ordering == ["id"]
        rows = all_rows(self.filter_rows(self.visible_rows()), oldest_first=oldest_first)
        entries = map(audit_object, rows)
        request = self.request._request
        if chosen == "ndjson":
            lines = as_json_lines(entries)
            return streamed(request, lines, "application/x-ndjson", "audit.ndjson")
        table = as_csv((entry["spec"] for entry in entries), AUDIT_COLUMNS)
        return streamed(request, table, "text/csv", "audit.csv")


AUDIT_COLUMNS = (
    "at",
    "actor",
    "door",
    "address",
    "requestId",
    "deeds",
    "action",
    "kind",
    "namespace",
    "name",
    "queue",
    "follows",
    "reason",
    "message",
    "before",
    "after",
)


def audit_object(row: AuditEntry) -> dict[str, Any]:
    spec = {
        "at": iso_time(row.at),
        "actor": row.actor,
        "door": row.door,
        "address": row.address,
        "requestId": row.request_id,
        "deeds": row.deeds,
        "action": row.action,
        "kind": row.kind,
        "namespace": row.namespace,
        "name": row.name,
        "queue": row.queue_name,
        "follows": row.follows,
        "reason": row.reason,
        "message": row.message,
        "before": row.before,
        "after": row.after,
    }
    return record_object("AuditRecord", str(row.pk), row.at, spec, {})
