"""Requests of other sites' pages: refused by browsers, unless CORS_ALLOWED_ORIGINS names the site. Never with cookies."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

_ALLOWED = {
    "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE, OPTIONS",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Accept, If-Match, Idempotency-Key, X-Request-ID",
    "Access-Control-Max-Age": "600",
}
_EXPOSED = "ETag, Location, Retry-After, X-Request-ID, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Idempotent-Replayed"


class CorsMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        origin = request.headers.get("Origin", "")
        if not request.path.startswith("/api/") or origin not in settings.CORS_ALLOWED_ORIGINS:
            return self.get_response(request)
        asks = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
        response = (
            HttpResponse(status=204, headers=_ALLOWED) if asks else self.get_response(request)
        )
        response["Access-Control-Allow-Origin"] = origin
        response["Access-Control-Expose-Headers"] = _EXPOSED
        response["Vary"] = "Origin" if "Vary" not in response else f"{response['Vary']}, Origin"
        return response
