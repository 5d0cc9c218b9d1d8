"""/api/v1/commands/, sessions/, decisions/, evictions/, events/ and audit/: what happened, and orders that become part of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import permissions, schema
from dashboard.api.base import EndpointSet, Objects, Rows, visible
from dashboard.api.errors import Refusal, bad_parameter
from dashboard.api.filters import (
    AuditFilters,
    CommandFilters,
    DecisionFilters,
    EventFilters,
    EvictionFilters,
    SessionFilters,
)
from dashboard.api.formats import CSVRenderer, LinesRenderer
from dashboard.api.jobs import job_command_answer
from dashboard.api.objects import record_object, stamp
from dashboard.api.queues import command_answer
from dashboard.api.schema.openapi import Form
from dashboard.http.exports import all_rows, as_csv, as_json_lines, streamed
from dashboard.http.visibility import Sight
from scheduler.domain.access import Access, Permission
from scheduler.domain.jobs import JobAction
from scheduler.domain.resources import Resources
from scheduler.models import AuditEntry, Command, Decision, Event, Eviction, Job, SchedulingSession
from scheduler.selectors.queues.reused_names import records_of
from scheduler.services.queues.orders import Ordered, give_order, give_orders
from scheduler.services.sessions.replay import NotKept, scenario_text


class Records(EndpointSet):
    """Rows that are only read, addressed by their number."""

    rules: ClassVar[Mapping[str, permissions.Rule]] = dict.fromkeys(
        ("list", "retrieve"), permissions.signed_in
    )
    orderings: ClassVar[Mapping[str, str]] = {"created": "id"}
    default_ordering = "-created"

    def lookup(self, where: Mapping[str, str]) -> dict[str, Any]:
        text = where["name"]
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise Refusal(f"There is no {self.kind} {text[:80]}.", code=404, kind="not-found")
        return {self.number: int(text)}

    number: ClassVar[str] = "id"


class Commands(Records):
    kind = "command"
    filter_class = CommandFilters
    search_fields = ("target_name", "actor", "reason", "message")
    rules: ClassVar[Mapping[str, permissions.Rule]] = {
        **Records.rules,
        "create": permissions.SUBMIT,
    }
    forms: ClassVar[Mapping[str, Form]] = {
        "list": Form(schema.Command, many=True),
        "retrieve": Form(schema.Command),
        "create": Form(
            schema.CommandAnswer,
            schema.GivenCommand,
            errors=(409,),
            bulk=True,
            summary="Give an order to a queue or a job; it is carried out at once",
            examples=(
                OpenApiExample(
                    "Suspend a queue",
                    request_only=True,
                    value={
                        "action": "SuspendQueue",
                        "target": {"kind": "Queue", "name": "team-a"},
                        "reason": "quota change",
                    },
                ),
            ),
        ),
    }

    def query(self) -> QuerySet[Any]:
        seen = self.access.visible
        if seen is None:
            return Command.objects.all()
        queues = Q(records_of(seen, "created_at", "target_name"), target_kind="Queue")
        return Command.objects.filter(
            queues | Q(Exists(_commanded_jobs(self.access)), target_kind="Job")
        )

    def present(self, rows: Rows) -> Objects:
        return [command_object(row) for row in rows]

    def create(self, request: Request) -> Response:
        items = self.items_of_list()
        if items is None:
            return self._answered(give_order(request.data, by=self.actor, dry_run=self.dry_run))
        ordered = give_orders(items, by=self.actor, dry_run=self.dry_run)
        return self.results(
            result if isinstance(result, Exception) else self._answered(result)
            for result in ordered
        )

    def _answered(self, ordered: Ordered) -> Response:
        return self.answer(order_answer(ordered, self.dry_run))


def _told(rows: QuerySet[Any], access: Access) -> QuerySet[Any]:
    return rows if access.visible is None else rows.filter(records_of(access.visible, "created_at"))


def _commanded_jobs(access: Access) -> QuerySet[Job]:
    """The job that a command was for, if it may be seen: one of its name that was there by then."""
    named = Job.objects.filter(
        namespace=OuterRef("target_namespace"),
        name=OuterRef("target_name"),
        created_at__lte=OuterRef("created_at"),
    )
    return visible(named, access)


def order_answer(ordered: Ordered, dry_run: bool) -> dict[str, Any]:
    notices = [{"code": notice.code, "message": notice.message} for notice in ordered.notices]
    if ordered.queue is not None:
        answer = command_answer(ordered.queue, dry_run)
        return {**answer, "warnings": [*answer["warnings"], *notices]}
    assert ordered.job is not None
    job = job_command_answer(ordered.job, JobAction(_full_name(ordered)), dry_run)
    nothing = {"running": 0, "waiting": 0}
    return {
        **job,
        "queue": ordered.job.job.queue.name,
        "queues": [],
        "podgroups": nothing,
        "pods": nothing,
        "users": [],
        "warnings": notices,
    }


def _full_name(ordered: Ordered) -> str:
    from scheduler.domain.jobs import ACTION_NAMES

    return ACTION_NAMES[ordered.order.action].value


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
        "executedAt": stamp(row.executed_at),
        "effect": row.effect,
    }
    return record_object("Command", str(row.pk), row.created_at, spec, status, uid=str(row.uid))


class Sessions(Records):
    kind = "session"
    number = "number"
    filter_class = SessionFilters
    orderings: ClassVar[Mapping[str, str]] = {"number": "number"}
    default_ordering = "-number"
    verbs: ClassVar[Mapping[str, Mapping[str, str]]] = {"scenario": {"get": "scenario"}}
    rules: ClassVar[Mapping[str, permissions.Rule]] = {
        **dict.fromkeys(("list", "retrieve"), permissions.MEMBER),
        "scenario": permissions.CLUSTER_VIEW,
    }
    forms: ClassVar[Mapping[str, Form]] = {
        "list": Form(schema.Session, many=True),
        "retrieve": Form(schema.Session),
        "scenario": Form(
            schema.Scenario, summary="The session as a scenario file, for `manage.py simulate`"
        ),
    }

    def query(self) -> QuerySet[Any]:
        return SchedulingSession.objects.all()

    def scenario(self, request: Request, name: str) -> Response:
        try:
            text = scenario_text(self.lookup({"name": name})[self.number])
        except NotKept as problem:
            raise Refusal(str(problem), code=404, kind="not-found") from problem
        return self.answer(json.loads(text))

    def present(self, rows: Rows) -> Objects:
        return [session_object(row, Sight(self.access.visible)) for row in rows]


def session_object(row: SchedulingSession, sight: Sight) -> dict[str, Any]:
    status = {
        "state": row.state,
        "startedAt": stamp(row.started_at),
        "finishedAt": stamp(row.finished_at),
        "durations": row.durations,
        "counts": row.counts,
        "message": sight.of_the_cluster(row.message),
        "trigger": row.trigger,
        "worker": row.worker,
        "policy": row.policy_id,
    }
    return record_object("Session", str(row.number), row.started_at, {}, status)


class Decisions(Records):
    kind = "decision"
    filter_class = DecisionFilters
    search_fields = ("pod_name", "podgroup_name", "node_name")
    forms: ClassVar[Mapping[str, Form]] = {
        "list": Form(schema.Decision, many=True),
        "retrieve": Form(schema.Decision),
    }

    def query(self) -> QuerySet[Any]:
        return _told(Decision.objects.select_related("session"), self.access)

    def present(self, rows: Rows) -> Objects:
        return [decision_object(row) for row in rows]


def decision_object(row: Decision) -> dict[str, Any]:
    spec = {
        "kind": row.kind,
        "pod": row.pod_name,
        "podgroup": row.podgroup_name,
        "queue": row.queue_name,
        "node": row.node_name,
        "action": row.action,
        "session": row.session.number if row.session else None,
    }
    status = {
        "claimedAt": stamp(row.claimed_at),
        "doneAt": stamp(row.done_at),
        "attempts": row.attempts,
        "error": row.error,
    }
    return record_object("Decision", str(row.pk), row.created_at, spec, status)


class Evictions(Records):
    kind = "eviction"
    filter_class = EvictionFilters
    search_fields = ("pod_name", "podgroup_name", "beneficiary")
    forms: ClassVar[Mapping[str, Form]] = {
        "list": Form(schema.Eviction, many=True),
        "retrieve": Form(schema.Eviction),
    }

    def query(self) -> QuerySet[Any]:
        """Who may see the victim's queue; the name of the other side is shown only where that may be seen too."""
        return _told(Eviction.objects.all(), self.access)

    def filtered(self, query: QuerySet[Any]) -> QuerySet[Any]:
        """By what is shown alone: nobody finds out about the other side by looking for it."""
        found, seen = super().filtered(query), self.access.visible
        return (
            found
            if seen is None or not self.request.query_params.get("beneficiary_queue")
            else found.filter(beneficiary_queue__in=seen)
        )

    def places_of(self, word: str) -> Q:
        seen = self.access.visible
        if seen is None:
            return super().places_of(word)
        own = Q(pod_name__icontains=word) | Q(podgroup_name__icontains=word)
        return own | Q(beneficiary__icontains=word, beneficiary_queue__in=seen)

    def present(self, rows: Rows) -> Objects:
        return [self._shown(row) for row in rows]

    def _shown(self, row: Eviction) -> dict[str, Any]:
        seen = Sight(self.access.visible).eviction(row)
        spec = {
            "session": row.session_number,
            "pod": seen.pod,
            "podgroup": seen.podgroup,
            "queue": seen.queue,
            "node": seen.node,
            "beneficiary": seen.beneficiary,
            "beneficiaryQueue": seen.beneficiary_queue,
            "action": row.action,
            "reason": seen.reason,
            "commonAncestor": seen.level,
            "level": row.level,
            "before": _standing(seen.before),
            "after": _standing(seen.after),
        }
        return record_object("Eviction", str(row.pk), row.created_at, spec, {})


def _standing(stored: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, str]]:
    return {name: Resources(amounts).to_quantities() for name, amounts in stored.items()}


class Events(Records):
    kind = "event"
    filter_class = EventFilters
    search_fields = ("name", "reason", "message")
    orderings: ClassVar[Mapping[str, str]] = {
        "last": "last_at",
        "first": "first_at",
        "created": "id",
    }
    default_ordering = "-last"
    forms: ClassVar[Mapping[str, Form]] = {
        "list": Form(schema.Event, many=True),
        "retrieve": Form(schema.Event),
    }

    def query(self) -> QuerySet[Any]:
        """Events of the cluster and its nodes belong to no queue: for everybody with a role."""
        seen = self.access.visible
        if seen is None:
            return Event.objects.all()
        common = (
            Q(queue_name="", kind__in=("Cluster", "Node"))
            if self.access.may_anywhere(Permission.VIEW)
            else Q(pk=None)
        )
        return Event.objects.filter(records_of(seen, "last_at") | common)

    def present(self, rows: Rows) -> Objects:
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
        "firstAt": stamp(row.first_at),
        "lastAt": stamp(row.last_at),
    }
    return record_object("Event", str(row.pk), row.first_at, spec, {})


class Audit(Records):
    """For admins: of what happened to their queues, of everything for admins of the cluster. Whole with `Accept: text/csv` or ndjson."""

    kind = "audit entry"
    filter_class = AuditFilters
    search_fields = ("actor", "name", "message", "reason")
    orderings: ClassVar[Mapping[str, str]] = {"at": "id"}
    default_ordering = "-at"
    rules: ClassVar[Mapping[str, permissions.Rule]] = dict.fromkeys(
        ("list", "retrieve"), permissions.ADMIN
    )
    forms: ClassVar[Mapping[str, Form]] = {
        "list": Form(
            schema.AuditRecord,
            many=True,
            summary="The audit log in pages; all of it as text/csv or application/x-ndjson",
        ),
        "retrieve": Form(schema.AuditRecord),
    }

    def get_renderers(self) -> list[Any]:
        exports = [CSVRenderer(), LinesRenderer()] if self.action_name == "list" else []
        return [*super().get_renderers(), *exports]

    def query(self) -> QuerySet[Any]:
        if self.access.is_cluster_admin:
            return AuditEntry.objects.all()
        return AuditEntry.objects.filter(records_of(self.access.where(Permission.ADMINISTER), "at"))

    def present(self, rows: Rows) -> Objects:
        return [audit_object(row) for row in rows]

    def list(self, request: Request, *_args: Any, **_kwargs: Any) -> HttpResponseBase:
        chosen = getattr(request.accepted_renderer, "format", "")
        return self._whole(chosen) if chosen in ("csv", "ndjson") else super().list(request)

    def _whole(self, chosen: str) -> HttpResponseBase:
        for name in ("cursor", "page_size", "fields"):
            if name in self.request.query_params:
                raise bad_parameter(
                    name, f"An export is whole, so it has no {name}.", "leave it out"
                )
        entries = map(
            audit_object,
            all_rows(self.filtered(self.query()), oldest_first=self.ordering == ["id"]),
        )
        plain = self.request._request
        if chosen == "csv":
            return streamed(
                plain,
                as_csv((entry["spec"] for entry in entries), AUDIT_COLUMNS),
                "text/csv",
                "audit.csv",
            )
        return streamed(plain, as_json_lines(entries), "application/x-ndjson", "audit.ndjson")


AUDIT_COLUMNS = (
    "at", "actor", "door", "address", "requestId", "deeds", "action", "kind", "namespace", "name", "queue", "follows", "reason", "message",
    "before", "after",
)  # fmt: skip


def audit_object(row: AuditEntry) -> dict[str, Any]:
    spec = {
        "at": stamp(row.at),
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
