"""Answers before a request is worked on: the server is overloaded, or the client too slow."""

from __future__ import annotations

import json
import math
from typing import Final

from django.http import HttpResponse
from django.template.loader import render_to_string

_MACHINES: Final = ("/api/", "/admission/", "/metrics", "/healthz", "/readyz")
_TITLES: Final = {408: "Request timeout", 503: "Not available"}


def overloaded_answer(path: str, wait: float) -> HttpResponse:
    words = (
        "The server has more to do than it can take just now, and did nothing about this request."
    )
    answer = _answer_with(path, 503, "overloaded", words)
    answer["Retry-After"] = str(max(1, math.ceil(wait)))
    return answer


def too_slow_answer(path: str) -> HttpResponse:
    words = "The request did not arrive in time, and nothing was done about it."
    answer = _answer_with(path, 408, "request-timeout", words)
    answer["Connection"] = "close"
    return answer


def _answer_with(path: str, code: int, problem_type: str, words: str) -> HttpResponse:
    if not path.startswith(_MACHINES):
        return HttpResponse(
            render_to_string("unavailable.html", {"words": words}),
            status=code,
            headers={"Cache-Control": "no-store"},
        )
    problem = {
        "type": f"/api/docs/#problem-{problem_type}",
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
