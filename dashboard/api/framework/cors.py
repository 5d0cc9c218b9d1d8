"""Requests from pages of other sites.

Browsers refuse them, unless CORS_ALLOWED_ORIGINS names the site. Cookies are never allowed.
"""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

_REQUEST_HEADERS = (
    "Authorization",
    "Content-Type",
    "Accept",
    "If-Match",
    "Idempotency-Key",
    "X-Request-ID",
)
_EXPOSED_HEADERS = (
    "ETag",
    "Location",
    "Retry-After",
    "X-Request-ID",
    "RateLimit-Limit",
    "RateLimit-Remaining",
    "RateLimit-Reset",
    "Idempotent-Replayed",
)
_ALLOWED = {
    "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE, OPTIONS",
    "Access-Control-Allow-Headers": ", ".join(_REQUEST_HEADERS),
    "Access-Control-Max-Age": "600",
}


class CorsMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        origin = request.headers.get("Origin", "")
        if not request.path.startswith("/api/") or origin not in settings.CORS_ALLOWED_ORIGINS:
            return self.get_response(request)
        if _is_preflight(request):
            response = HttpResponse(status=204, headers=_ALLOWED)
        else:
            response = self.get_response(request)
        response["Access-Control-Allow-Origin"] = origin
        response["Access-Control-Expose-Headers"] = ", ".join(_EXPOSED_HEADERS)
        if "Vary" in response:
            response["Vary"] = f"{response['Vary']}, Origin"
        else:
            response["Vary"] = "Origin"
        return response


def _is_preflight(request: HttpRequest) -> bool:
    """A browser's question whether it may send a request."""
    return request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
