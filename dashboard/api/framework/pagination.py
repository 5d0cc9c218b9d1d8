"""Pages by cursor: a place in a stable order, so that rows that come and go shift nothing."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from rest_framework.request import Request
from rest_framework.utils.urls import replace_query_param

from dashboard.api.framework.errors import Refusal, bad_parameter
from dashboard.api.framework.json_cache import JsonPage, json_page
from scheduler.models.prepared import Prepared

DEFAULT_PAGE = 100
LARGEST_PAGE = 1000
_LARGEST_INTEGER = 2**63 - 1
_MOST_STATEMENTS = 32
"""For first pages, by list, order and size."""

_FIRST_PAGES: dict[Hashable, Prepared] = {}


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in an order: the values of its columns, and whether to read towards the start."""

    at: list[Any]
    is_backward: bool


class CursorPages:
    """One page of a query in a given order; the primary key settles ties."""

    def __init__(self, request: Request, ordering: list[str]) -> None:
        self.request = request
        self.ordering = _with_primary_key(ordering)
        self.size = page_size(request)
        self.cursor = decode_cursor(request.query_params.get("cursor", ""), len(self.ordering))

    def read_rows(self, query: QuerySet[Any]) -> list[Any]:
        """The rows of this page. Afterwards `next` and `previous` are known."""
        is_backward = self.cursor is not None and self.cursor.is_backward
        order = self.ordering
        if is_backward:
            order = [_reversed_column(name) for name in order]
        if self.cursor is not None:
            query = query.filter(_beyond(query.model, order, self.cursor.at))
        found = list(query.order_by(*order)[: self.size + 1])
        has_more = len(found) > self.size
        rows = found[: self.size]
        if is_backward:
            rows.reverse()
        self._note_ends(rows, is_backward, has_more)
        return rows

    def read_first_rows(
        self, name: str, query: QuerySet[Any], columns: tuple[str, ...]
    ) -> list[dict[str, Any]]:
        """These columns of the first page of a query that is the same for all who give its name.

        Its statement is written once.
        """
        order = tuple(self.ordering)
        key = (name, order, columns, self.size)
        statement = _FIRST_PAGES.get(key)
        if statement is None:
            rows = query.order_by(*order).values_list(*columns)[: self.size + 1]
            statement = Prepared(lambda: rows, keep_plan=True)
            if len(_FIRST_PAGES) >= _MOST_STATEMENTS:
                _FIRST_PAGES.clear()
            _FIRST_PAGES[key] = statement
        found = [dict(zip(columns, row, strict=True)) for row in statement.rows()]
        rows_of_page = found[: self.size]
        self._note_ends(rows_of_page, False, len(found) > self.size)
        return rows_of_page

    def _note_ends(self, rows: list[Any], is_backward: bool, has_more: bool) -> None:
        self.next: str | None = None
        self.previous: str | None = None
        if not rows:
            return
        if is_backward or has_more:
            self.next = self._link_from(rows[-1], is_backward=False)
        came_from_before = self.cursor is not None and not is_backward
        if came_from_before or (is_backward and has_more):
            self.previous = self._link_from(rows[0], is_backward=True)

    def page_of(self, results: list[Any]) -> dict[str, Any]:
        return {"next": self.next, "previous": self.previous, "results": results}

    def json_page_of(self, results: list[str]) -> JsonPage:
        """The same of objects that are JSON already."""
        return json_page(self.next, self.previous, results)

    def _link_from(self, row: Any, *, is_backward: bool) -> str:
        at = []
        for name in self.ordering:
            at.append(_value_in(row, name.lstrip("-")))
        cursor = _encode_cursor(Cursor(at, is_backward))
        return replace_query_param(self.request.build_absolute_uri(), "cursor", cursor)


def _with_primary_key(ordering: list[str]) -> list[str]:
    columns = {name.lstrip("-") for name in ordering}
    if columns & {"pk", "id"}:
        return list(ordering)
    return [*ordering, "pk"]


def page_size(request: Request) -> int:
    text = request.query_params.get("page_size", "")
    if not text:
        return DEFAULT_PAGE
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= 1):
        message = f"page_size is {text[:20]}; it must be a number from 1 to {LARGEST_PAGE}."
        raise bad_parameter("page_size", message)
    if int(text) > LARGEST_PAGE:
        message = f"page_size is {text}; {LARGEST_PAGE} is the most."
        raise bad_parameter("page_size", message, f"write {LARGEST_PAGE}")
    return int(text)


def _reversed_column(name: str) -> str:
    if name.startswith("-"):
        return name[1:]
    return f"-{name}"


def _value_in(row: Any, name: str) -> Any:
    if not isinstance(row, dict):
        value = _attribute(row, name)
    elif name == "pk":
        value = row["id"]
    else:
        value = row[name]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value


def _attribute(row: Any, name: str) -> Any:
    for part in name.split("__"):
        row = getattr(row, part)
    return row


def _encode_cursor(cursor: Cursor) -> str:
    text = json.dumps([cursor.is_backward, cursor.at], separators=(",", ":"), default=str)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(text: str, length: int) -> Cursor | None:
    """None where there is none. Raises `Refusal` for what is no cursor of `length` columns."""
    if not text:
        return None
    padding = b"=" * (-len(text) % 4)
    try:
        is_backward, at = json.loads(base64.urlsafe_b64decode(text.encode() + padding))
        if not isinstance(is_backward, bool) or len(at) != length:
            raise ValueError
        if not all(map(_is_comparable, at)):
            raise ValueError
    except (ValueError, TypeError, binascii.Error, UnicodeError, RecursionError):
        raise _unreadable_cursor() from None
    return Cursor(at, is_backward)


def _unreadable_cursor() -> Refusal:
    message = "The cursor cannot be read: it belongs to another list or order."
    return bad_parameter("cursor", message, "begin without one")


def _is_comparable(value: Any) -> bool:
    """A column can be compared with it: no list, no null, no text that databases refuse."""
    if isinstance(value, str):
        return not any(letter == "\x00" or "\ud800" <= letter <= "\udfff" for letter in value)
    return isinstance(value, int | float)


def _beyond(model: type[Model], order: list[str], at: list[Any]) -> Q:
    """Rows behind a place: later in the first column, or equal there and later in the next."""
    place = Q()
    equal: dict[str, Any] = {}
    for name, text in zip(order, at, strict=True):
        column = name.lstrip("-")
        value = _typed_value(model, column, text)
        comparison = "gt"
        if name.startswith("-"):
            comparison = "lt"
        place |= Q(**equal, **{f"{column}__{comparison}": value})
        equal[column] = value
    return place


def _typed_value(model: type[Model], column: str, text: Any) -> Any:
    """The value as its column has it. Raises `Refusal` where the column cannot have it."""
    try:
        value = _field_of(model, column).to_python(text)
        if isinstance(value, int) and abs(value) > _LARGEST_INTEGER:
            raise ValueError
        if isinstance(value, datetime):
            return _in_utc(value)
        return value
    except (ValidationError, ValueError, TypeError, OverflowError):
        raise _unreadable_cursor() from None


def _field_of(model: type[Model], column: str) -> Any:
    field: Any = None
    for part in column.split("__"):
        if part == "pk":
            field = model._meta.pk
        else:
            field = model._meta.get_field(part)
        if field.is_relation:
            model = field.related_model
    return field


def _in_utc(moment: datetime) -> datetime:
    """Our own cursors name a zone; one that does not is not ours."""
    if moment.tzinfo is None:
        raise ValueError
    return moment.astimezone(UTC)
