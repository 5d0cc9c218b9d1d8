"""/api/v1/bulkruns/: one command for many jobs, carried out in the background, and its progress."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.framework import permissions
from dashboard.api.framework.body_fields import (
    given_fields,
    given_text,
    given_texts,
    refuse_unknown,
)
from dashboard.api.framework.collection import EndpointSet, Objects, Orderings, Rows, Verbs
from dashboard.api.framework.errors import bad_parameter
from dashboard.api.framework.pagination import CursorPages
from dashboard.api.framework.parameters import LIST_PARAMETERS, check_reason
from dashboard.api.objects import iso_time, record_object
from dashboard.api.schema.openapi import Operation, Operations
from dashboard.forms.job_choice import Choice, Key, choices, jobs_named, jobs_of_query, read_query
from dashboard.present.jobs import VERBS, Verb, verb_of
from scheduler.admission.violations import Notice, Rejected, Violation
from scheduler.domain.access import Permission
from scheduler.models import BulkItem, BulkRun
from scheduler.selectors.accounts.preferences import counts_of_runs, visible_runs
from scheduler.selectors.jobs.listing import JobRow
from scheduler.services.jobs.bulk import MOST_JOBS, retry_bulk_run, start_bulk_run

_MOST_WARNINGS = 200
_MOST_MISSING = 20
_FIELDS = ("action", "jobs", "query", "reason")
_EXAMPLE = OpenApiExample(
    "Cancel all that wait",
    request_only=True,
    value={"action": "cancel", "query": "state:waiting user:me", "reason": "wrong image"},
)


class BulkRuns(EndpointSet):
    noun = "bulk run"
    orderings: ClassVar[Orderings] = {"created": "id"}
    default_ordering = "-created"
    search_fields = ("query", "reason")
    verbs: ClassVar[Verbs] = {"items": {"get": "items"}, "retry": {"post": "retry"}}
    rules: ClassVar[permissions.Rules] = {
        "list": permissions.signed_in,
        "retrieve": permissions.signed_in,
        "items": permissions.signed_in,
        "create": permissions.SUBMIT,
        "retry": permissions.SUBMIT,
    }
    operations: ClassVar[Operations] = {
        "list": Operation(
            schema.BulkRun,
            many=True,
            summary="Runs that you started; for cluster admins everybody's",
        ),
        "retrieve": Operation(schema.BulkRun),
        "create": Operation(
            schema.saved(schema.BulkRun),
            schema.GivenBulkRun,
            201,
            summary="Suspend, resume, restart or cancel many jobs, named or matching a filter",
            examples=(_EXAMPLE,),
        ),
        "items": Operation(
            schema.BulkJob, many=True, summary="Each job of the run, and its result"
        ),
        "retry": Operation(
            schema.saved(schema.BulkRun),
            schema.Reason,
            201,
            optional_body=True,
            summary="Start a new run for those that were refused",
        ),
    }

    @property
    def known_parameters(self) -> frozenset[str]:
        known = super().known_parameters
        if self.action_name == "items":
            known |= LIST_PARAMETERS
        return known

    def visible_rows(self) -> QuerySet[Any]:
        return visible_runs(self.request.user, everybody=self.access.is_cluster_admin)

    def lookup_values(self, where: Mapping[str, str]) -> dict[str, Any]:
        if not schema.is_uid(where["name"]):
            return {"pk": None}
        return {"uid": where["name"]}

    def as_objects(self, rows: Rows) -> Objects:
        counts = counts_of_runs([run.pk for run in rows])
        objects = []
        for run in rows:
            objects.append(run_object(run, counts.get(run.pk, {})))
        return objects

    def create(self, request: Request) -> Response:
        verb = self._given_verb()
        reason = check_reason(given_fields(request.data).get("reason") or "")
        found = self._given_jobs(verb)
        possible = [choice for choice in found if not choice.obstacle]
        if not possible:
            self._refuse_if_forbidden(found)
        query = given_text(request.data, "query", longest=1024)
        keys = []
        for choice in possible:
            keys.append((choice.row.namespace, choice.row.name))
        with self.undone_in_dry_run():
            run = start_bulk_run(verb.action, keys, by=self.actor, reason=reason, query=query)
            body = self.as_objects([run])[0]
        return self._started_response(run, body, _left_out(found))

    def items(self, request: Request, name: str) -> Response:
        pages = CursorPages(request, ["id"])
        rows = pages.read_rows(BulkItem.objects.filter(run=self.row_or_404()))
        return Response(pages.page_of([item_object(item) for item in rows]))

    def retry(self, request: Request, name: str) -> Response:
        run = self.row_or_404()
        with self.undone_in_dry_run():
            again = retry_bulk_run(run, by=self.actor, reason=self.reason)
            body = self.as_objects([again])[0]
        return self._started_response(again, body, ())

    def _started_response(
        self,
        run: BulkRun,
        body: dict[str, Any],
        notices: Iterable[Notice],
    ) -> Response:
        location = f"/api/v1/bulkruns/{run.uid}/"
        return self.saved_response(body, notices, created=True, location=location)

    def _given_verb(self) -> Verb:
        """By its name, or by that of its job action."""
        name = given_text(self.request.data, "action", required=True)
        if name in VERBS:
            return VERBS[name]
        for verb in VERBS.values():
            if verb.action.value == name:
                return verb
        message = f"“{name[:40]}” cannot be done to jobs."
        raise bad_parameter("spec.action", message, f"write one of {', '.join(VERBS)}")

    def _given_jobs(self, verb: Verb) -> list[Choice]:
        given = given_fields(self.request.data)
        fix = f"one of {', '.join(_FIELDS)}"
        refuse_unknown(given, _FIELDS, "A bulk run has no {}.", fix)
        names = given.get("jobs")
        if (names is None) == (given.get("query") is None):
            message = "Give either the jobs by name, or a query that they match."
            raise bad_parameter("spec.jobs", message, 'such as ["default/train"]')
        if names is None:
            rows = self._matching_jobs()
        else:
            rows = self._named_jobs(names)
        return choices(rows, verb, self.access, self.request.user.get_username())

    def _matching_jobs(self) -> tuple[JobRow, ...]:
        """A term that cannot be read is refused: without it more jobs would match than meant."""
        text = given_text(self.request.data, "query", longest=1024)
        query = read_query(text, self.request.user.get_username())
        if query.problems:
            raise bad_parameter("spec.query", " ".join(query.problems))
        return jobs_of_query(query, self.access)

    def _named_jobs(self, names: Any) -> tuple[JobRow, ...]:
        keys = _keys_of(names)
        rows = jobs_named(keys, self.access)
        found = set()
        for row in rows:
            found.add((row.namespace, row.name))
        missing = sorted("/".join(key) for key in set(keys) - found)
        if missing:
            raise Rejected([_no_such_job(name) for name in missing[:_MOST_MISSING]])
        return rows

    def _refuse_if_forbidden(self, found: list[Choice]) -> None:
        for choice in found:
            if choice.is_forbidden:
                doing = "command jobs that are not your own"
                raise self.access.refusal(Permission.OPERATE, choice.row.queue, doing)


def _no_such_job(name: str) -> Violation:
    return Violation("job_not_found", "", "spec.jobs", f"There is no job {name[:120]}.", "")


def _keys_of(given: Any) -> list[Key]:
    """["default/train"]; a name without a namespace is one of `default`."""
    names = given_texts(given, MOST_JOBS)
    if names is None or any("\x00" in name for name in names):
        message = f'jobs must be a list of at most {MOST_JOBS} names such as "default/train".'
        raise bad_parameter("spec.jobs", message)
    keys = []
    for name in names:
        namespace, slash, rest = name.partition("/")
        if slash:
            keys.append((namespace, rest))
        else:
            keys.append(("default", name))
    return keys


def _left_out(found: list[Choice]) -> list[Notice]:
    """A warning for each job that the run leaves out, and one for those beyond the most."""
    left_out = [choice for choice in found if choice.obstacle]
    notices = []
    for choice in left_out[:_MOST_WARNINGS]:
        message = f"{choice.row.namespace}/{choice.row.name}: {choice.obstacle}"
        notices.append(Notice("left_out", choice.row.queue, message, "spec.jobs"))
    rest = len(left_out) - len(notices)
    if rest:
        notices.append(Notice("left_out", "", f"and {rest} more", "spec.jobs"))
    return notices


def run_object(run: BulkRun, counts: Mapping[str, int]) -> dict[str, Any]:
    """`counts` are its jobs by result; "" are those that have none yet."""
    verb = verb_of(run.action)
    spec = {"action": verb.key, "query": run.query, "reason": run.reason}
    status = {
        "state": run.state,
        "owner": run.owner.get_username(),
        "jobs": sum(counts.values()),
        "left": counts.get("", 0),
        "done": counts.get("Done", 0),
        "unchanged": counts.get("NoOp", 0),
        "refused": counts.get("Refused", 0),
        "finishedAt": iso_time(run.finished_at),
    }
    return record_object("BulkRun", str(run.uid), run.created_at, spec, status, uid=str(run.uid))


def item_object(item: BulkItem) -> dict[str, Any]:
    return {
        "namespace": item.namespace,
        "name": item.name,
        "result": item.result,
        "message": item.message,
    }
