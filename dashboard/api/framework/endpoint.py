"""What every endpoint has: who asks and what they may do, checks before a write, and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from django.conf import settings
from django.http import Http404, HttpRequest
from rest_framework.exceptions import AuthenticationFailed, MethodNotAllowed, NotAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from dashboard.api.framework import idempotency, permissions
from dashboard.api.framework.authentication import (
    BearerAuthentication,
    SessionAuthentication,
    actor_of,
)
from dashboard.api.framework.browsable import BrowsableRenderer
from dashboard.api.framework.browser_forms import unpack_form
from dashboard.api.framework.dry_runs import undone_if
from dashboard.api.framework.errors import (
    PROBLEM_JSON,
    Refusal,
    bad_parameter,
    exception_handler,
    not_found,
    notice_json,
    problem,
)
from dashboard.api.framework.fields import select_fields, wanted_fields
from dashboard.api.framework.formats import (
    FormParser,
    JSONRenderer,
    MergePatchParser,
    MultiPartFormParser,
    OldYAMLParser,
    SafeYAMLParser,
    StrictJSONParser,
    YAMLRenderer,
)
from dashboard.api.framework.parameters import (
    EVERYWHERE,
    WRITING_METHODS,
    check_parameters,
    check_reason,
    read_boolean,
    reason_in_body,
)
from dashboard.api.framework.throttling import MinuteThrottle
from dashboard.api.framework.versions import entity_tag, expected_version
from dashboard.api.schema.openapi import EndpointSchema, Operation
from scheduler.domain.access import Access
from scheduler.selectors.accounts.access import access_of
from scheduler.services.accounts.actors import Actor
from scheduler.services.files.versions import Expected


class Endpoint(APIView):
    """One address. `rules` says for each action who may try it; without a rule nobody may."""

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
    operations: ClassVar[Mapping[str, Operation]] = {}
    """Each action as the OpenAPI document describes it."""
    parameters: ClassVar[frozenset[str]] = frozenset()
    """Query parameters beside those that all endpoints have."""
    writes_are_dry_runnable: ClassVar[bool] = True
    takes_lists_in_steps: ClassVar[bool] = False
    """The objects of a list are made one by one (`create_each`), not all in one transaction."""
    secrets: ClassVar[tuple[str, ...]] = ()
    """Fields of an answer that are given once: they are not kept for a repeated request either."""
    keyed: idempotency.Keyed | None = None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """As Django REST framework does it, except for writes that are to be carried out once."""
        unpack_form(request)
        self.args = args
        self.kwargs = kwargs
        self.request = self.initialize_request(request, *args, **kwargs)
        self.headers = self.default_response_headers
        try:
            self.initial(self.request, *args, **kwargs)
            response = self._carry_out(self.request, *args, **kwargs)
        except Exception as error:
            response = self.handle_exception(error)
        self.response = self.finalize_response(self.request, response, *args, **kwargs)
        return self.response

    def options(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Response:
        """The header `Allow` lists the methods; the OpenAPI document says what they do."""
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

    @property
    def answer_format(self) -> str:
        """`json`, `yaml`, `csv`: what the request asked for, by header or by `format`."""
        return getattr(self.request.accepted_renderer, "format", "")

    def get_exception_handler(self) -> Any:
        return exception_handler

    # Checks before anything is done

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not request.user.is_authenticated:
            raise NotAuthenticated("Sign in, or send a token as “Authorization: Bearer …”.")
        _check_names(kwargs.values())
        check_parameters(request, self.known_parameters)
        self._check_rule()
        if request.method in WRITING_METHODS:
            _check_write(request)

    def _check_rule(self) -> None:
        if self.request.method not in self.allowed_methods:
            raise MethodNotAllowed(self.request.method or "")
        if self.request.method == "OPTIONS":
            permissions.signed_in(self.access)
            return
        rule = self.rules.get(self.action_name)
        if rule is None:
            message = f"Nobody may {self.action_name} here."
            raise Refusal(message, code=403, problem_type="not-permitted")
        rule(self.access)

    @property
    def action_name(self) -> str:
        action: str | None = getattr(self, "action", None)
        if action:
            return action
        method = (self.request.method or "").lower()
        return method.replace("head", "get")

    # Writes that are carried out once

    def _carry_out(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        handler = getattr(self, (request.method or "").lower(), self.http_method_not_allowed)
        handle = partial(handler, request, *args, **kwargs)
        self.keyed = self._read_key(request)
        if self.keyed is None:
            return handle()
        if self.takes_lists_in_steps and isinstance(request.data, list):
            self.keyed.begin_list()
            return handle()
        return self.keyed.carry_out_once(partial(self._with_refusals, handle))

    def _read_key(self, request: Request) -> idempotency.Keyed | None:
        """The request under its Idempotency-Key; None where it has none or writes nothing."""
        key = request.headers.get("Idempotency-Key", "")
        if not key or request.method not in WRITING_METHODS or self.dry_run:
            return None
        return idempotency.keyed_request(
            request.user,
            key,
            request.method,
            request.get_full_path(),
            request._request.body,
            self.secrets,
        )

    def _with_refusals(self, handle: Callable[[], Response]) -> Response:
        """A refusal is an answer like any other."""
        try:
            return handle()
        except Exception as error:
            return self.handle_exception(error)

    # Who asks

    @property
    def actor(self) -> Actor:
        return actor_of(self.request, access=self.access, reason=self.stated_reason)

    @property
    def access(self) -> Access:
        """What the caller may do, read once a request."""
        found: Access | None = getattr(self.request, "known_access", None)
        if found is None:
            found = access_of(self.request.user, self._token_scopes())
            self.request.known_access = found  # type: ignore[attr-defined]
        return found

    def _token_scopes(self) -> Any:
        """None for a browser, which has no token."""
        token: Any = self.request.auth
        if token is None:
            return None
        return token.scopes

    # What they ask for

    @property
    def known_parameters(self) -> frozenset[str]:
        known = EVERYWHERE | self.parameters
        if self.request.method in WRITING_METHODS:
            known |= {"reason"}
            if self.writes_are_dry_runnable:
                known |= {"dry_run"}
        return known

    def boolean_parameter(self, name: str) -> bool:
        return read_boolean(self.request, name)

    @property
    def dry_run(self) -> bool:
        return self.boolean_parameter("dry_run")

    def undone_in_dry_run(self) -> AbstractContextManager[None]:
        return undone_if(self.dry_run)

    @property
    def expected_version(self) -> Expected:
        return expected_version(self.request)

    @property
    def stated_reason(self) -> str:
        """The reason as a parameter of any write: it goes into the audit log."""
        if self.request.method not in WRITING_METHODS:
            return ""
        return check_reason(self.request.query_params.get("reason", ""))

    @property
    def reason(self) -> str:
        """The reason of a command: in its body, or as a parameter like that of any write."""
        return reason_in_body(self.request.data) or self.stated_reason

    @property
    def commander(self) -> Actor:
        """Who gives a command, with the reason that they give in its body."""
        return replace(self.actor, reason=self.reason)

    # Answers

    def saved_response(
        self,
        body: dict[str, Any],
        notices: Iterable[Any],
        *,
        changed: bool = True,
        created: bool = False,
        **more: Any,
    ) -> Response:
        """An object as it was stored, with the warnings about the request."""
        warnings = [notice_json(notice) for notice in notices]
        full = {**body, "warnings": warnings, "changed": changed}
        if created:
            return self.created_response(full, **more)
        return self.response_with(full, **more)

    def created_response(self, body: dict[str, Any], **more: Any) -> Response:
        """201, and 200 in a dry run, which creates nothing."""
        if self.dry_run:
            return self.response_with(body, 200, **more)
        return self.response_with(body, 201, **more)

    def response_with(
        self,
        body: Any,
        status: int = 200,
        *,
        version: int | None = None,
        location: str = "",
    ) -> Response:
        headers = {}
        if version is not None and not self.dry_run:
            headers["ETag"] = entity_tag(version)
        if location and not self.dry_run:
            headers["Location"] = location
        body = select_fields(body, wanted_fields(self.request))
        return Response(body, status=status, headers=headers)

    def finalize_response(
        self,
        request: Request,
        response: Response,
        *args: Any,
        **kwargs: Any,
    ) -> Response:
        response = super().finalize_response(request, response, *args, **kwargs)
        if getattr(response, "exception", False):
            _as_problem(response)
        for name, value in getattr(request, "rate_headers", {}).items():
            response[name] = value
        return response


def _check_names(names: Iterable[Any]) -> None:
    for name in names:
        if "\x00" in str(name):
            raise not_found("There is nothing with that name.")


def _check_write(request: Request) -> None:
    if settings.READ_ONLY:
        message = (
            "This installation is read-only at the moment. Nothing was changed. Try again later."
        )
        raise Refusal(message, code=503, problem_type="read-only")
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        message = f"A compressed body ({encoding[:40]}) is not read; send it as it is."
        raise Refusal(message, code=415, problem_type="unsupported-encoding")
    request._request.body  # noqa: B018 - read now: what is too large is refused before all else


def _as_problem(response: Response) -> None:
    """Errors are JSON whatever was asked for, except on the browsable pages."""
    renderer = getattr(response, "accepted_renderer", None)
    if renderer is None or renderer.format == "api":
        return
    response.accepted_renderer = JSONRenderer()
    response.accepted_media_type = PROBLEM_JSON
    response.content_type = PROBLEM_JSON


class NothingHere(Endpoint):
    """Every address below /api/v1/ that has no endpoint."""

    schema = None  # type: ignore[assignment]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise not_found("There is nothing at this address. /api/v1/ lists what there is.")

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response(problem(404, ""), status=404)

    post = put = patch = delete = get
