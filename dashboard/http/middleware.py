"""What every request gets.

An id in its answer and the logs, a compressed answer, a strict content security policy, no shared
caching, and a page where something is not available just now.
"""

from __future__ import annotations

import logging
import re
import secrets
import uuid
from collections.abc import Callable
from gzip import GzipFile
from io import BytesIO
from time import perf_counter

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers

from scheduler.logs import REQUESTS, known_as
from scheduler.outages import is_damage
from scheduler.services.queues.commands import CommandFailed

logger = logging.getLogger(__name__)
request_logger = logging.getLogger(REQUESTS)

DAMAGED = "The database's file is damaged. Whoever runs this site has to restore it from a backup."
GetResponse = Callable[[HttpRequest], HttpResponse]
_ACCEPTS_GZIP = re.compile(r"\bgzip\b")
_ACCEPTABLE_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")


class RequestIdMiddleware:
    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = request.headers.get("X-Request-ID", "")
        if not _ACCEPTABLE_ID.fullmatch(request_id):
            request_id = uuid.uuid4().hex
        request.request_id = request_id  # type: ignore[attr-defined]
        began = perf_counter()
        with known_as(request_id=request_id):
            response = self.get_response(request)
            _log_request(request, response, perf_counter() - began)
        response["X-Request-ID"] = request_id
        return response


def _log_request(request: HttpRequest, response: HttpResponse, seconds: float) -> None:
    """Without the query, which may hold what people searched for."""
    if not request_logger.isEnabledFor(logging.INFO):
        return
    fields = {
        "method": request.method,
        "path": request.path,
        "status": response.status_code,
        "milliseconds": round(seconds * 1000, 1),
    }
    request_logger.info(
        "%(method)s %(path)s was answered with %(status)s in %(milliseconds)s ms",
        fields,
        extra={"fields": fields},
    )


class QuickGZipMiddleware(GZipMiddleware):
    """As Django's, but long answers are compressed less, in a third of the time."""

    LONG = 32 * 1024

    def process_response(
        self,
        request: HttpRequest,
        response: HttpResponseBase,
    ) -> HttpResponseBase:
        if response.get("Content-Type", "").startswith("text/event-stream"):
            return response  # each event at once: a compressor would gather them
        if response.streaming or not isinstance(response, HttpResponse):
            return super().process_response(request, response)
        accepts_gzip = _ACCEPTS_GZIP.search(request.headers.get("Accept-Encoding", ""))
        is_encoded = response.has_header("Content-Encoding")
        if is_encoded or not accepts_gzip or len(response.content) < self.LONG:
            return super().process_response(request, response)
        patch_vary_headers(response, ("Accept-Encoding",))
        compressed = getattr(response, "compressed", None)
        if compressed is None:
            response.content = _compressed(response.content)
        else:
            response.content = compressed()
        response.headers["Content-Length"] = str(len(response.content))
        response.headers["Content-Encoding"] = "gzip"
        if response.get("ETag", "").startswith('"'):
            response.headers["ETag"] = f"W/{response['ETag']}"
        return response


def _compressed(content: bytes) -> bytes:
    """With a file name of random length, as in Django: the length must tell nothing (BREACH)."""
    out = BytesIO()
    name = "a" * secrets.randbelow(100)
    with GzipFile(filename=name, mode="wb", compresslevel=1, fileobj=out, mtime=0) as file:
        file.write(content)
    return out.getvalue()


class ContentSecurityPolicyMiddleware:
    """Pages load nothing from elsewhere and run no inline script."""

    POLICY = "; ".join(
        (
            "default-src 'self'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "font-src 'self'",
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        )
    )

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.setdefault("Content-Security-Policy", self.POLICY)
        return response


class PrivateAnswersMiddleware:
    """Answers are kept in no shared cache, and are asked for again.

    They may have changed, and so may the reader's rights.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.setdefault("Cache-Control", "private, no-cache")
        return response


class UnavailableMiddleware:
    """A page with 503, as in the API, if a command failed here or the database does not answer."""

    RETRY_SECONDS = "2"

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, CommandFailed):
            words = str(error)
        elif is_damage(error):
            logger.error("the database's file is damaged: %s", error)
            words = DAMAGED
        elif isinstance(error, (OperationalError, InterfaceError)):
            logger.warning("the database did not answer %s: %s", request.path, error)
            words = "The database does not answer just now."
        else:
            return None
        # The page shows nothing about the reader: that is in the database.
        page = render_to_string("unavailable.html", {"words": words, "request": request})
        return HttpResponse(page, status=503, headers={"Retry-After": self.RETRY_SECONDS})
