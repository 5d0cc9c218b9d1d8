"""Query parameters that all endpoints read alike: which are known, true or false, and reasons."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any

from django.core.exceptions import TooManyFieldsSent
from rest_framework.request import Request

from dashboard.api.framework.errors import MOST_PARAMETERS, Refusal, bad_parameter
from dashboard.http.access import LONGEST_PARAMETER

WRITING_METHODS = ("POST", "PUT", "PATCH", "DELETE")
EVERYWHERE = frozenset({"format", "fields"})
LIST_PARAMETERS = frozenset({"cursor", "page_size", "ordering", "search"})

_LONGEST_REASON = 1024
_UNLIMITED = "shown"
"""The names of all queues that a dry run showed: as long as there are queues."""
_BOOLEANS = {
    "true": True,
    "1": True,
    "yes": True,
    "false": False,
    "0": False,
    "no": False,
    "": False,
}


def check_parameters(request: Request, known: Collection[str]) -> None:
    """Raises `Refusal` for parameters that are unknown, too many, too long or not text."""
    if request.META.get("QUERY_STRING", "").count("&") >= MOST_PARAMETERS:
        raise TooManyFieldsSent
    for name, values in request.query_params.lists():
        if name not in known:
            raise _unknown_parameter(name, known)
        _check_values(name, values)


def _unknown_parameter(name: str, known: Collection[str]) -> Refusal:
    similar = difflib.get_close_matches(name, known, 1, 0.6)
    fix = f"known here: {', '.join(sorted(known))}"
    if similar:
        fix = f"did you mean {similar[0]}?"
    return bad_parameter(name[:80], f"There is no parameter {name[:80]} here.", fix)


def _check_values(name: str, values: list[str]) -> None:
    for value in values:
        if "\x00" in value:
            raise bad_parameter(name, f"{name} has a character that cannot be used.")
        if name != _UNLIMITED and len(value) > LONGEST_PARAMETER:
            message = f"{name} is longer than {LONGEST_PARAMETER:,} characters."
            raise bad_parameter(name, message, "shorten it")


def read_boolean(request: Request, name: str, default: bool = False) -> bool:
    text = request.query_params.get(name)
    if text is None:
        return default
    if text.lower() not in _BOOLEANS:
        message = f"{name} is “{text[:20]}”; it must be true or false."
        raise bad_parameter(name, message, "write true or false")
    return _BOOLEANS[text.lower()]


def check_reason(reason: Any) -> str:
    """The reason itself. Raises `Refusal` where it is no text or too long."""
    if not isinstance(reason, str) or len(reason) > _LONGEST_REASON or "\x00" in reason:
        raise bad_parameter("reason", "A reason is a text of at most 1,024 characters.")
    return reason


def reason_in_body(body: Any) -> str:
    """The reason in the body of a command, "" where there is none."""
    if body in ({}, [], None, ""):
        return ""
    if not isinstance(body, Mapping):
        raise Refusal('The body of a command is an object such as {"reason": "maintenance"}.')
    unknown = sorted(set(body) - {"reason"})
    if unknown:
        name = str(unknown[0])[:80]
        raise bad_parameter(name, f"A command has no {name}; it takes a reason.", "leave it out")
    return check_reason(body.get("reason") or "")
