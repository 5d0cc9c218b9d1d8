"""/api/v1/podgroups/: podgroups, why they wait, and what happened to them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.filters import PodGroupFilters
from dashboard.api.framework import permissions
from dashboard.api.framework.collection import ManifestSet, Objects, Orderings, Rows, Verbs
from dashboard.api.framework.errors import as_sentence
from dashboard.api.framework.visible_rows import visible
from dashboard.api.objects import iso_time, podgroup_object
from dashboard.api.schema.openapi import Operation, Operations
from dashboard.api.watch.endpoint import WATCH_PARAMETERS, ReadObjects, Stamps, Watched
from dashboard.http.visibility import Visibility
from dashboard.present.start_times import start_object
from scheduler.domain.access import Access
from scheduler.domain.no_reclaim import ReclaimAnswer, visible_figures
from scheduler.domain.pod_conditions import in_words
from scheduler.domain.shown_phases import shown_phase
from scheduler.models import ExpectedStart, PodGroup, Queue
from scheduler.models.stamps import stamp_of
from scheduler.selectors.accounts.access import owner_of
from scheduler.selectors.jobs.gangs import WAITING, PhaseCounts, place_in_line, pods_by_phase
from scheduler.selectors.jobs.page import gang_named, last_eviction
from scheduler.selectors.jobs.start_times import expected_starts, starts_of_waiting
from scheduler.selectors.jobs.timeline import Span, TimelineEntry, timeline_of
from scheduler.services.jobs import podgroups
from scheduler.services.jobs.reclaim import why_no_reclaim


class PodGroups(Watched, ManifestSet):
    noun = "podgroup"
    takes_lists_in_steps = True
    lookups = ("namespace", "name")
    filter_class = PodGroupFilters
    search_fields = ("name", "object_name", "owner", "queue__name")
    orderings: ClassVar[Orderings] = {
        "created": "created_at",
        "name": "name",
        "namespace": "namespace",
        "phase": "phase",
        "queue": "queue__name",
        "user": "owner",
        "priority": "priority",
    }
    default_ordering = "-created"
    verbs: ClassVar[Verbs] = {"explain": {"get": "explain"}, "timeline": {"get": "timeline"}}
    rules: ClassVar[permissions.Rules] = {
        "list": permissions.signed_in,
        "retrieve": permissions.signed_in,
        "explain": permissions.signed_in,
        "timeline": permissions.signed_in,
        "create": permissions.SUBMIT,
        "update": permissions.SUBMIT,
        "partial_update": permissions.SUBMIT,
        "destroy": permissions.SUBMIT,
    }
    operations: ClassVar[Operations] = {
        "list": Operation(
            schema.PodGroup, many=True, errors=(410,), parameters=WATCH_PARAMETERS, streams=True
        ),
        "retrieve": Operation(schema.PodGroup),
        "create": Operation(schema.saved(schema.PodGroup), schema.PodGroupManifest, 201, bulk=True),
        "update": Operation(schema.saved(schema.PodGroup), schema.PodGroupManifest),
        "partial_update": Operation(schema.saved(schema.PodGroup), schema.PodGroupManifest),
        "destroy": Operation(schema.Gone),
        "explain": Operation(schema.Explanation, summary="Why it waits, in words and figures"),
        "timeline": Operation(
            schema.Timeline,
            summary="What happened to it, step by step, and where the time went in between",
        ),
    }

    def visible_rows(self) -> QuerySet[Any]:
        return visible(PodGroup.objects.select_related("queue"), self.access)

    def row_or_404(self, **where: str) -> Any:
        """By what the cluster calls it, else by the name of its job."""
        place = where or self.kwargs
        named = self.visible_rows().filter(namespace=place["namespace"], object_name=place["name"])
        return named.first() or super().row_or_404(**where)

    def as_objects(self, rows: Rows) -> Objects:
        pods = pods_by_phase([group.pk for group in rows])
        expected = starts_of_waiting(rows)
        objects = []
        for group in rows:
            counts = pods.get(group.pk, {})
            objects.append(podgroup_object(group, counts, expected.get(group.pk)))
        return objects

    def stamped_list(self, most: int) -> tuple[Stamps, ReadObjects]:
        found = self.filter_rows(visible(PodGroup.objects.all(), self.access))
        rows = found.annotate(now=stamp_of(PodGroup)).values_list("id", "phase", "now")
        stamped = {key: (phase, now) for key, phase, now in rows.order_by("id")[:most]}
        pods = pods_by_phase(stamped)
        waiting = [key for key, (phase, _) in stamped.items() if phase in WAITING]
        expected = expected_starts(waiting)
        stamps = {}
        for key, (_, now) in stamped.items():
            foretold = expected[key].made_at if key in expected else None
            stamps[key] = (now, pods.get(key), foretold)
        return stamps, partial(_objects_by_key, pods, expected)

    def create_object(self, manifest: Any) -> Response:
        with self.undone_in_dry_run():
            made = podgroups.submit_podgroup(manifest, by=self.actor)
            body = self.as_objects([made.podgroup])[0]
        return self.saved_response(
            body,
            made.notices,
            created=True,
            version=made.podgroup.resource_version,
            location=f"/api/v1/podgroups/{made.podgroup.namespace}/{made.podgroup.name}/",
        )

    def update_object(self, *, merge: bool, **where: str) -> Response:
        with self.undone_in_dry_run():
            made = podgroups.update_podgroup(
                where["namespace"],
                where["name"],
                self.request.data,
                by=self.actor,
                merge=merge,
                expected_version=self.expected_version,
            )
            body = self.as_objects([self.row_or_404()])[0]
        version = made.podgroup.resource_version
        return self.saved_response(body, made.notices, changed=made.changed, version=version)

    def destroy(self, request: Request, namespace: str, name: str) -> Response:
        self.row_or_404()
        message = podgroups.delete_podgroup(
            namespace,
            name,
            by=self.actor,
            expected_version=self.expected_version,
            dry_run=self.dry_run,
        )
        return self.response_with({"message": message, "dryRun": self.dry_run})

    def explain(self, request: Request, namespace: str, name: str) -> Response:
        gang = gang_named(namespace, name)
        found = None
        if gang is not None:
            found = place_in_line(namespace, gang.name)
        if found is None or gang is None or not _is_readable(self.access, found["queue"]):
            raise self.nothing_found()
        visibility = Visibility(self.access.visible)
        answer = {
            **explanation(found),
            "reclaim": reclaim_object(why_no_reclaim(gang), visibility),
            "lastEviction": last_eviction_object(gang, visibility),
            "expectedStart": start_object(expected_starts([gang.pk]).get(gang.pk)),
        }
        return self.response_with(answer)

    def timeline(self, request: Request, namespace: str, name: str) -> Response:
        self.row_or_404()
        gang = gang_named(namespace, name)
        if gang is None:
            raise self.nothing_found()
        return self.response_with(timeline_answer(gang, Visibility(self.access.visible)))


def _objects_by_key(
    pods: Mapping[int, PhaseCounts], expected: Mapping[int, ExpectedStart], ids: list[int]
) -> dict[int, dict[str, Any]]:
    objects: dict[int, dict[str, Any]] = {}
    for group in PodGroup.objects.filter(pk__in=ids).select_related("queue"):
        counts = pods.get(group.pk, {})
        objects[group.pk] = podgroup_object(group, counts, expected.get(group.pk))
    return objects


def reclaim_object(answer: ReclaimAnswer | None, visibility: Visibility) -> dict[str, Any] | None:
    """Why it does not take room from other queues; None where that is not the question."""
    if answer is None:
        return None
    return {
        "code": answer.code.value,
        "message": visibility.reclaim_words(answer),
        "figures": visible_figures(answer.figures, visibility.visible_queue),
    }


def last_eviction_object(gang: PodGroup, visibility: Visibility) -> dict[str, Any] | None:
    """Of its pods, the last one that was evicted."""
    row = last_eviction(gang)
    if row is None:
        return None
    seen = visibility.visible_eviction(row)
    return {
        "at": iso_time(row.created_at),
        "session": row.session_number,
        "pod": seen.pod,
        "beneficiary": seen.beneficiary,
        "action": row.action,
        "rule": row.rule,
        "why": seen.words,
    }


def _is_readable(access: Access, queue: int) -> bool:
    return access.readable is None or queue in access.readable


_NOT_WAITING = {
    "Running": "It runs.",
    "Unknown": "Some of its pods run, and there is no room for the rest.",
    "Restarting": "Its pods are stopping, to begin again.",
    "Aborting": "Its pods are stopping; it can be resumed then.",
    "Aborted": "It was suspended and can be resumed.",
    "Completing": "Its pods are stopping.",
    "Terminating": "Its pods are stopping.",
}


def explanation(gang: Mapping[str, Any]) -> dict[str, Any]:
    """Why a gang waits, and its place by priority and age among those that wait in its queue."""
    phase = shown_phase(gang["phase"], gang["job__phase"])
    answer = {
        "podgroup": f"{gang['namespace']}/{gang['name']}",
        "phase": phase,
        "waiting": False,
        "reason": "",
        "message": _what_it_does(phase, gang),
        "figures": {},
        "checks": [],
        "session": gang["reason_session"],
        "evaluatedAt": iso_time(gang["evaluated_at"]),
        "position": None,
        "ahead": None,
        "owner": "",
    }
    if phase in WAITING:
        answer.update(_why_waiting(gang))
    return answer


def _why_waiting(gang: Mapping[str, Any]) -> dict[str, Any]:
    unseen = "No session has looked at it yet; the next one will."
    return {
        "waiting": True,
        "reason": gang["reason_code"] or "AwaitingEvaluation",
        "message": gang["reason_message"] or unseen,
        "figures": gang["reason_figures"],
        "checks": gang["reason_checks"],
        "position": gang["ahead"] + 1,
        "ahead": gang["ahead"],
        "owner": _owner_of_queue(gang["queue"]),
    }


def _owner_of_queue(number: int) -> str:
    name = Queue.objects.filter(pk=number).values_list("name", flat=True).first()
    if name:
        return owner_of(name)
    return ""


def _what_it_does(phase: str, gang: Mapping[str, Any]) -> str:
    """With why some of its pods wait, if it runs without them."""
    words = _why_not_waiting(phase, gang["job__message"] or "")
    others = ""
    if phase == "Running":
        others = in_words(gang["pod_conditions"])
    return f"{words} {others}".rstrip()


def _why_not_waiting(phase: str, message: str) -> str:
    """What it does now, or how it ended and the message that it ended with."""
    words = _NOT_WAITING.get(phase, "It has ended.")
    if not message:
        return words
    return f"{words} {as_sentence(message)}"


def timeline_answer(gang: PodGroup, visibility: Visibility) -> dict[str, Any]:
    found = timeline_of(gang)
    steps = []
    for span, step in found.entries:
        steps.append(_step_object(step, span, visibility))
    return {"podgroup": str(gang), "steps": steps, "now": _span_object(found.now)}


def _step_object(step: TimelineEntry, span: Span | None, visibility: Visibility) -> dict[str, Any]:
    """`span` is the time before the step."""
    beneficiary = visibility.visible_job(step.whom, step.queue)
    return {
        "at": iso_time(step.at),
        "title": step.title,
        "detail": visibility.step_detail(step),
        "kind": step.kind,
        "pods": step.pods,
        "beneficiary": beneficiary.key if beneficiary else "",
        "before": _span_object(span),
    }


def _span_object(span: Span | None) -> dict[str, Any] | None:
    if span is None:
        return None
    return {"seconds": round(span.seconds, 3), "waited": span.waited, "waitedFor": span.what}
