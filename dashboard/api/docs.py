"""/api/schema/ and /api/docs/: the OpenAPI document, and a page to read it and try it.

Everything comes from this server alone.
"""

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

from dashboard.api.framework.errors import problem_response

# Swagger's page sets styles from its script; scripts still come from this server alone.
_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "font-src 'self'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)


def only_ours(endpoints: list[Any]) -> list[Any]:
    """The endpoints of the API. The address that catches all others is no endpoint."""
    ours = []
    for path, path_regex, method, callback in endpoints:
        if path.startswith("/api/v1/") and "NothingHere" not in repr(callback):
            ours.append((path, path_regex, method, callback))
    return ours


class Schema(SpectacularAPIView):
    """Made once a process: it is the same for everybody, and making it takes most of a second."""

    schema = None
    throttle_classes: tuple[Any, ...] = ()

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        headers = {"Content-Disposition": 'inline; filename="fumarole.yaml"'}
        return Response(_openapi_document(), headers=headers)


@cache
def _openapi_document() -> Any:
    generator = Schema.generator_class()
    return generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]


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
    """Every address below /api/ that is not in /api/v1/."""
    if f"/api/{rest}/" in (reverse("api:start"), reverse("api-schema"), reverse("api-docs")):
        return HttpResponsePermanentRedirect(f"/api/{rest}/")
    message = (
        f"There is nothing at /api/{rest[:80]}. "
        "The API is at /api/v1/, its description at /api/docs/."
    )
    return problem_response(404, message, "not-found")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """What Django refuses before any view has seen it.

    The Host header is not this server's, there are too many fields, or the body is too long.
    """
    code = 400
    if isinstance(exception, RequestDataTooBig):
        code = 413
    if request.path.startswith(("/api/", "/admission/")):
        message = "The request was refused: its Host header, its length or its form is not allowed."
        return problem_response(code, message)
    # The page says nothing about its reader: who they are was not looked up.
    page = defaults.bad_request(request, exception)
    page.status_code = code
    return page
