"""/api/v1/sessions/, decisions/ and evictions/: what the scheduler decided."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from django.db.models import Q, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.filters import DecisionFilters, EvictionFilters, SessionFilters
from dashboard.api.framework import permissions
from dashboard.api.framework.collection import Objects, Orderings, Rows, Verbs
from dashboard.api.framework.errors import not_found
from dashboard.api.objects import iso_time, record_object
from dashboard.api.records import Records
from dashboard.api.schema.openapi import Operation, Operations
from dashboard.http.visibility import SeenEviction, Visibility
from scheduler.domain.access import Access
from scheduler.domain.resources import Resources, format_quantity
from scheduler.models import Decision, Eviction, SchedulingSession
from scheduler.selectors.queues.reused_names import records_of
from scheduler.selectors.records.feeds import evictions_decided
from scheduler.services.sessions.replay import NotKept, scenario_text


class Sessions(Records):
    noun = "session"
    number = "number"
    filter_class = SessionFilters
    orderings: ClassVar[Orderings] = {"number": "number"}
    default_ordering = "-number"
    verbs: ClassVar[Verbs] = {"scenario": {"get": "scenario"}}
    rules: ClassVar[permissions.Rules] = {
        "list": permissions.MEMBER,
        "retrieve": permissions.MEMBER,
        "scenario": permissions.CLUSTER_VIEW,
    }
    operations: ClassVar[Operations] = {
        "list": Operation(schema.Session, many=True),
        "retrieve": Operation(schema.Session),
        "scenario": Operation(
            schema.Scenario, summary="The session as a scenario file, for `manage.py simulate`"
        ),
    }

    def visible_rows(self) -> QuerySet[Any]:
        return SchedulingSession.objects.all()

    def as_objects(self, rows: Rows) -> Objects:
        visibility = Visibility(self.access.visible)
        return [session_object(row, visibility) for row in rows]

    def scenario(self, request: Request, name: str) -> Response:
        number = self.lookup_values({"name": name})[self.number]
        try:
            text = scenario_text(number)
        except NotKept as problem:
            raise not_found(str(problem)) from problem
        return self.response_with(json.loads(text))


def session_object(row: SchedulingSession, visibility: Visibility) -> dict[str, Any]:
    status = {
        "state": row.state,
        "startedAt": iso_time(row.started_at),
        "finishedAt": iso_time(row.finished_at),
        "durations": row.durations,
        "counts": row.counts,
        "message": visibility.cluster_words(row.message),
        "trigger": row.trigger,
        "worker": row.worker,
        "policy": row.policy_id,
    }
    return record_object("Session", str(row.number), row.started_at, {}, status)


def _of_visible_queues(rows: QuerySet[Any], access: Access) -> QuerySet[Any]:
    if access.visible is None:
        return rows
    return rows.filter(records_of(access.visible, "created_at"))


class Decisions(Records):
    noun = "decision"
    filter_class = DecisionFilters
    search_fields = ("pod_name", "podgroup_name", "node_name")
    operations: ClassVar[Operations] = {
        "list": Operation(schema.Decision, many=True),
        "retrieve": Operation(schema.Decision),
    }

    def visible_rows(self) -> QuerySet[Any]:
        return _of_visible_queues(Decision.objects.select_related("session"), self.access)

    def as_objects(self, rows: Rows) -> Objects:
        visibility = Visibility(self.access.visible)
        evictions = evictions_decided(rows)
        objects = []
        for row in rows:
            eviction = evictions.get((row.session_id, row.pod_name))
            seen = visibility.visible_eviction(eviction) if eviction else None
            objects.append(decision_object(row, seen))
        return objects


def decision_object(row: Decision, eviction: SeenEviction | None) -> dict[str, Any]:
    """`eviction` is the record of what an eviction was decided by, as far as it may be seen."""
    spec = {
        "kind": row.kind,
        "pod": row.pod_name,
        "podgroup": row.podgroup_name,
        "queue": row.queue_name,
        "node": row.node_name,
        "action": row.action,
        "session": row.session.number if row.session else None,
        "rule": eviction.grounds.get("rule", "") if eviction else "",
        "why": eviction.words if eviction else "",
    }
    status = {
        "claimedAt": iso_time(row.claimed_at),
        "doneAt": iso_time(row.done_at),
        "attempts": row.attempts,
        "error": row.error,
    }
    return record_object("Decision", str(row.pk), row.created_at, spec, status)


class Evictions(Records):
    """Whoever may see the victim's queue sees an eviction; its beneficiary is another matter."""

    noun = "eviction"
    filter_class = EvictionFilters
    search_fields = ("pod_name", "podgroup_name", "beneficiary")
    operations: ClassVar[Operations] = {
        "list": Operation(schema.Eviction, many=True),
        "retrieve": Operation(schema.Eviction),
    }

    def visible_rows(self) -> QuerySet[Any]:
        return _of_visible_queues(Eviction.objects.all(), self.access)

    def filter_rows(self, query: QuerySet[Any]) -> QuerySet[Any]:
        """Only by what is shown: nobody finds out about a beneficiary by searching for it."""
        found = super().filter_rows(query)
        visible = self.access.visible
        if visible is None or not self.request.query_params.get("beneficiary_queue"):
            return found
        return found.filter(beneficiary_queue__in=visible)

    def search_condition(self, word: str) -> Q:
        visible = self.access.visible
        if visible is None:
            return super().search_condition(word)
        own = Q(pod_name__icontains=word) | Q(podgroup_name__icontains=word)
        return own | Q(beneficiary__icontains=word, beneficiary_queue__in=visible)

    def as_objects(self, rows: Rows) -> Objects:
        visibility = Visibility(self.access.visible)
        return [eviction_object(row, visibility) for row in rows]


def eviction_object(row: Eviction, visibility: Visibility) -> dict[str, Any]:
    seen = visibility.visible_eviction(row)
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
        "before": _as_quantities(seen.before),
        "after": _as_quantities(seen.after),
        "rule": row.rule,
        "why": seen.words,
        "grounds": grounds_object(seen.grounds),
        "ranSeconds": round(row.ran_seconds, 3),
        "acceleratorSeconds": round(row.accelerator_seconds, 3),
        "coreSeconds": round(row.core_seconds, 3),
    }
    return record_object("Eviction", str(row.pk), row.created_at, spec, {})


def grounds_object(grounds: Mapping[str, Any]) -> dict[str, Any]:
    """With amounts as quantities."""
    shown = {}
    for key, value in grounds.items():
        if key != "rule":
            shown[key] = value
    for side in ("taker", "loser"):
        if side in shown:
            shown[side] = _holding_object(shown["resource"], shown[side])
    return shown


def _holding_object(resource: str, holding: Mapping[str, Any]) -> dict[str, Any]:
    shown = dict(holding)
    for key in ("before", "after", "due"):
        shown[key] = format_quantity(resource, int(holding[key]))
    return shown


def _as_quantities(stored: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, str]]:
    quantities: dict[str, dict[str, str]] = {}
    for name, amounts in stored.items():
        quantities[name] = Resources(amounts).to_quantities()
    return quantities
