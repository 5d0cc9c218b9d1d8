"""What the API server refuses or fails to do, by the kind of answer.

Each says what was asked of what, so that the message can be shown as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

_LONGEST_MESSAGE: Final = 500
_DENIED: Final = "denied the request"  # the API server's words for what a webhook refuses


class ApiError(Exception):
    """An answer other than success.

    `asked` is the request in words: "GET /api/v1/pods". `status` is the HTTP status, 0 for no
    answer. `reason` is Kubernetes' own word, such as "AlreadyExists". `details` are as they came.
    """

    def __init__(
        self,
        asked: str,
        status: int,
        message: str,
        reason: str = "",
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.asked = asked
        self.status = status
        self.message = message
        self.reason = reason
        self.details: Mapping[str, Any] = details or {}
        self.retry_after = retry_after
        super().__init__(f"{asked}: {message}")


class BadRequest(ApiError):
    """400: the request cannot be understood."""


class Unauthorized(ApiError):
    """401: the server does not know us, even after the credentials were loaded again."""


class Forbidden(ApiError):
    """403: RBAC forbids it."""


class Denied(ApiError):
    """An admission webhook refuses it, with any status: trying again helps nothing.

    `details` has the causes if the webhook names them.
    """

    @property
    def refusal(self) -> str:
        """What the webhook says, without its name."""
        return self.message.partition(_DENIED)[2].removeprefix(": ")


class NotFound(ApiError):
    """404: there is no such object, or no such resource."""


class Conflict(ApiError):
    """409: the object has changed since it was read, or another uid was meant."""


class AlreadyExists(Conflict):
    """409: an object of this name is there."""


class Expired(ApiError):
    """410: the version asked for is too old. List again."""


class Invalid(ApiError):
    """422: the object breaks a rule of its schema."""


class TooMany(ApiError):
    """429: later. `retry_after` is in seconds, if the server says it.

    For an eviction it means that a disruption budget holds the pod.
    """


class ServerError(ApiError):
    """5xx: the server failed. What was asked may have been done all the same."""


class Unavailable(ServerError):
    """503, or no connection: nothing was done."""


class NoAnswer(ServerError):
    """The request was sent and the answer was lost. It may have been done all the same."""


_BY_STATUS: Final[dict[int, type[ApiError]]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: TooMany,
    503: Unavailable,
}


def error_of_answer(
    asked: str, status: int, body: bytes, headers: Mapping[str, str] | None = None
) -> ApiError:
    """From an HTTP answer, with the message of the server's Status object."""
    told = _status_object(body)
    message = str(told.get("message") or body[:_LONGEST_MESSAGE].decode(errors="replace"))
    retry_after = _seconds((headers or {}).get("Retry-After"))
    return _error(asked, status, message or f"answered {status}", told, retry_after)


def error_of_status(asked: str, told: Mapping[str, Any]) -> ApiError:
    """From a Status object, as a watch sends it in an ERROR event."""
    status = told.get("code")
    if not isinstance(status, int):
        status = 500
    return _error(asked, status, str(told.get("message") or f"answered {status}"), told, None)


def _error(
    asked: str, status: int, message: str, told: Mapping[str, Any], retry_after: float | None
) -> ApiError:
    reason = str(told.get("reason") or "")
    details = told.get("details")
    if not isinstance(details, Mapping):
        details = {}
    if retry_after is None:
        retry_after = _seconds(details.get("retryAfterSeconds"))
    kind = _kind_of_error(status, reason, message)
    return kind(asked, status, message[:_LONGEST_MESSAGE], reason, details, retry_after)


def _kind_of_error(status: int, reason: str, message: str) -> type[ApiError]:
    if message.startswith("admission webhook") and _DENIED in message:
        return Denied
    if reason == "AlreadyExists":
        return AlreadyExists
    if reason in ("Expired", "Gone"):
        return Expired
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500:
        return ServerError
    return ApiError


def _status_object(body: bytes) -> Mapping[str, Any]:
    try:
        told = json.loads(body)
    except ValueError:
        return {}
    if isinstance(told, dict) and told.get("kind") == "Status":
        return told
    return {}


def _seconds(value: object) -> float | None:
    """Not below 0. A date in Retry-After is not read: the API server writes numbers."""
    if not isinstance(value, (int, float, str)):
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        return None
