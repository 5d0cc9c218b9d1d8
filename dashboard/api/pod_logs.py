"""What the addresses of logs share: which lines are asked for, and a log that is followed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django.http.response import HttpResponseBase
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.framework.endpoint import Endpoint
from dashboard.api.framework.errors import Refusal, bad_parameter
from dashboard.api.framework.parameters import read_boolean
from dashboard.api.schema.openapi import Operation, query_parameter
from dashboard.http.log_stream import log_stream
from scheduler.domain.durations import seconds_in
from scheduler.domain.log_lines import Position, stamp_of
from scheduler.models import PodGroup
from scheduler.selectors.jobs.log_pods import LogPods
from scheduler.services.accounts.access import require_logs
from scheduler.services.cluster.log_following import PLACES, Following
from scheduler.services.cluster.pod_logs import MOST_LINES, USUAL_LINES, LogQuestion

_LONGEST_SINCE: Final = 10 * 365 * 86400
_CONTAINER = query_parameter("container", "Which container; needed where the pod has several.")
_LINES = query_parameter(
    "lines",
    f"How many lines, counted from the end. {USUAL_LINES} if it is not given, "
    f"{MOST_LINES} at most.",
    OpenApiTypes.INT,
)
_SINCE = query_parameter("since", "Only lines of so long ago, such as `90s`, `10m` or `1h30m`.")
_FROM = query_parameter(
    "from",
    "Go on after this `position`. With several pods `NAME=POSITION`, separated by commas.",
)
LOG_PARAMETERS = (
    _CONTAINER,
    _LINES,
    _SINCE,
    query_parameter(
        "previous", "The log of the run before the container was started again.", OpenApiTypes.BOOL
    ),
    query_parameter("timestamps", "With the time in front of each line.", OpenApiTypes.BOOL),
)
POD_FOLLOWING = Operation(
    schema.LogEvent,
    summary="What a container of it writes, as server-sent events while it writes",
    parameters=(_CONTAINER, _LINES, _SINCE, _FROM),
    streams=True,
)
JOB_FOLLOWING = Operation(
    schema.LogEvent,
    summary="What its pods write, as server-sent events while they write",
    parameters=(
        query_parameter("task", "Only pods of this task."),
        query_parameter("index", "Only the pod with this number in its task.", OpenApiTypes.INT),
        *POD_FOLLOWING.parameters,
    ),
    streams=True,
)


def names_of(parameters: tuple[Any, ...]) -> frozenset[str]:
    return frozenset(each.name for each in parameters)


def log_question(request: Request) -> LogQuestion:
    """Raises `Refusal` for what cannot be read."""
    return LogQuestion(
        container=request.query_params.get("container", ""),
        lines=_lines(request),
        since=_since(request),
        previous=read_boolean(request, "previous"),
    )


def _lines(request: Request) -> int:
    number = whole_number(request, "lines", str(USUAL_LINES))
    if number is None or not 1 <= number <= MOST_LINES:
        raise bad_parameter("lines", f"lines must be a number from 1 to {MOST_LINES}.")
    return number


def whole_number(request: Request, name: str, default: str = "") -> int | None:
    """None where it is not given, or is no number."""
    text = request.query_params.get(name, default)
    if text.isascii() and text.isdigit() and len(text) < 9:
        return int(text)
    return None


def _since(request: Request) -> timedelta | None:
    text = request.query_params.get("since", "")
    if not text:
        return None
    seconds = seconds_in(text)
    if seconds is None or seconds > _LONGEST_SINCE:
        raise bad_parameter("since", f"since is “{text[:20]}”.", "write 90s, 10m or 1h30m")
    return timedelta(seconds=seconds)


def _positions(request: Request) -> Mapping[str, Position]:
    """By the name of the pod, "" for all."""
    found: dict[str, Position] = {}
    for part in request.query_params.get("from", "").split(","):
        if not part:
            continue
        name, _, text = part.rpartition("=")
        position = Position.read(text)
        if position is None:
            raise bad_parameter("from", f"from has no position “{text[:60]}”.", "as it was given")
        found[name] = position
    since = _since(request)
    if since is not None:
        found.setdefault("", Position(stamp_of(timezone.now() - since)))
    return found


def follow_logs(endpoint: Endpoint, gang: PodGroup, pods: LogPods) -> HttpResponseBase:
    """Raises `Forbidden` for who may not read them, and `Refusal` where too many are followed."""
    request = endpoint.request
    by = endpoint.actor
    require_logs(by, gang.queue.place, gang.owner)
    following = Following(by, pods, log_question(request), _positions(request))
    if request.method == "HEAD":
        return Response()
    full = PLACES.take(by.name)
    if full:
        raise Refusal(full, code=429, problem_type="too-many")
    return log_stream(request._request, following, partial(PLACES.give_back, by.name))
