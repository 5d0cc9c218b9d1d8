"""Versions of objects: the ETag of an answer, and the If-Match of a request."""

from __future__ import annotations

import re

from rest_framework.request import Request

from scheduler.services.files.versions import Expected

# An entity tag of ours, alone or in a list. It is weak where the answer was compressed on its way.
_OUR_TAG = re.compile(r'(?:^|,)[ \t]*(?:W/)?"([0-9]{1,18})"[ \t]*(?=,|$)')


def expected_version(request: Request) -> Expected:
    """The versions that If-Match names, any of which will do; None where any version will do.

    Empty where If-Match names no version of ours: no object can match then.
    """
    text = request.headers.get("If-Match", "").strip()
    if text in ("", "*"):
        return None
    return frozenset(map(int, _OUR_TAG.findall(text)))


def entity_tag(version: int) -> str:
    return f'"{version}"'
