"""/api/v1/validate/ and apply/: objects of any kind, one or many, checked or made true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from dashboard.api import permissions, schema
from dashboard.api.authentication import actor_of
from dashboard.api.base import Endpoint
from dashboard.api.errors import Refusal, notice_json, violation_json
from dashboard.api.schema.openapi import Form, query
from scheduler.domain.plans import counted
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.demo.sample import load_sample_tree
from scheduler.services.files.apply import Applied, Item, apply_documents, check_documents
from scheduler.services.jobs.forecast import Forecast as JobForecast
from scheduler.services.jobs.forecast import forecast_job


def _documents(body: Any) -> list[Any]:
    return body if isinstance(body, list) else [body] if body != {} else []


class Validate(Endpoint):
    """Every violation and warning of a proposed object, or of a set whose members count for each other; nothing is written."""

    basename = "validate"
    writes_are_dry_runnable = False
    rules: ClassVar[Mapping[str, permissions.Rule]] = {"post": permissions.MEMBER}
    forms: ClassVar[Mapping[str, Form]] = {
        "post": Form(
            schema.Validated,
            schema.AnyManifest,
            several=True,
            summary="Which rules these objects break",
        )
    }

    def post(self, request: Request) -> Response:
        items = check_documents(_documents(request.data), by=self.actor)
        results = [_checked(item) for item in sorted(items, key=lambda item: item.index)]
        return self.answer(
            {"valid": all(result["valid"] for result in results), "results": results}
        )


def _checked(item: Item) -> dict[str, Any]:
    return {
        "index": item.index,
        "kind": item.kind[:80],
        "name": item.name[:253],
        "operation": item.done.operation if item.done else "",
        "valid": not item.violations,
        "violations": [violation_json(violation) for violation in item.violations],
        "warnings": [notice_json(notice) for notice in item.notices],
    }


class Apply(Endpoint):
    """A file of one or many documents, made true as a whole or not at all."""

    basename = "apply"
    parameters = frozenset({"prune", "shown"})
    rules: ClassVar[Mapping[str, permissions.Rule]] = {"post": permissions.SUBMIT}
    forms: ClassVar[Mapping[str, Form]] = {
        "post": Form(
            schema.Applied,
            schema.AnyManifest,
            several=True,
            summary="Create or update every object of a file, or none",
            parameters=(
                query(
                    "prune",
                    "A label such as `team=a`: objects of the file's kinds that wear it and are not in the file go.",
                ),
                query(
                    "shown",
                    "Those that a dry run said would go, such as `queue/team-a`, joined by commas: 409 where it would be others.",
                ),
            ),
        )
    }

    @property
    def actor(self) -> Actor:
        return actor_of(self.request, Door.MANIFEST, self.access, self.stated_reason)

    def post(self, request: Request) -> Response:
        prune, shown = request.query_params.get("prune", ""), request.query_params.get("shown")
        seen = None if shown is None else [name for name in shown.split(",") if name]
        done = apply_documents(
            _documents(request.data), by=self.actor, dry_run=self.dry_run, prune=prune, shown=seen
        )
        results = [_applied(item) for item in done]
        changed = sum(item.changed for item in done)
        would = "would be" if self.dry_run else "were"
        message = (
            f"{changed} of {counted(len(done), 'object')} {would} changed."
            if changed
            else "Everything is as the file says; nothing was changed."
        )
        return self.answer(
            {
                "changed": bool(changed),
                "dryRun": self.dry_run,
                "message": message,
                "results": results,
            }
        )


def _applied(item: Applied) -> dict[str, Any]:
    return {
        "index": item.index,
        "kind": item.kind,
        "name": item.name,
        "operation": item.operation,
        "changed": item.changed,
        "message": item.message,
        "diff": [
            {"field": field, "before": before, "after": after} for field, before, after in item.diff
        ],
        "warnings": [notice_json(notice) for notice in item.notices],
    }


class Sample(Endpoint):
    """The sample tree, for a cluster that has no queues of its own yet."""

    basename = "sample"
    rules: ClassVar[Mapping[str, permissions.Rule]] = {"post": permissions.CLUSTER_ADMIN}
    forms: ClassVar[Mapping[str, Form]] = {
        "post": Form(
            schema.SampleLoaded,
            schema.Empty,
            201,
            optional_body=True,
            summary="Create the queues of the sample tree",
        )
    }

    def post(self, request: Request) -> Response:
        if request.data not in ({}, None, ""):
            raise Refusal("The sample tree is what it is: send no body.", kind="invalid-request")
        made = load_sample_tree(by=self.actor, dry_run=self.dry_run)
        message = f"{len(made)} queues {'would be' if self.dry_run else 'were'} created."
        return self.answer(
            {"changed": True, "dryRun": self.dry_run, "message": message, "queues": made},
            200 if self.dry_run else 201,
        )


class Forecast(Endpoint):
    """What would become of a job if it were submitted now; nothing is written."""

    basename = "forecast"
    writes_are_dry_runnable = False
    rules: ClassVar[Mapping[str, permissions.Rule]] = {"post": permissions.SUBMIT}
    forms: ClassVar[Mapping[str, Form]] = {
        "post": Form(
            schema.Forecast,
            schema.JobManifest,
            summary="Starts now, waits because, can never run because; or is refused",
        )
    }

    def post(self, request: Request) -> Response:
        return self.answer(_forecast(forecast_job(request.data, by=self.actor)))


def _forecast(found: JobForecast) -> dict[str, Any]:
    """Of those that would have to go only the number: they may be in queues that the caller does not see."""
    return {
        "prospect": found.prospect.value,
        "message": found.message,
        "reason": found.code,
        "pods": found.pods,
        "placed": found.placed,
        "nodes": dict(found.nodes),
        "victims": len(found.victims),
        "request": found.request.to_quantities(),
        "checks": [check.as_dict() for check in found.checks],
        "violations": [violation_json(violation) for violation in found.violations],
        "warnings": [notice_json(notice) for notice in found.notices],
    }


class Start(Endpoint):
    """What there is."""

    basename = "start"
    rules: ClassVar[Mapping[str, permissions.Rule]] = {"get": permissions.signed_in}
    forms: ClassVar[Mapping[str, Form]] = {"get": Form(schema.Start, summary="What there is")}

    def get(self, request: Request) -> Response:
        from dashboard.api.urls import COLLECTIONS, SETS, SINGLETONS

        tables = (
            ("collections", COLLECTIONS, "-list"),
            ("singletons", SINGLETONS, ""),
            ("sets", SETS, ""),
        )
        body = {
            title: {
                name: reverse(f"api:{name.replace('/', '-')}{ending}", request=request) + "/"
                for name in table
            }
            for title, table, ending in tables
        }
        return self.answer(body)
