"""/api/schema/ and /api/docs/: the OpenAPI document, and a page to read and try it, served without any other server."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.urls import reverse
from django.views import defaults
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.renderers import TemplateHTMLRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.errors import problem_response

# Swagger's page sets styles from its script; scripts still come from this server alone.
_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


def only_ours(endpoints: list[Any]) -> list[Any]:
    """The catch-all address is no endpoint."""
    return [
        endpoint
        for endpoint in endpoints
        if endpoint[0].startswith("/api/v1/") and "NothingHere" not in repr(endpoint[3])
    ]


class Schema(SpectacularAPIView):
    """Made once a process: it is the same for everybody, and making it takes most of a second."""

    schema = None
    throttle_classes: tuple[Any, ...] = ()

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response(
            _description(), headers={"Content-Disposition": 'inline; filename="fumarole.yaml"'}
        )


@cache
def _description() -> Any:
    return Schema.generator_class().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]


class Docs(SpectacularSwaggerSplitView):
    schema = None
    url_name = "api-schema"
    throttle_classes: tuple[Any, ...] = ()
    renderer_classes = [TemplateHTMLRenderer]

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        response: Response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
        response["Content-Security-Policy"] = _POLICY
        return response


def elsewhere(request: HttpRequest, rest: str) -> HttpResponse:
    """Whatever is asked of /api/ beside the version that there is."""
    if f"/api/{rest}/" in (reverse("api:start"), reverse("api-schema"), reverse("api-docs")):
        return HttpResponsePermanentRedirect(f"/api/{rest}/")
    return problem_response(
        404,
        f"There is nothing at /api/{rest[:80]}. The API is at /api/v1/, its description at /api/docs/.",
        "not-found",
    )


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """What Django refuses before any view has seen it: a name that is not this server's, too many fields, too long a body."""
    code = 413 if isinstance(exception, RequestDataTooBig) else 400
    if request.path.startswith(("/api/", "/admission/")):
        return problem_response(
            code,
            "The request can not be used: its Host header, its length or its form is not one that is taken.",
        )
    page = defaults.bad_request(
        request, exception
    )  # without what pages say about their reader: who that is was not looked up
    page.status_code = code
    return page
