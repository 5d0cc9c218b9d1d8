"""Pages by cursor: the place in a stable order, not a number of rows, so that rows that come and go shift nothing."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from rest_framework.request import Request
from rest_framework.utils.urls import replace_query_param

from dashboard.api.errors import bad_parameter
from dashboard.api.json_cache import Page, page_text

DEFAULT_PAGE, LARGEST_PAGE = 100, 1000


class CursorPages:
    """One page of a query in a given order; the primary key settles ties."""

    def __init__(self, request: Request, ordering: list[str]) -> None:
        self.request = request
        self.ordering = [
            *ordering,
            *([] if any(name.lstrip("-") in ("pk", "id") for name in ordering) else ["pk"]),
        ]
        self.size = page_size(request)
        self.cursor = _decode(request.query_params.get("cursor", ""), len(self.ordering))

    def rows(self, query: QuerySet[Any]) -> list[Any]:
        """The rows of this page; tells afterwards whether there is more before and behind."""
        backwards = bool(self.cursor and self.cursor["back"])
        order = [_turned(name) for name in self.ordering] if backwards else self.ordering
        if self.cursor:
            query = query.filter(_beyond(query.model, order, self.cursor["at"]))
        found = list(query.order_by(*order)[: self.size + 1])
        more, found = len(found) > self.size, found[: self.size]
        if backwards:
            found.reverse()
        self.has_next = backwards or more
        self.has_previous = more if backwards else self.cursor is not None
        self.first: Any = found[0] if found else None
        self.last: Any = found[-1] if found else None
        return found

    def answer(self, results: list[Any]) -> dict[str, Any]:
        return {"next": self.next, "previous": self.previous, "results": results}

    def text(self, results: list[str]) -> Page:
        """The same of objects that are JSON already."""
        return page_text(self.next, self.previous, results)

    @property
    def next(self) -> str | None:
        return self._link(self.last, False) if self.has_next and self.last is not None else None

    @property
    def previous(self) -> str | None:
        return (
            self._link(self.first, True) if self.has_previous and self.first is not None else None
        )

    def _link(self, row: Any, back: bool) -> str:
        at = [_value(row, name.lstrip("-")) for name in self.ordering]
        return replace_query_param(self.request.build_absolute_uri(), "cursor", _encode(at, back))


def page_size(request: Request) -> int:
    text = request.query_params.get("page_size", "")
    if not text:
        return DEFAULT_PAGE
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= 1):
        raise bad_parameter(
            "page_size", f"page_size is {text[:20]}; it must be a number from 1 to {LARGEST_PAGE}."
        )
    if int(text) > LARGEST_PAGE:
        raise bad_parameter(
            "page_size",
            f"page_size is {text}; {LARGEST_PAGE} is the most.",
            f"write {LARGEST_PAGE}",
        )
    return int(text)


def _turned(name: str) -> str:
    return name[1:] if name.startswith("-") else f"-{name}"


def _value(row: Any, name: str) -> Any:
    value = (
        row[("id" if name == "pk" else name)] if isinstance(row, dict) else _attribute(row, name)
    )
    return value.isoformat() if hasattr(value, "isoformat") else value


def _attribute(row: Any, name: str) -> Any:
    for part in name.split("__"):
        row = getattr(row, part)
    return row


def _encode(at: list[Any], back: bool) -> str:
    text = json.dumps([back, at], separators=(",", ":"), default=str)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode(text: str, length: int) -> dict[str, Any] | None:
    if not text:
        return None
    try:
        back, at = json.loads(base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4)))
        if (
            not isinstance(back, bool)
            or len(at) != length
            or not all(_is_plain(value) for value in at)
        ):
            raise ValueError
    except (ValueError, TypeError, binascii.Error, UnicodeError, RecursionError):
        raise bad_parameter(
            "cursor",
            "The cursor can not be read: it belongs to another list or order.",
            "begin without one",
        ) from None
    return {"back": back, "at": at}


def _is_plain(value: Any) -> bool:
    """What a column can be compared with: no list, no null, no text that no database takes."""
    if isinstance(value, str):
        return not any(letter == "\x00" or "\ud800" <= letter <= "\udfff" for letter in value)
    return isinstance(value, int | float)


def _beyond(model: type[Model], order: list[str], at: list[Any]) -> Q:
    """Rows behind a place: later in the first column, or equal there and later in the next, and so on."""
    place = Q()
    equal: dict[str, Any] = {}
    for name, value in zip(order, at, strict=True):
        column = name.lstrip("-")
        value = _typed(model, column, value)
        place |= Q(**equal, **{f"{column}__{'lt' if name.startswith('-') else 'gt'}": value})
        equal[column] = value
    return place


def _in_utc(moment: datetime) -> datetime:
    """Our own cursors name a zone; one that does not is not ours."""
    if moment.tzinfo is None:
        raise ValueError
    return moment.astimezone(UTC)


def _typed(model: type[Model], column: str, value: Any) -> Any:
    try:
        field: Any = None
        for part in column.split("__"):
            field = model._meta.pk if part == "pk" else model._meta.get_field(part)
            model = field.related_model if field is not None and field.is_relation else model
        typed = field.to_python(value)
        if isinstance(typed, int) and abs(typed) > 2**63 - 1:
            raise ValueError
        return _in_utc(typed) if isinstance(typed, datetime) else typed
    except (ValidationError, ValueError, TypeError, OverflowError):
        raise bad_parameter(
            "cursor",
            "The cursor can not be read: it belongs to another list or order.",
            "begin without one",
        ) from None
