"""Followed logs as server-sent events: one look a second, until it ends or nobody listens.

Data is JSON. An event without a name has new lines, `remark` is a sentence, `end` is the last.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import DatabaseError, close_old_connections
from django.http import HttpRequest, StreamingHttpResponse

from scheduler.services.cluster.log_following import End, Following, NewLines, Piece, Remark

PAUSE_SECONDS = 1.0
_QUIET_LOOKS = 15  # without news: then a word, or a proxy takes the silence for the end
_STILL_HERE = ": still here\n\n"
EVENT_STREAM = "text/event-stream"
_DATABASE_AWAY = End("away", "The database does not answer just now. Follow it again later.")


def log_stream(
    request: HttpRequest, following: Following, give_back: Callable[[], None]
) -> StreamingHttpResponse:
    """`give_back` is called when it has ended, however it ends."""
    looks = _Looks(following)
    content: Any = looks.one_by_one()
    if isinstance(request, ASGIRequest):
        content = looks.without_a_thread()
    response = StreamingHttpResponse(
        content,
        content_type=f"{EVENT_STREAM}; charset=utf-8",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )
    response._resource_closers.append(give_back)  # type: ignore[attr-defined]
    return response


class _Looks:
    def __init__(self, following: Following) -> None:
        self._following = following
        self._quiet = 0
        self._is_over = False

    def one_by_one(self) -> Iterator[str]:
        yield _STILL_HERE  # the head of the answer goes out with it
        while not self._is_over:
            if piece := self._look():
                yield piece
            if not self._is_over:
                time.sleep(PAUSE_SECONDS)

    async def without_a_thread(self) -> AsyncIterator[str]:
        """A thread for each look, and none in between."""
        yield _STILL_HERE
        while not self._is_over:
            if piece := await sync_to_async(self._look_from_afar)():
                yield piece
            if not self._is_over:
                await asyncio.sleep(PAUSE_SECONDS)

    def _look_from_afar(self) -> str:
        try:
            return self._look()
        finally:
            close_old_connections()  # others need the connection until the next look

    def _look(self) -> str:
        try:
            pieces = self._following.look()
        except DatabaseError:
            pieces = [_DATABASE_AWAY]
        self._is_over = any(isinstance(piece, End) for piece in pieces)
        if pieces:
            self._quiet = 0
            return "".join(map(_event, pieces))
        self._quiet += 1
        if self._quiet % _QUIET_LOOKS == 0:
            return _STILL_HERE
        return ""


def _event(piece: Piece) -> str:
    match piece:
        case NewLines():
            lines = [[line.stamp, line.text] for line in piece.lines]
            data = {
                "pod": piece.pod,
                "lines": lines,
                "position": piece.position,
                "leftOut": piece.left_out,
            }
            return f"data: {_json(data)}\n\n"
        case Remark():
            return (
                f"event: remark\ndata: {_json({'pod': piece.pod, 'message': piece.sentence})}\n\n"
            )
        case End():
            data = {"reason": piece.reason, "message": piece.sentence}
            return f"event: end\ndata: {_json(data)}\n\n"


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
