"""/api/v1/bulkruns/: one command for many jobs, carried out in the background, and how far it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import permissions, schema
from dashboard.api.base import LIST_PARAMETERS, EndpointSet, Objects, Rows, checked_reason
from dashboard.api.errors import bad_parameter
from dashboard.api.objects import record_object, stamp
from dashboard.api.pagination import CursorPages
from dashboard.api.schema.openapi import Form
from dashboard.api.users import given_fields, given_text
from dashboard.forms.job_choice import Choice, Key, choices, jobs_named, jobs_of_query, read_query
from dashboard.present.jobs import VERBS, Verb
from scheduler.admission.violations import Notice, Rejected, Violation
from scheduler.domain.access import Permission
from scheduler.models import BulkItem, BulkRun
from scheduler.selectors.accounts.preferences import counts_of_runs, visible_runs
from scheduler.selectors.jobs.listing import JobRow
from scheduler.services.jobs.bulk import MOST_JOBS, retry_bulk_run, start_bulk_run

_WARNED_OF_AT_MOST = 200
_EXAMPLE = OpenApiExample(
    "Cancel all that wait",
    request_only=True,
    value={"action": "cancel", "query": "state:waiting user:me", "reason": "wrong image"},
)


class BulkRuns(EndpointSet):
    kind = "bulk run"
    orderings: ClassVar[Mapping[str, str]] = {"created": "id"}
    default_ordering = "-created"
    search_fields = ("query", "reason")
    verbs: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "items": {"get": "items"},
        "retry": {"post": "retry"},
    }
    rules: ClassVar[Mapping[str, permissions.Rule]] = {
        **dict.fromkeys(("list", "retrieve", "items"), permissions.signed_in),
        **dict.fromkeys(("create", "retry"), permissions.SUBMIT),
    }
    forms: ClassVar[Mapping[str, Form]] = {
        "list": Form(
            schema.BulkRun, many=True, summary="Runs that one began; for cluster admins everybody's"
        ),
        "retrieve": Form(schema.BulkRun),
        "create": Form(
            schema.saved(schema.BulkRun),
            schema.GivenBulkRun,
            201,
            summary="Suspend, resume, restart or cancel many jobs, named or matching a filter",
            examples=(_EXAMPLE,),
        ),
        "items": Form(schema.BulkJob, many=True, summary="Each job of the run and what came of it"),
        "retry": Form(
            schema.saved(schema.BulkRun),
            schema.Reason,
            201,
            optional_body=True,
            summary="A new run for those that were refused",
        ),
    }

    @property
    def known_parameters(self) -> frozenset[str]:
        return super().known_parameters | (
            LIST_PARAMETERS if self.action_name == "items" else frozenset()
        )

    def query(self) -> QuerySet[Any]:
        return visible_runs(self.request.user, everybody=self.access.is_cluster_admin)

    def lookup(self, where: Mapping[str, str]) -> dict[str, Any]:
        return {"uid": where["name"]} if schema.is_uid(where["name"]) else {"pk": None}

    def present(self, rows: Rows) -> Objects:
        counts = counts_of_runs([run.pk for run in rows])
        return [run_object(run, counts.get(run.pk, {})) for run in rows]

    def create(self, request: Request) -> Response:
        verb, reason = self._verb(), checked_reason(given_fields(request.data).get("reason") or "")
        found = self._chosen(verb)
        able = [choice for choice in found if not choice.obstacle]
        self._refuse_forbidden(found, able)
        query = given_text(request.data, "query", longest=1024)
        with self.rehearsal():
            keys = [(choice.row.namespace, choice.row.name) for choice in able]
            run = start_bulk_run(verb.action, keys, by=self.actor, reason=reason, query=query)
            body = self.present([run])[0]
        return self._begun(run, body, _left_out(found))

    def _begun(self, run: BulkRun, body: dict[str, Any], notices: Iterable[Notice]) -> Response:
        return self.saved(body, notices, created=True, location=f"/api/v1/bulkruns/{run.uid}/")

    def _verb(self) -> Verb:
        action = given_text(self.request.data, "action", required=True)
        verb = VERBS.get(action) or next(
            (verb for verb in VERBS.values() if verb.action.value == action), None
        )
        if verb is None:
            raise bad_parameter(
                "spec.action",
                f"“{action[:40]}” can not be done to jobs.",
                f"write one of {', '.join(VERBS)}",
            )
        return verb

    def _chosen(self, verb: Verb) -> list[Choice]:
        given = given_fields(self.request.data)
        unknown = sorted(set(given) - {"action", "jobs", "query", "reason"})
        if unknown:
            raise bad_parameter(
                unknown[0][:80],
                f"A bulk run has no {unknown[0][:80]}.",
                "one of action, jobs, query, reason",
            )
        if (given.get("jobs") is None) == (given.get("query") is None):
            raise bad_parameter(
                "spec.jobs",
                "Give either the jobs by name, or a query that they match.",
                'such as ["default/train"]',
            )
        rows = self._named(given["jobs"]) if given.get("jobs") is not None else self._matching()
        return choices(rows, verb, self.access, self.request.user.get_username())

    def _matching(self) -> tuple[JobRow, ...]:
        """A term that can not be read is a refusal: without it more jobs would match than were meant."""
        query = read_query(
            given_text(self.request.data, "query", longest=1024), self.request.user.get_username()
        )
        if query.problems:
            raise bad_parameter("spec.query", " ".join(query.problems))
        return jobs_of_query(query, self.access)

    def _named(self, names: Any) -> tuple[JobRow, ...]:
        keys = _keys(names)
        rows = jobs_named(keys, self.access)
        missing = sorted(
            {"/".join(key) for key in keys} - {f"{row.namespace}/{row.name}" for row in rows}
        )
        if missing:
            raise Rejected(
                [
                    Violation(
                        "job_not_found", "", "spec.jobs", f"There is no job {name[:120]}.", ""
                    )
                    for name in missing[:20]
                ]
            )
        return rows

    def _refuse_forbidden(self, found: list[Choice], able: list[Choice]) -> None:
        forbidden = next((choice for choice in found if choice.is_forbidden), None)
        if forbidden is not None and not able:
            raise self.access.refusal(
                Permission.OPERATE, forbidden.row.queue, "command jobs that are not your own"
            )

    def items(self, request: Request, name: str) -> Response:
        pages = CursorPages(request, ["id"])
        rows = pages.rows(BulkItem.objects.filter(run=self.found()))
        return Response(pages.answer([item_object(item) for item in rows]))

    def retry(self, request: Request, name: str) -> Response:
        run = self.found()
        with self.rehearsal():
            again = retry_bulk_run(run, by=self.actor, reason=self.reason)
            body = self.present([again])[0]
        return self._begun(again, body, ())


def _keys(names: Any) -> list[Key]:
    """["default/train"]; a name without a namespace is one of `default`."""
    if (
        not isinstance(names, list)
        or len(names) > MOST_JOBS
        or not all(isinstance(name, str) and "\x00" not in name for name in names)
    ):
        raise bad_parameter(
            "spec.jobs",
            f'jobs must be a list of at most {MOST_JOBS} names such as "default/train".',
        )
    parted = [name.partition("/") for name in names]
    return [
        (namespace, name) if slash else ("default", namespace) for namespace, slash, name in parted
    ]


def _left_out(found: list[Choice]) -> list[Notice]:
    left = [choice for choice in found if choice.obstacle]
    notices = [
        Notice(
            "left_out",
            choice.row.queue,
            f"{choice.row.namespace}/{choice.row.name}: {choice.obstacle}",
            "spec.jobs",
        )
        for choice in left[:_WARNED_OF_AT_MOST]
    ]
    rest = len(left) - len(notices)
    return notices + ([Notice("left_out", "", f"and {rest} more", "spec.jobs")] if rest else [])


def run_object(run: BulkRun, counts: Mapping[str, int]) -> dict[str, Any]:
    verb = next(verb for verb in VERBS.values() if verb.action == run.action)
    spec = {"action": verb.key, "query": run.query, "reason": run.reason}
    total, left = sum(counts.values()), counts.get("", 0)
    status = {
        "state": run.state,
        "owner": run.owner.get_username(),
        "jobs": total,
        "left": left,
        "done": counts.get("Done", 0),
        "unchanged": counts.get("NoOp", 0),
        "refused": counts.get("Refused", 0),
        "finishedAt": stamp(run.finished_at),
    }
    return record_object("BulkRun", str(run.uid), run.created_at, spec, status, uid=str(run.uid))


def item_object(item: BulkItem) -> dict[str, Any]:
    return {
        "namespace": item.namespace,
        "name": item.name,
        "result": item.result,
        "message": item.message,
    }
