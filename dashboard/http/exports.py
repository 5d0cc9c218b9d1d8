"""Long answers, sent while they are read: rows as CSV or as JSON, however many there are, in little memory."""

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
_HANDFUL = 64 * 1024  # characters
_RISKY = ("=", "+", "-", "@", "\t", "\r")


def all_rows(query: QuerySet[Any], *, oldest_first: bool = False) -> Iterator[Any]:
    """Every row in the order of its number, read in batches: each is a query of its own, so that nothing is locked or kept for long."""
    ordered = query.order_by("pk" if oldest_first else "-pk")
    beyond = "pk__gt" if oldest_first else "pk__lt"
    batch: list[Model] = list(ordered[:_BATCH])
    while batch:
        yield from batch
        batch = (
            list(ordered.filter(**{beyond: batch[-1].pk})[:_BATCH]) if len(batch) == _BATCH else []
        )


def as_csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[str]:
    """Pieces of a table with a line of headings; what is no text is written as JSON."""
    yield _lines([list(columns)])
    rows = iter(rows)
    while some := list(islice(rows, _BATCH)):
        yield _lines([_cell(row.get(column)) for column in columns] for row in some)


def _lines(rows: Iterable[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def _cell(value: Any) -> str:
    """A cell that a spreadsheet would take for a formula is marked as text."""
    text = (
        ""
        if value is None
        else value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False)
    )
    return f"'{text}" if text.startswith(_RISKY) else text


def as_json_list(rows: Iterable[Any]) -> Iterator[str]:
    """Pieces of one JSON list, an item a line."""
    begin = "["
    for row in rows:
        yield f"{begin}\n{json.dumps(row, ensure_ascii=False)}"
        begin = ","
    yield "[]\n" if begin == "[" else "\n]\n"


def as_json_lines(rows: Iterable[Any]) -> Iterator[str]:
    """One JSON object a line (application/x-ndjson)."""
    return (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def streamed(
    request: HttpRequest, pieces: Iterator[str], kind: str, name: str
) -> StreamingHttpResponse:
    """A file to be kept, sent piece by piece."""
    gathered = _gathered(pieces)
    content: Any = _in_threads(gathered) if isinstance(request, ASGIRequest) else gathered
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(content, content_type=f"{kind}; charset=utf-8", headers=headers)


def _gathered(pieces: Iterator[str]) -> Iterator[str]:
    """In handfuls: the server sends each for itself, and most are short."""
    waiting, size = [], 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _HANDFUL:
            yield "".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield "".join(waiting)


async def _in_threads(pieces: Iterator[str]) -> AsyncIterator[str]:
    """The reading waits in a thread, as a view does; the server is free meanwhile."""
    while piece := await sync_to_async(_following)(pieces):
        yield piece


def _following(pieces: Iterator[str]) -> str:
    return next(pieces, "")
