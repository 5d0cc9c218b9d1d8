"""Long answers, sent while they are read: any number of rows as CSV or JSON, in little memory."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db.models import Model, QuerySet
from django.http import HttpRequest, StreamingHttpResponse

_BATCH = 1000
_PIECE = 64 * 1024  # characters
_RISKY = ("=", "+", "-", "@", "\t", "\r")


def all_rows(query: QuerySet[Any], *, oldest_first: bool = False) -> Iterator[Any]:
    """Every row in the order of its number.

    They are read in batches, each a query of its own, so that nothing is locked for long.
    """
    order = "-pk"
    beyond = "pk__lt"
    if oldest_first:
        order = "pk"
        beyond = "pk__gt"
    ordered = query.order_by(order)
    batch: list[Model] = list(ordered[:_BATCH])
    while batch:
        yield from batch
        if len(batch) < _BATCH:
            return
        batch = list(ordered.filter(**{beyond: batch[-1].pk})[:_BATCH])


def as_csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[str]:
    """Pieces of a table with a line of headings; values that are no text are written as JSON."""
    yield _csv_lines([list(columns)])
    rows = iter(rows)
    while batch := list(islice(rows, _BATCH)):
        yield _csv_lines([_csv_cell(row.get(column)) for column in columns] for row in batch)


def _csv_lines(rows: Iterable[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def _csv_cell(value: Any) -> str:
    """A cell that a spreadsheet would take for a formula is marked as text."""
    if value is None:
        return ""
    text: str = value
    if not isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
    if text.startswith(_RISKY):
        return f"'{text}"
    return text


def as_json_list(rows: Iterable[Any]) -> Iterator[str]:
    """Pieces of one JSON list, an item a line."""
    begin = "["
    for row in rows:
        yield f"{begin}\n{json.dumps(row, ensure_ascii=False)}"
        begin = ","
    if begin == "[":
        yield "[]\n"
    else:
        yield "\n]\n"


def as_json_lines(rows: Iterable[Any]) -> Iterator[str]:
    """One JSON object a line (application/x-ndjson)."""
    return (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def streamed(
    request: HttpRequest,
    pieces: Iterator[str],
    media_type: str,
    name: str,
) -> StreamingHttpResponse:
    """A file to download, sent piece by piece."""
    content: Any = _larger_pieces(pieces)
    if isinstance(request, ASGIRequest):
        content = _read_in_threads(content)
    return StreamingHttpResponse(
        content,
        content_type=f"{media_type}; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _larger_pieces(pieces: Iterator[str]) -> Iterator[str]:
    """The server sends each piece by itself, and most are short."""
    waiting: list[str] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _PIECE:
            yield "".join(waiting)
            waiting = []
            size = 0
    if waiting:
        yield "".join(waiting)


async def _read_in_threads(pieces: Iterator[str]) -> AsyncIterator[str]:
    """The rows are read in a thread, as in a view; the server is free meanwhile."""
    while piece := await sync_to_async(_next_piece)(pieces):
        yield piece


def _next_piece(pieces: Iterator[str]) -> str:
    return next(pieces, "")
