"""Refusals of the domain and of the framework as `application/problem+json`: the only place that knows both."""

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
from scheduler.admission.violations import Notice, Rejected, Violation
from scheduler.domain.access import Forbidden, OutOfSight, ScopeTooNarrow
from scheduler.domain.jobs import NotPossible
from scheduler.domain.lifecycle import NotAllowed
from scheduler.outages import is_damage
from scheduler.selectors.records.feeds import last_changes
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
    412: "Changed meanwhile",
    413: "Too large",
    415: "Unsupported media type",
    429: "Too many requests",
    500: "Internal error",
    503: "Not available",
}


class Refusal(exceptions.APIException):
    """A refusal made in this layer, with the violations that go with it."""

    status_code = 400
    kind = "invalid-request"

    def __init__(
        self,
        detail: str,
        *,
        code: int = 400,
        kind: str = "",
        violations: Iterable[Violation] = (),
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status_code, self.kind = code, kind or self.kind
        self.violations, self.more = tuple(violations), more


def bad_parameter(name: str, message: str, fix: str = "") -> Refusal:
    return Refusal(
        message,
        kind="invalid-parameter",
        violations=[Violation("invalid_parameter", "", name, message, fix)],
    )


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
    kind: str = "",
    violations: Iterable[Violation] = (),
    warnings: Iterable[Notice] = (),
    **more: Any,
) -> dict[str, Any]:
    """The body of an error; `more` are members that only this kind has."""
    title = TITLES.get(code, "Error")
    return {
        "type": _TYPES + (kind or title.lower().replace(" ", "-")),
        "title": title,
        "status": code,
        "detail": detail,
        "violations": [violation_json(violation) for violation in violations],
        "warnings": [notice_json(notice) for notice in warnings],
        **more,
    }


def _rejected(error: Rejected) -> dict[str, Any]:
    code = 409 if error.by_state else 400
    kind = "state-forbids" if error.by_state else "rule-violated"
    detail = str(error) or "The request was refused."
    return problem(code, detail, kind, error.violations, error.notices)


def _not_allowed(error: NotAllowed) -> dict[str, Any]:
    violation = Violation(error.rule_id, error.queue, "spec.state", error.message, error.fix)
    return problem(409, error.message, "state-forbids", [violation], first=error.first)


def _not_possible(error: NotPossible) -> dict[str, Any]:
    return problem(
        409, f"{error}."[0].upper() + f"{error}."[1:].replace("..", "."), "state-forbids"
    )


def _forbidden(error: Forbidden) -> dict[str, Any]:
    violation = Violation("permission_missing", error.queue, "", str(error), error.fix)
    body = problem(
        403,
        str(error),
        "not-permitted",
        [violation],
        permission=error.permission.value,
        queue=error.queue,
    )
    return {**body, "scope": error.scope.value} if isinstance(error, ScopeTooNarrow) else body


def _stale_queue(error: StaleVersion) -> dict[str, Any]:
    queue = error.queue
    changed = {
        "by": queue.updated_by,
        "at": queue.updated_at.isoformat(),
        "resourceVersion": str(queue.resource_version),
        "what": last_changes("Queue", queue.name),
    }
    return problem(412, str(error), "changed-meanwhile", changed=changed)


def _stale(error: Stale) -> dict[str, Any]:
    kind, namespace, name = error.place
    what = last_changes(kind, name, namespace)
    by = error.by or (what[0]["by"] if what else "")
    return problem(
        412,
        str(error),
        "changed-meanwhile",
        changed={"by": by, "resourceVersion": str(error.version), "what": what},
    )


def _refusal(error: Refusal) -> dict[str, Any]:
    return problem(error.status_code, str(error.detail), error.kind, error.violations, **error.more)


MOST_PARAMETERS = 1_000
"""Pages take more fields than this, one for each ticked queue; no program needs so many parameters."""


def _suspicious(error: SuspiciousOperation) -> str:
    """What Django refuses to read of a request: too many parameters or fields, or what nobody's program sends."""
    if isinstance(error, TooManyFieldsSent):
        return f"The request has more than {MOST_PARAMETERS:,} parameters or fields. Send fewer."
    return "The request cannot be read."


_ANSWERS: dict[type[Exception], Callable[[Any], dict[str, Any]]] = {
    Rejected: _rejected,
    NotAllowed: _not_allowed,
    NotPossible: _not_possible,
    Forbidden: _forbidden,
    OutOfSight: lambda error: problem(404, str(error)),
    StaleVersion: _stale_queue,
    Stale: _stale,
    Refusal: _refusal,
    CommandFailed: lambda error: problem(503, str(error), "command-failed"),
    ObjectDoesNotExist: lambda error: problem(
        404, str(error) if "matching query" not in str(error) else "There is no such object."
    ),
    Http404: lambda error: problem(404, str(error) or "There is nothing at this address."),
    PermissionDenied: lambda error: problem(403, str(error) or "You may not do this."),
    RequestDataTooBig: lambda _error: problem(
        413, "The request is larger than this server reads. Send it in parts.", "too-large"
    ),
    SuspiciousOperation: lambda error: problem(400, _suspicious(error), "invalid-request"),
    OperationalError: lambda _error: problem(
        503, "The database does not answer just now. Try again in a moment.", "unavailable"
    ),
    InterfaceError: lambda _error: problem(
        503, "The database does not answer just now. Try again in a moment.", "unavailable"
    ),
}
_RETRY_SECONDS = "2"


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """None for what is a bug here: it rises to the middleware, which logs it."""
    body = _answer(error)
    if body is None:
        return None
    set_rollback()
    if isinstance(error, (OperationalError, InterfaceError)):
        logger.warning("the database did not answer %s: %s", context["request"].path, error)
    response = Response(body, status=body["status"], headers=_headers(error, body["status"]))
    response.exception = True
    return response


def _answer(error: Exception) -> dict[str, Any] | None:
    if is_damage(error):
        logger.error("the database's file is damaged: %s", error)
        return problem(503, DAMAGED, "unavailable")
    for kind, answer in _ANSWERS.items():
        if isinstance(error, kind):
            return answer(error)
    return _framework_problem(error) if isinstance(error, exceptions.APIException) else None


def _framework_problem(error: exceptions.APIException) -> dict[str, Any]:
    if isinstance(error, exceptions.ValidationError):
        return problem(
            400,
            "The request is not in order.",
            "invalid-request",
            list(_field_errors(error.detail)),
        )
    return problem(error.status_code, str(error.detail))


def _field_errors(detail: Any, path: str = "") -> Iterable[Violation]:
    if isinstance(detail, dict):
        for key, inner in detail.items():
            yield from _field_errors(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(detail, list):
        for inner in detail:
            yield from _field_errors(inner, path)
    else:
        yield Violation("invalid_value", "", path, str(detail), "")


def _headers(error: Exception, code: int) -> dict[str, str]:
    headers = {}
    if getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = error.auth_header  # type: ignore[attr-defined]
    wait = getattr(error, "wait", None)
    if wait:
        headers["Retry-After"] = str(int(wait) + 1)
    elif code == status.HTTP_503_SERVICE_UNAVAILABLE:
        headers["Retry-After"] = _RETRY_SECONDS
    return headers


def problem_response(code: int, detail: str, kind: str = "") -> JsonResponse:
    """For what goes wrong outside of a view."""
    return JsonResponse(problem(code, detail, kind), status=code, content_type=PROBLEM_JSON)


class ApiErrorMiddleware:
    """A bug in the API is answered as a problem with the request's id, and logged with its traceback."""

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> Any:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> JsonResponse | None:
        if not request.path.startswith("/api/v"):
            return None
        body = _answer(error)
        if body is not None:
            return JsonResponse(
                body,
                status=body["status"],
                content_type=PROBLEM_JSON,
                headers=_headers(error, body["status"]),
            )
        request_id = getattr(request, "request_id", "")
        logger.error("the request %s to %s failed", request_id, request.path, exc_info=error)
        if transaction.get_connection().in_atomic_block:
            set_rollback()
        return problem_response(
            500,
            f"Something is wrong here, and it was written to the log under {request_id}.",
            "internal-error",
        )
