"""What is answered before a request is worked on at all: the server has too much to do, or the client took too long."""

from __future__ import annotations

import json
import math
from typing import Final

from django.http import HttpResponse
from django.template.loader import render_to_string

_MACHINES: Final = ("/api/", "/admission/", "/metrics", "/healthz", "/readyz")
_TITLES: Final = {408: "Request timeout", 503: "Not available"}


def overloaded(path: str, wait: float) -> HttpResponse:
    seconds = max(1, math.ceil(wait))
    words = (
        "The server has more to do than it can take just now, and did nothing about this request."
    )
    answer = _answer(path, 503, "overloaded", words)
    answer["Retry-After"] = str(seconds)
    return answer


def too_slow(path: str) -> HttpResponse:
    answer = _answer(
        path,
        408,
        "request-timeout",
        "The request did not arrive in time, and nothing was done about it.",
    )
    answer["Connection"] = "close"
    return answer


def _answer(path: str, code: int, kind: str, words: str) -> HttpResponse:
    if not path.startswith(_MACHINES):
        return HttpResponse(
            render_to_string("unavailable.html", {"words": words}),
            status=code,
            headers={"Cache-Control": "no-store"},
        )
    problem = {
        "type": f"/api/docs/#problem-{kind}",
        "title": _TITLES[code],
        "status": code,
        "detail": words,
    }
    return HttpResponse(
        json.dumps(problem),
        status=code,
        content_type="application/problem+json",
        headers={"Cache-Control": "no-store"},
    )
