"""What every endpoint has: who asks and what he may, parameters, dry runs, versions, repeated requests, pages, chosen fields."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

from django.conf import settings
from django.core.exceptions import TooManyFieldsSent
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django_filters import FilterSet
from rest_framework.exceptions import AuthenticationFailed, MethodNotAllowed, NotAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import ViewSetMixin

from dashboard.api import idempotency, permissions
from dashboard.api.authentication import BearerAuthentication, SessionAuthentication, actor_of
from dashboard.api.browsable import FORM_PARAMETER, BrowsableRenderer
from dashboard.api.errors import (
    MOST_PARAMETERS,
    PROBLEM_JSON,
    Refusal,
    bad_parameter,
    exception_handler,
    notice_json,
    problem,
)
from dashboard.api.fields import chosen, read_fields
from dashboard.api.formats import (
    FormParser,
    JSONRenderer,
    MergePatchParser,
    MultiPartFormParser,
    OldYAMLParser,
    SafeYAMLParser,
    StrictJSONParser,
    YAMLRenderer,
)
from dashboard.api.pagination import CursorPages
from dashboard.api.schema.openapi import EndpointSchema
from dashboard.api.throttling import MinuteThrottle
from dashboard.http.access import LONGEST_PARAMETER
from scheduler.domain.access import Access
from scheduler.selectors.accounts.access import access_of
from scheduler.services.accounts.actors import Actor
from scheduler.services.files.versions import Expected

_WRITES = ("POST", "PUT", "PATCH", "DELETE")
_EVERYWHERE = frozenset({"format", "fields"})
LIST_PARAMETERS = frozenset({"cursor", "page_size", "ordering", "search"})
_OUR_TAG = re.compile(
    r'(?:^|,)[ \t]*(?:W/)?"([0-9]{1,18})"[ \t]*(?=,|$)'
)  # weak where the answer was compressed on its way
_TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}
Rows = list[Any]  # named here: `list` is an action of every collection
Objects = list[dict[str, Any]]
Names = list[str]

MOST_ITEMS = 1000
"""Objects in one bulk request."""


class Endpoint(APIView):
    """`rules` says for each action who may even try; an action without one is refused (and a test fails)."""

    authentication_classes = (BearerAuthentication, SessionAuthentication)
    permission_classes = ()  # `rules` and the services decide
    throttle_classes = (MinuteThrottle,)
    parser_classes = (
        StrictJSONParser,
        MergePatchParser,
        SafeYAMLParser,
        OldYAMLParser,
        FormParser,
        MultiPartFormParser,
    )
    renderer_classes = (JSONRenderer, YAMLRenderer, BrowsableRenderer)
    schema = EndpointSchema()
    http_method_names = ["get", "head", "options", "post", "put", "patch", "delete"]

    rules: ClassVar[Mapping[str, permissions.Rule]] = {}
    parameters: ClassVar[frozenset[str]] = (
        frozenset()
    )  # query parameters beside those that all have
    writes_are_dry_runnable: ClassVar[bool] = True
    takes_lists_in_steps: ClassVar[bool] = (
        False  # the objects of a list are made one by one (`each`), not all in one transaction
    )
    keyed: idempotency.Keyed | None = None
    secrets: ClassVar[
        tuple[str, ...]
    ] = ()  # what of an answer is given once and kept nowhere, not for a repeated request either

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        method = _method_of_form(request)
        _take_parameters_of_form(request)
        if method:
            request.method = method
            request.META.setdefault(
                "HTTP_X_CSRFTOKEN", request.POST.get("csrfmiddlewaretoken", "")
            )  # Django looks there for these
        return self._dispatched(request, *args, **kwargs)

    def _dispatched(self, given: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """As Django REST framework does it, but for writes that are to be carried out once."""
        self.args, self.kwargs = args, kwargs
        request = self.request = self.initialize_request(given, *args, **kwargs)
        self.headers = self.default_response_headers
        try:
            self.initial(request, *args, **kwargs)
            response = self._carried_out(request, *args, **kwargs)
        except Exception as error:
            response = self.handle_exception(error)
        self.response = self.finalize_response(request, response, *args, **kwargs)
        return self.response

    def options(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Response:
        """What can be asked here stands in `Allow`; what that means, in the schema."""
        return Response(status=204)

    def perform_authentication(self, request: Request) -> None:
        """Wrong tokens count too, for the address that they come from."""
        try:
            super().perform_authentication(request)
        except AuthenticationFailed:
            self.check_throttles(request)
            raise

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        try:
            return super().perform_content_negotiation(request, force)
        except Http404:
            known = ", ".join(renderer.format for renderer in self.get_renderers())
            message = f"There is no format {request.query_params.get('format', '')[:40]} here."
            raise bad_parameter("format", message, f"one of {known}") from None

    def get_exception_handler(self) -> Any:
        return exception_handler

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not request.user.is_authenticated:
            raise NotAuthenticated("Sign in, or send a token as “Authorization: Bearer …”.")
        self._check_names(kwargs)
        if request.META.get("QUERY_STRING", "").count("&") >= MOST_PARAMETERS:
            raise TooManyFieldsSent
        self._check_parameters(request)
        self._check_rule()
        if request.method in _WRITES:
            self._begin_write(request)

    def _check_names(self, kwargs: Mapping[str, Any]) -> None:
        if any("\x00" in str(value) for value in kwargs.values()):
            raise Refusal("There is nothing of that name.", code=404, kind="not-found")

    def _check_rule(self) -> None:
        if self.request.method not in self.allowed_methods:
            raise MethodNotAllowed(self.request.method or "")
        if self.request.method == "OPTIONS":
            permissions.signed_in(self.access)
            return
        rule = self.rules.get(self.action_name)
        if rule is None:
            raise Refusal(f"Nobody may {self.action_name} here.", code=403, kind="not-permitted")
        rule(self.access)

    @property
    def action_name(self) -> str:
        return getattr(self, "action", None) or (self.request.method or "").lower().replace(
            "head", "get"
        )

    def _begin_write(self, request: Request) -> None:
        if settings.READ_ONLY:
            raise Refusal(
                "This installation is read-only at the moment.", code=503, kind="read-only"
            )
        packed = request.headers.get("Content-Encoding", "").strip().lower()
        if packed not in ("", "identity"):
            raise Refusal(
                f"A body that is packed ({packed[:40]}) is not read; send it as it is.",
                code=415,
                kind="unsupported-encoding",
            )
        request._request.body  # noqa: B018 - read now: what is too large is refused before anything else is done

    def _carried_out(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        handler = getattr(self, (request.method or "").lower(), self.http_method_not_allowed)
        self.keyed = self._keyed(request)
        if self.keyed is None:
            return handler(request, *args, **kwargs)
        if self.takes_lists_in_steps and isinstance(request.data, list):
            self.keyed.begin_list()
            return handler(request, *args, **kwargs)
        return self.keyed.once(
            lambda: self._with_refusals(partial(handler, request, *args, **kwargs))
        )

    def _keyed(self, request: Request) -> idempotency.Keyed | None:
        key = request.headers.get("Idempotency-Key", "")
        if not key or request.method not in _WRITES or self.dry_run:
            return None
        body = request._request.body
        return idempotency.keyed(
            request.user, key, request.method, request.get_full_path(), body, self.secrets
        )

    def _with_refusals(self, carry_out: Callable[[], Response]) -> Response:
        """A refusal is an answer like any other."""
        try:
            return carry_out()
        except Exception as error:
            return self.handle_exception(error)

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        response = super().finalize_response(request, response, *args, **kwargs)
        if (
            getattr(response, "exception", False)
            and getattr(response, "accepted_renderer", None) is not None
        ):
            _as_problem(response)
        for name, value in getattr(request, "rate_headers", {}).items():
            response[name] = value
        return response

    # Who asks

    @property
    def actor(self) -> Actor:
        return actor_of(self.request, access=self.access, reason=self.stated_reason)

    @property
    def access(self) -> Access:
        """What the caller may do, read once a request."""
        found: Access | None = getattr(self.request, "known_access", None)
        if found is None:
            token: Any = self.request.auth
            found = access_of(self.request.user, token.scopes if token is not None else None)
            self.request.known_access = found  # type: ignore[attr-defined]
        return found

    # What he asks for

    @property
    def known_parameters(self) -> frozenset[str]:
        known = _EVERYWHERE | self.parameters
        if self.request.method in _WRITES:
            known |= {"reason", "dry_run"} if self.writes_are_dry_runnable else {"reason"}
        return known

    def _check_parameters(self, request: Request) -> None:
        known = self.known_parameters
        for name, values in request.query_params.lists():
            if name not in known:
                near = difflib.get_close_matches(name, known, 1, 0.6)
                fix = (
                    f"did you mean {near[0]}?"
                    if near
                    else f"known here: {', '.join(sorted(known))}"
                )
                raise bad_parameter(name[:80], f"There is no parameter {name[:80]} here.", fix)
            if any("\x00" in value for value in values):
                raise bad_parameter(name, f"{name} has a character that can not be used.")
            if name != "shown" and any(len(value) > LONGEST_PARAMETER for value in values):
                raise bad_parameter(
                    name, f"{name} is longer than {LONGEST_PARAMETER:,} characters.", "shorten it"
                )

    def truth(self, name: str, default: bool = False) -> bool:
        text = self.request.query_params.get(name)
        if text is None:
            return default
        if text.lower() not in _TRUTHS:
            raise bad_parameter(
                name, f"{name} is “{text[:20]}”; it must be true or false.", "write true or false"
            )
        return _TRUTHS[text.lower()]

    @property
    def dry_run(self) -> bool:
        return self.truth("dry_run")

    @property
    def expected_version(self) -> Expected:
        """The versions that If-Match names, any of which will do; none where there is no version of ours among them."""
        text = self.request.headers.get("If-Match", "").strip()
        return (
            None
            if text in ("", "*")
            else frozenset(int(number) for number in _OUR_TAG.findall(text))
        )

    @contextmanager
    def rehearsal(self) -> Iterator[None]:
        """What is written inside is shown in the answer, and undone at the end of a dry run."""
        with transaction.atomic():
            yield
            if self.dry_run:
                transaction.set_rollback(True)

    # Answers

    def saved(
        self,
        body: dict[str, Any],
        notices: Iterable[Any],
        *,
        changed: bool = True,
        created: bool = False,
        **more: Any,
    ) -> Response:
        """An object as stored, with the warnings that the request earned."""
        full = {**body, "warnings": [notice_json(notice) for notice in notices], "changed": changed}
        return self.answer(full, 201 if created and not self.dry_run else 200, **more)

    def answer(
        self, body: Any, status: int = 200, *, version: int | None = None, location: str = ""
    ) -> Response:
        headers = {}
        if version is not None and not self.dry_run:
            headers["ETag"] = f'"{version}"'
        if location and not self.dry_run:
            headers["Location"] = location
        return Response(chosen(body, read_fields(self.request)), status=status, headers=headers)

    @property
    def stated_reason(self) -> str:
        """Why, as a parameter of any write: it stands in the audit log."""
        return (
            checked_reason(self.request.query_params.get("reason", ""))
            if self.request.method in _WRITES
            else ""
        )

    @property
    def reason(self) -> str:
        """The reason that goes with a command: in its body, or as a parameter like that of any write."""
        body = self.request.data
        if body in ({}, [], None, ""):
            return self.stated_reason
        if not isinstance(body, Mapping):
            raise Refusal(
                'The body of a command is an object such as {"reason": "maintenance"}.',
                kind="invalid-request",
            )
        unknown = sorted(set(body) - {"reason"})
        if unknown:
            raise bad_parameter(
                str(unknown[0])[:80],
                f"A command has no {str(unknown[0])[:80]}; it takes a reason.",
                "leave it out",
            )
        return checked_reason(body.get("reason") or "") or self.stated_reason


def checked_reason(reason: Any) -> str:
    if not isinstance(reason, str) or len(reason) > 1024 or "\x00" in reason:
        raise bad_parameter("reason", "A reason is a text of at most 1,024 characters.")
    return reason


class EndpointSet(ViewSetMixin, Endpoint):
    """A collection: its rows are read by `query`, shown by `present`, in pages."""

    lookups: ClassVar[tuple[str, ...]] = ("name",)
    verbs: ClassVar[
        Mapping[str, Mapping[str, str]]
    ] = {}  # what stands behind an object: path -> {method: action}
    collection_verbs: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    filter_class: ClassVar[type[FilterSet] | None] = None
    orderings: ClassVar[Mapping[str, str]] = {}  # what `ordering=` may name -> the column
    default_ordering: ClassVar[str] = "name"
    search_fields: ClassVar[tuple[str, ...]] = ()
    kind: ClassVar[str] = ""

    @property
    def known_parameters(self) -> frozenset[str]:
        known = super().known_parameters
        if self.action_name == "list":
            known |= LIST_PARAMETERS | frozenset(
                self.filter_class.base_filters if self.filter_class else ()
            )
        return known

    def query(self) -> QuerySet[Any]:
        raise NotImplementedError

    def present(self, rows: Rows) -> Objects:
        raise NotImplementedError

    def list(self, request: Request, *_args: Any, **_kwargs: Any) -> HttpResponseBase:
        return self.page(self.filtered(self.query()))

    def page(self, query: QuerySet[Any]) -> Response:
        pages = CursorPages(self.request, self.ordering)
        rows = self.present(pages.rows(query))
        wanted = read_fields(self.request)
        return Response(pages.answer([chosen(row, wanted) for row in rows] if wanted else rows))

    @property
    def wants_plain_json(self) -> bool:
        """Whole objects as JSON: what most programs ask for."""
        return (
            getattr(self.request.accepted_renderer, "format", "") == "json"
            and read_fields(self.request) is None
        )

    def stamped(
        self, query: QuerySet[Any], *joined: str, **stamps: Any
    ) -> tuple[CursorPages, Objects]:
        """The rows of a page as their keys and stamps; `joined` names a column of each other table that a stamp is of."""
        pages = CursorPages(self.request, self.ordering)
        columns = {"id", *(name.lstrip("-") for name in pages.ordering)} - {"pk"}
        return pages, pages.rows(query.annotate(**stamps).values(*columns, *joined, *stamps))

    @property
    def ordering(self) -> Names:
        asked = self.request.query_params.get("ordering", "") or self.default_ordering
        return [self._column(name.strip()) for name in asked.split(",") if name.strip()][:4] or [
            self._column(self.default_ordering)
        ]

    def _column(self, name: str) -> str:
        plain = name.lstrip("-")
        if plain not in self.orderings:
            known = ", ".join(self.orderings)
            raise bad_parameter(
                "ordering",
                f"This list can not be ordered by {plain[:40]}.",
                f"one of {known}; - in front turns it round",
            )
        return ("-" if name.startswith("-") else "") + self.orderings[plain]

    def filtered(self, query: QuerySet[Any]) -> QuerySet[Any]:
        query = self._searched(query)
        if (
            self.filter_class is None
            or not self.request.query_params.keys() & self.filter_class.base_filters.keys()
        ):
            return query
        filters = self.filter_class(self.request.query_params, queryset=query, request=self.request)
        if not filters.is_valid():
            name, messages = next(iter(filters.errors.items()))
            raise bad_parameter(name, f"{name}: {' '.join(messages)}")
        found: QuerySet[Any] = filters.qs
        return found

    def _searched(self, query: QuerySet[Any]) -> QuerySet[Any]:
        for word in self.request.query_params.get("search", "").split()[:8]:
            query = query.filter(self.places_of(word))
        return query

    def places_of(self, word: str) -> Q:
        """Where a word that is searched for may stand."""
        places = Q()
        for column in self.search_fields:
            places |= Q(**{f"{column}__icontains": word})
        return places

    def found(self, **where: str) -> Any:
        """The row that the address names, among those that the caller may see."""
        where = where or {name: self.kwargs[name] for name in self.lookups}
        row = self.query().filter(**self.lookup(where)).first()
        if row is None:
            raise self.nothing_found(**where)
        return row

    def nothing_found(self, **where: str) -> Refusal:
        name = "/".join((where or self.kwargs).values())
        return Refusal(f"There is no {self.kind} {name[:120]}.", code=404, kind="not-found")

    def lookup(self, where: Mapping[str, str]) -> dict[str, Any]:
        return dict(where)

    def retrieve(self, request: Request, *_args: Any, **_kwargs: Any) -> Response:
        row = self.found()
        return self.answer(self.present([row])[0], version=getattr(row, "resource_version", None))

    def each(self, make: Callable[[Any], Response]) -> Response:
        """One object, or a list of them with a result for each."""
        items = self.items_of_list()
        if items is None:
            return make(self.request.data)
        return self.results(self._tried(index, item, make) for index, item in enumerate(items))

    def items_of_list(self) -> Rows | None:
        """What stands in the list that was sent, None where it is one object. Raises `Refusal` for too many."""
        body = self.request.data
        if not isinstance(body, list):
            return None
        if len(body) > MOST_ITEMS:
            raise Refusal(
                f"There are {len(body)} objects in the list; {MOST_ITEMS} at once are the most.",
                kind="too-many",
            )
        return body

    def _tried(
        self, index: int, item: Any, make: Callable[[Any], Response]
    ) -> Response | Exception:
        try:
            if self.keyed is None:
                return make(item)
            return self.keyed.item(index, item).once(
                lambda: self._with_refusals(partial(make, item))
            )
        except Exception as error:
            return error

    def results(self, made: Iterable[Response | Exception]) -> Response:
        """The answer to a list: what each would have been answered alone."""
        return Response(
            {"results": [self._result(index, answer) for index, answer in enumerate(made)]}
        )

    def _result(self, index: int, answer: Response | Exception) -> dict[str, Any]:
        if isinstance(answer, Exception):
            response = self.handle_exception(answer)
            return {
                "index": index,
                "status": response.status_code,
                "object": None,
                "problem": response.data,
            }
        if answer.status_code >= 400:
            return {
                "index": index,
                "status": answer.status_code,
                "object": None,
                "problem": answer.data,
            }
        return {
            "index": index,
            "status": answer.status_code,
            "object": answer.data,
            "problem": None,
        }


def visible(query: QuerySet[Any], access: Access, column: str = "queue") -> QuerySet[Any]:
    """Only rows that refer to a queue that the caller may see; a deleted one is judged by its own row, not by its name."""
    return (
        query
        if access.readable is None
        else query.filter(**{f"{column}__in": sorted(access.readable)})
    )


def visible_by_name(
    query: QuerySet[Any], access: Access, column: str = "queue_name"
) -> QuerySet[Any]:
    """Only rows that name a queue that the caller may see."""
    return (
        query
        if access.visible is None
        else query.filter(**{f"{column}__in": sorted(access.visible)})
    )


def _is_form(request: HttpRequest) -> bool:
    return request.method == "POST" and request.content_type in (
        FormParser.media_type,
        MultiPartFormParser.media_type,
    )


def _method_of_form(request: HttpRequest) -> str:
    """PUT, PATCH and DELETE of the browsable pages' forms; CSRF is checked like for any other."""
    if not _is_form(request):
        return ""
    request.body  # noqa: B018 - kept: once the form's fields have been read it could not be any more
    method = request.POST.get("_method", "").upper()
    return method if method in ("PUT", "PATCH", "DELETE") else ""


def _take_parameters_of_form(request: HttpRequest) -> None:
    """A form of the browsable pages has the parameters of its request among its fields; empty ones are left out."""
    if not _is_form(request):
        return
    given = {
        name.removeprefix(FORM_PARAMETER): str(text)
        for name, text in request.POST.items()
        if name.startswith(FORM_PARAMETER) and text
    }
    if given:
        asked = request.GET.copy()
        asked.update(given)
        request.GET = asked  # type: ignore[assignment]
        request.META["QUERY_STRING"] = asked.urlencode()  # the page says what was asked


def _as_problem(response: Response) -> None:
    """Errors are JSON whatever was asked for, but for a reader of the browsable pages."""
    if response.accepted_renderer.format != "api":
        response.accepted_renderer = JSONRenderer()
        response.accepted_media_type = PROBLEM_JSON
        response.content_type = PROBLEM_JSON


class NothingHere(Endpoint):
    """Whatever address below /api/v1/ has no endpoint."""

    schema = None  # type: ignore[assignment]
    rules: ClassVar[Mapping[str, permissions.Rule]] = {}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise Refusal(
            "There is nothing at this address. /api/v1/ lists what there is.",
            code=404,
            kind="not-found",
        )

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response(problem(404, ""), status=404)

    post = put = patch = delete = get
