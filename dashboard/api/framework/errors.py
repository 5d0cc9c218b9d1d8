"""Refusals of the domain and of the framework as `application/problem+json`.

The only place that knows both.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from django.core.exceptions import (
    ObjectDoesNotExist,
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFieldsSent,
)
from django.db import InterfaceError, OperationalError, transaction
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import set_rollback

from dashboard.http.middleware import DAMAGED
from dashboard.present.change_sets import crossing_json
from scheduler.admission.violations import Notice, Rejected, Violation
from scheduler.domain.access import Forbidden, OutOfSight, ScopeTooNarrow
from scheduler.domain.change_sets import Crossed
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.lifecycle import NotAllowed
from scheduler.outages import is_damage
from scheduler.selectors.accounts.access import owner_of
from scheduler.selectors.records.feeds import last_changes
from scheduler.services.cluster.queue_writes import ClusterAway
from scheduler.services.files.versions import Stale
from scheduler.services.queues.commands import CommandFailed
from scheduler.services.queues.create_update import StaleVersion

logger = logging.getLogger(__name__)

PROBLEM_JSON = "application/problem+json"
_TYPES = "/api/docs/#problem-"

TITLES = {
    400: "Bad request",
    401: "Not signed in",
    403: "Not permitted",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    409: "Conflict",
    410: "Too old",
    412: "Changed meanwhile",
    413: "Too large",
    415: "Unsupported media type",
    429: "Too many requests",
    500: "Internal error",
    503: "Not available",
}


class Refusal(exceptions.APIException):
    """A refusal made in this layer, with the violations that go with it."""

    def __init__(
        self,
        detail: str,
        *,
        code: int = 400,
        problem_type: str = "invalid-request",
        violations: Iterable[Violation] = (),
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status_code = code
        self.problem_type = problem_type
        self.violations = tuple(violations)
        self.more = more


def not_found(message: str) -> Refusal:
    return Refusal(message, code=404, problem_type="not-found")


def bad_parameter(name: str, message: str, fix: str = "") -> Refusal:
    violation = Violation("invalid_parameter", "", name, message, fix)
    return Refusal(message, problem_type="invalid-parameter", violations=[violation])


def violation_json(violation: Violation) -> dict[str, str]:
    return {
        "ruleId": violation.rule_id,
        "queue": violation.queue,
        "field": violation.field,
        "message": violation.message,
        "fix": violation.fix,
    }


def notice_json(notice: Notice) -> dict[str, str]:
    return {
        "code": notice.code,
        "queue": notice.queue,
        "field": notice.field,
        "message": notice.message,
    }


def problem(
    code: int,
    detail: str,
    problem_type: str = "",
    violations: Iterable[Violation] = (),
    warnings: Iterable[Notice] = (),
    **more: Any,
) -> dict[str, Any]:
    """The body of an error; `more` are members that only this type of problem has."""
    title = TITLES.get(code, "Error")
    return {
        "type": _TYPES + (problem_type or title.lower().replace(" ", "-")),
        "title": title,
        "status": code,
        "detail": detail,
        "violations": [violation_json(violation) for violation in violations],
        "warnings": [notice_json(notice) for notice in warnings],
        **more,
    }


def as_sentence(text: str) -> str:
    """With a capital letter at its start and one full stop at its end."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _rejected_problem(error: Rejected) -> dict[str, Any]:
    detail = str(error) or "The request was refused."
    if error.by_state:
        return problem(409, detail, "state-forbids", error.violations, error.notices)
    return problem(400, detail, "rule-violated", error.violations, error.notices)


def _not_allowed_problem(error: NotAllowed) -> dict[str, Any]:
    violation = Violation(error.rule_id, error.queue, "spec.state", error.message, error.fix)
    return problem(409, error.message, "state-forbids", [violation], first=error.first)


def _not_possible_problem(error: NotPossible) -> dict[str, Any]:
    return problem(409, as_sentence(str(error)), "state-forbids")


def _forbidden_problem(error: Forbidden) -> dict[str, Any]:
    owner = ""
    if type(error) is Forbidden:
        owner = owner_of(error.queue)
    if owner:
        fix = f"{error.fix}: {error.queue} is owned by {owner}"
    else:
        fix = error.fix
    violation = Violation("permission_missing", error.queue, "", str(error), fix)
    body = problem(
        403,
        str(error),
        "not-permitted",
        [violation],
        permission=error.permission.value,
        queue=error.queue,
    )
    if isinstance(error, ScopeTooNarrow):
        body["scope"] = error.scope.value
    return body


def _stale_queue_problem(error: StaleVersion) -> dict[str, Any]:
    queue = error.queue
    changed = {
        "by": queue.updated_by,
        "at": queue.updated_at.isoformat(),
        "resourceVersion": str(queue.resource_version),
        "what": last_changes("Queue", queue.name),
    }
    return problem(412, str(error), "changed-meanwhile", changed=changed)


def _stale_problem(error: Stale) -> dict[str, Any]:
    kind, namespace, name = error.place
    what = last_changes(kind, name, namespace)
    by = error.by
    if what and not by:
        by = what[0]["by"]
    changed = {"by": by, "resourceVersion": str(error.version), "what": what}
    return problem(412, str(error), "changed-meanwhile", changed=changed)


def _crossed_problem(error: Crossed) -> dict[str, Any]:
    conflicts = [crossing_json(crossing) for crossing in error.crossings]
    return problem(409, str(error), "changed-meanwhile", conflicts=conflicts)


def _refusal_problem(error: Refusal) -> dict[str, Any]:
    detail = str(error.detail)
    return problem(error.status_code, detail, error.problem_type, error.violations, **error.more)


def _missing_problem(error: ObjectDoesNotExist) -> dict[str, Any]:
    """Django's own sentence names a model, which readers do not know."""
    if "matching query" in str(error):
        return problem(404, "There is no such object.")
    return problem(404, str(error))


def _database_problem(_error: Exception) -> dict[str, Any]:
    message = "The database does not answer just now. Try again in a moment."
    return problem(503, message, "unavailable")


def _too_big_problem(_error: RequestDataTooBig) -> dict[str, Any]:
    message = "The request is larger than this server reads. Send it in parts."
    return problem(413, message, "too-large")


MOST_PARAMETERS = 1_000
"""Pages take more fields, one for each ticked queue. No program needs so many parameters."""


def _suspicious_problem(error: SuspiciousOperation) -> dict[str, Any]:
    """What Django refuses to read: too many parameters or fields, or what no program sends."""
    message = "The request cannot be read."
    if isinstance(error, TooManyFieldsSent):
        message = f"The request has more than {MOST_PARAMETERS:,} parameters or fields. Send fewer."
    return problem(400, message, "invalid-request")


def _away_problem(error: ClusterAway) -> dict[str, Any]:
    return problem(503, str(error), "unavailable", error.violations, error.notices)


_PROBLEMS: dict[type[Exception], Callable[[Any], dict[str, Any]]] = {
    ClusterAway: _away_problem,
    Rejected: _rejected_problem,
    NotAllowed: _not_allowed_problem,
    NotPossible: _not_possible_problem,
    Forbidden: _forbidden_problem,
    OutOfSight: lambda error: problem(404, str(error)),
    StaleVersion: _stale_queue_problem,
    Stale: _stale_problem,
    Crossed: _crossed_problem,
    Refusal: _refusal_problem,
    CommandFailed: lambda error: problem(503, str(error), "command-failed"),
    ObjectDoesNotExist: _missing_problem,
    Http404: lambda error: problem(404, str(error) or "There is nothing at this address."),
    PermissionDenied: lambda error: problem(403, str(error) or "You may not do this."),
    RequestDataTooBig: _too_big_problem,
    SuspiciousOperation: _suspicious_problem,
    OperationalError: _database_problem,
    InterfaceError: _database_problem,
}
_RETRY_SECONDS = "2"


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """None for a bug here: it rises to the middleware, which logs it."""
    body = _problem_of(error)
    if body is None:
        return None
    set_rollback()
    if isinstance(error, (OperationalError, InterfaceError)):
        logger.warning("the database did not answer %s: %s", context["request"].path, error)
    code = body["status"]
    response = Response(body, status=code, headers=_headers_of(error, code))
    response.exception = True
    return response


def _problem_of(error: Exception) -> dict[str, Any] | None:
    if is_damage(error):
        logger.error("the database's file is damaged: %s", error)
        return problem(503, DAMAGED, "unavailable")
    for error_class, describe in _PROBLEMS.items():
        if isinstance(error, error_class):
            return describe(error)
    if isinstance(error, exceptions.APIException):
        return _framework_problem(error)
    return None


def _framework_problem(error: exceptions.APIException) -> dict[str, Any]:
    if isinstance(error, exceptions.ValidationError):
        violations = list(_field_errors(error.detail))
        return problem(400, "The request is not valid.", "invalid-request", violations)
    return problem(error.status_code, str(error.detail))


def _field_errors(detail: Any, path: str = "") -> Iterable[Violation]:
    if isinstance(detail, dict):
        for key, inner in detail.items():
            yield from _field_errors(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(detail, list):
        for inner in detail:
            yield from _field_errors(inner, path)
    else:
        yield Violation("invalid_value", "", path, str(detail), "")


def _headers_of(error: Exception, code: int) -> dict[str, str]:
    headers = {}
    if getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = error.auth_header  # type: ignore[attr-defined]
    wait = getattr(error, "wait", None)
    if wait:
        headers["Retry-After"] = str(int(wait) + 1)
    elif code == status.HTTP_503_SERVICE_UNAVAILABLE:
        headers["Retry-After"] = _RETRY_SECONDS
    return headers


def problem_response(code: int, detail: str, problem_type: str = "") -> JsonResponse:
    """For what goes wrong outside of a view."""
    body = problem(code, detail, problem_type)
    return JsonResponse(body, status=code, content_type=PROBLEM_JSON)


class ApiErrorMiddleware:
    """A bug in the API is logged with its traceback, and answered with the request's id."""

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> Any:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> JsonResponse | None:
        if not request.path.startswith("/api/v"):
            return None
        body = _problem_of(error)
        if body is not None:
            code = body["status"]
            headers = _headers_of(error, code)
            return JsonResponse(body, status=code, content_type=PROBLEM_JSON, headers=headers)
        request_id = getattr(request, "request_id", "")
        logger.error("the request %s to %s failed", request_id, request.path, exc_info=error)
        if transaction.get_connection().in_atomic_block:
            set_rollback()
        message = f"Something is wrong here, and it was written to the log under {request_id}."
        return problem_response(500, message, "internal-error")
