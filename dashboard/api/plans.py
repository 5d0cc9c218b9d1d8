"""/api/v1/plans/ and /api/v1/occurrences/: change sets that begin and end at set times."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.filters import OccurrenceFilters, PlanFilters
from dashboard.api.framework import permissions
from dashboard.api.framework.body_fields import given_fields, given_text, refuse_unknown
from dashboard.api.framework.collection import Objects, Orderings, Rows, Verbs
from dashboard.api.framework.errors import bad_parameter
from dashboard.api.objects import iso_time, record_object
from dashboard.api.records import Records
from dashboard.api.schema.openapi import Operation, Operations, command_to
from dashboard.present.change_sets import item_json
from dashboard.present.plan_words import message_for_reader, problems_for_reader
from scheduler.models import ChangePlan, Occurrence
from scheduler.selectors.accounts.hidden_names import HiddenNames
from scheduler.selectors.change_sets.calendar import visible_occurrences, visible_plans
from scheduler.services.change_sets import conflicts
from scheduler.services.change_sets.plans import Wish, cancel_plan, plan_change_set

_FIELDS = ("changeSet", "begin", "end", "timeZone", "weekly", "lastDate")
_MOST_OCCURRENCES = 20
_EXAMPLE = OpenApiExample(
    "Every weekend",
    request_only=True,
    value={
        "changeSet": 7,
        "begin": "2026-11-20T18:00",
        "end": "2026-11-23T08:00",
        "timeZone": "Europe/Berlin",
        "weekly": True,
        "lastDate": "2027-01-31",
    },
)


class _CalendarRecords(Records):
    """Their messages may name queues and plans that the reader may not see."""

    def hidden_names(self) -> HiddenNames:
        return HiddenNames(self.access, self.request.user.get_username())


class Plans(_CalendarRecords):
    noun = "plan"
    filter_class = PlanFilters
    orderings: ClassVar[Orderings] = {"created": "id"}
    rules: ClassVar[permissions.Rules] = {
        "list": permissions.signed_in,
        "retrieve": permissions.signed_in,
        "create": permissions.OPERATE,
        "destroy": permissions.OPERATE,
    }
    operations: ClassVar[Operations] = {
        "list": Operation(
            schema.ChangePlan, many=True, summary="Change sets that begin and end at set times"
        ),
        "retrieve": Operation(
            schema.ChangePlan, summary="A plan: its times, what stands against it, its turns"
        ),
        "create": Operation(
            schema.saved(schema.ChangePlan),
            schema.GivenPlan,
            201,
            summary="Plan a change set. Refused if it breaks a rule with what else is planned",
            examples=(_EXAMPLE,),
        ),
        "destroy": Operation(
            schema.Gone, summary="Cancel a plan. What holds of it is taken back at once"
        ),
    }

    def visible_rows(self) -> QuerySet[Any]:
        mine = visible_plans(self.access, self.request.user.get_username())
        return mine.prefetch_related("occurrences")

    def as_objects(self, rows: Rows) -> Objects:
        hidden = self.hidden_names()
        return [plan_object(row, hidden) for row in rows]

    def create(self, request: Request) -> Response:
        given = given_fields(request.data)
        refuse_unknown(given, _FIELDS, "A plan has no {}.", f"one of {', '.join(_FIELDS)}")
        number = given.get("changeSet")
        if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < 2**63:
            raise bad_parameter("changeSet", "changeSet must be the number of a change set.")
        weekly = given.get("weekly", False)
        if not isinstance(weekly, bool):
            raise bad_parameter("weekly", "weekly must be true or false.")
        wish = Wish(
            begin=given_text(request.data, "begin", required=True),
            end=given_text(request.data, "end"),
            zone=given_text(request.data, "timeZone", "UTC"),
            weekly=weekly,
            last_date=given_text(request.data, "lastDate"),
        )
        with self.undone_in_dry_run():
            made = plan_change_set(number, wish, by=self.actor)
            body = plan_object(made, self.hidden_names())
        location = f"/api/v1/plans/{made.pk}/"
        return self.saved_response(body, (), created=True, location=location)

    def destroy(self, request: Request, name: str) -> Response:
        row = self.row_or_404()
        cancel_plan(row.pk, by=self.actor, dry_run=self.dry_run)
        message = f"The plan of {row.change_set.name} was cancelled."
        return self.response_with({"message": message, "dryRun": self.dry_run})


class Occurrences(_CalendarRecords):
    noun = "occurrence"
    filter_class = OccurrenceFilters
    orderings: ClassVar[Orderings] = {"created": "id", "begins": "begins_at"}
    verbs: ClassVar[Verbs] = {"apply": {"post": "apply"}, "skip": {"post": "skip"}}
    rules: ClassVar[permissions.Rules] = {
        "list": permissions.signed_in,
        "retrieve": permissions.signed_in,
        "apply": permissions.OPERATE,
        "skip": permissions.OPERATE,
    }
    operations: ClassVar[Operations] = {
        "list": Operation(
            schema.Occurrence, many=True, summary="The turns of plans: what became of each"
        ),
        "retrieve": Operation(
            schema.Occurrence, summary="A turn; of a conflict also what applying it would change"
        ),
        "apply": command_to(
            schema.Occurrence,
            "Resolve a conflict: bring it up to date and apply it now",
        ),
        "skip": command_to(
            schema.Occurrence,
            "Leave a turn out, or leave what could not end as it is",
        ),
    }

    def visible_rows(self) -> QuerySet[Any]:
        return visible_occurrences(self.access, self.request.user.get_username())

    def as_objects(self, rows: Rows) -> Objects:
        hidden = self.hidden_names()
        return [occurrence_object(row, hidden) for row in rows]

    def _object(self, row: Occurrence, *, whole: bool = False) -> dict[str, Any]:
        return occurrence_object(row, self.hidden_names(), whole=whole)

    def retrieve(self, request: Request, *_args: Any, **_kwargs: Any) -> Response:
        return self.response_with(self._object(self.row_or_404(), whole=True))

    def apply(self, request: Request, name: str) -> Response:
        row = self.row_or_404()
        done = conflicts.apply_now(row.pk, by=self.commander, dry_run=self.dry_run)
        return self.saved_response(self._object(done), ())

    def skip(self, request: Request, name: str) -> Response:
        row = self.row_or_404()
        done = conflicts.skip(row.pk, by=self.commander, dry_run=self.dry_run)
        return self.saved_response(self._object(done), ())


def plan_object(row: ChangePlan, hidden: HiddenNames) -> dict[str, Any]:
    last = None
    if row.last_date is not None:
        last = row.last_date.isoformat()
    spec = {
        "changeSet": row.change_set_id,
        "name": row.change_set.name,
        "begin": row.begins,
        "end": row.ends or None,
        "timeZone": row.zone,
        "weekly": row.weekly,
        "lastDate": last,
    }
    turns = sorted(row.occurrences.all(), key=lambda turn: turn.number, reverse=True)
    status = {
        "state": row.state,
        "inWords": row.timetable.in_words,
        "plannedBy": row.planned_by,
        "problems": problems_for_reader(row, hidden),
        "occurrences": [_turn_json(turn, hidden) for turn in turns[:_MOST_OCCURRENCES]],
        "endedAt": iso_time(row.ended_at),
        "endedBy": row.ended_by,
    }
    return record_object("ChangePlan", str(row.pk), row.created_at, spec, status)


def _turn_json(row: Occurrence, hidden: HiddenNames) -> dict[str, Any]:
    return {
        "number": row.pk,
        "beginsAt": iso_time(row.begins_at),
        "endsAt": iso_time(row.ends_at),
        "state": row.state,
        "message": message_for_reader(row, hidden),
    }


def occurrence_object(
    row: Occurrence, hidden: HiddenNames, *, whole: bool = False
) -> dict[str, Any]:
    spec = {
        "plan": row.plan_id,
        "changeSet": row.plan.change_set_id,
        "name": row.plan.change_set.name,
        "beginsAt": iso_time(row.begins_at),
        "endsAt": iso_time(row.ends_at),
    }
    items = None
    if whole and row.is_conflict:
        items = [item_json(item) for item in conflicts.ways_out(row)]
    status = {
        "state": row.state,
        "message": message_for_reader(row, hidden),
        "beganAt": iso_time(row.began_at),
        "endedAt": iso_time(row.ended_at),
        "decidedBy": row.decided_by,
        "wouldChange": items,
    }
    return record_object("Occurrence", str(row.pk), row.created_at, spec, status)
