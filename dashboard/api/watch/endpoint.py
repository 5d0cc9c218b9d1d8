"""`?watch=1` of a list: what can be asked, and the answer that has no end."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

from django.core.handlers.asgi import ASGIRequest
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.framework.collection import EndpointSet
from dashboard.api.framework.errors import Refusal, bad_parameter
from dashboard.api.framework.fields import wanted_fields
from dashboard.api.framework.formats import EventStreamRenderer
from dashboard.api.framework.parameters import read_boolean
from dashboard.api.schema.openapi import query_parameter
from dashboard.api.watch import handover
from dashboard.api.watch.hub import WatchHub
from dashboard.api.watch.streams import Stream, WatchResponse, without_a_loop
from dashboard.api.watch.views import MOST_OBJECTS, Question, State, find_view
from dashboard.live.readers import Reader
from scheduler.domain.access import Access
from scheduler.services.cluster.log_following import Places

WATCH_PARAMETERS: Final = (
    query_parameter(
        "watch",
        "Follow the list: server-sent events ADDED, MODIFIED, DELETED, BOOKMARK and END.",
        OpenApiTypes.BOOL,
    ),
    query_parameter(
        "since",
        "With watch: go on after this `id` of an event. The header Last-Event-ID goes before it.",
    ),
)
_OF_PAGES: Final = ("cursor", "page_size", "ordering")
_VERSION: Final = re.compile(r"([0-9a-f]{16})-([0-9]{1,15})")

PLACES: Final = Places(most=100, most_of_one=10, what="lists")

Renderers = list[Any]
Stamps = Mapping[int, Hashable]
ReadObjects = Callable[[list[int]], Mapping[int, dict[str, Any]]]


class Watched(EndpointSet):
    """A collection whose lists can be followed."""

    def stamped_list(self, most: int) -> tuple[Stamps, ReadObjects]:
        """At most so many objects that the list has: a stamp of each, and how they are read."""
        raise NotImplementedError

    def list(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if self.is_watched:
            return follow_list(self)
        if "since" in request.query_params:
            raise bad_parameter("since", "since belongs to watch.", "add watch=1")
        return self.page(request)

    def page(self, request: Request) -> HttpResponseBase:
        return super().list(request)

    @property
    def is_watched(self) -> bool:
        return read_boolean(self.request, "watch")

    @property
    def known_parameters(self) -> frozenset[str]:
        known = super().known_parameters
        if self.action_name == "list":
            known |= {each.name for each in WATCH_PARAMETERS}
        return known

    def get_renderers(self) -> Renderers:
        found = super().get_renderers()
        request = getattr(self, "request", None)  # none while the schema is made
        asked = getattr(request, "query_params", {})
        if getattr(self, "action", "") == "list" and "watch" in asked:
            return [*found, EventStreamRenderer()]
        return found

    def for_watching(self, access: Access) -> Watched:
        """A copy that outlives the request."""
        own = copy.copy(self)
        own.request = SimpleNamespace(  # type: ignore[assignment]
            query_params=self.request.query_params, known_access=access, method="GET"
        )
        return own


def follow_list(endpoint: Watched) -> HttpResponseBase:
    """Raises `Refusal` for what cannot be followed."""
    request = endpoint.request
    for name in _OF_PAGES:
        if name in request.query_params:
            message = f"A list that is followed has no pages and no order, so no {name}."
            raise bad_parameter(name, message, "leave it out")
    wanted_fields(request)
    question = Question(endpoint.for_watching(endpoint.access), endpoint.access)
    _check_size(question)
    state = _known_state(request, endpoint.noun)
    if request.method == "HEAD":
        return Response()
    reader = _reader_of(request)
    name = request.user.get_username()
    full = PLACES.take(name)
    if full:
        raise Refusal(full, code=429, problem_type="too-many")
    if isinstance(request._request, ASGIRequest):
        stream = Stream(question, reader, state)
        response = WatchResponse(stream.pieces(WatchHub.of_this_loop), stream)
    else:
        response = WatchResponse(without_a_loop(question, reader, state))
    response._resource_closers.append(partial(PLACES.give_back, name))  # type: ignore[attr-defined]
    return response


def _reader_of(request: Request) -> Reader:
    token: Any = request.auth
    if token is not None:
        return Reader(request.user.pk, token.pk)
    session = getattr(request._request, "session", None)
    return Reader(request.user.pk, session=getattr(session, "session_key", "") or "")


def _check_size(question: Question) -> None:
    stamps, _ = question.endpoint.stamped_list(MOST_OBJECTS + 1)
    if len(stamps) > MOST_OBJECTS:
        message = f"The list has more than {MOST_OBJECTS:,} objects, the most that can be followed."
        raise bad_parameter("watch", message, "follow a part of it, by a filter such as queue")


def _known_state(request: Request, noun: str) -> State | None:
    """What the reader knows already; None where it begins."""
    version = request.headers.get("Last-Event-ID", "") or request.query_params.get("since", "")
    if not version:
        return None
    match = _VERSION.fullmatch(version)
    if match is None:
        message = f"since is “{version[:40]}”, which is no id of an event."
        raise bad_parameter("since", message, "send the id of the last event, or none")
    state = _state_at(match[1], noun, int(match[2]))
    if state is None:
        message = (
            "What came after this version is not known any more. Follow the list from the start, "
            "without since and without Last-Event-ID."
        )
        raise Refusal(message, code=410, problem_type="too-old")
    return state


def _state_at(view_id: str, noun: str, number: int) -> State | None:
    view = find_view(view_id)
    if view is not None:
        if view.noun != noun:
            return None
        return view.state_at(number)
    return handover.kept_state(view_id, noun, number)
