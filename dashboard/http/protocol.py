"""HTTP/1.1 of uvicorn, with a time limit for the head of a request.

Used as `--http dashboard.http.protocol:TimedProtocol`. It knows no Django: uvicorn loads it before
the application. `dashboard.http.handler` limits the time for bodies.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS: Final = float(os.environ.get("REQUEST_SECONDS") or 10)
_WORDS = b"The request did not arrive in time.\n"
_TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\n"
    b"content-type: text/plain; charset=utf-8\r\n"
    b"connection: close\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(_WORDS), _WORDS)
)


class TimedProtocol(HttpToolsProtocol):
    """The time runs from the connection, or the first byte after an answer, to the head's end."""

    _waiting_for_head: asyncio.TimerHandle | None = None
    _has_begun = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        if self._waiting_for_head is None and (self.cycle is None or self.cycle.response_complete):
            self._wait_for_head()
        self._has_begun = True
        super().data_received(data)

    def on_headers_complete(self) -> None:
        self._head_is_there()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_there()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._waiting_for_head = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _head_is_there(self) -> None:
        if self._waiting_for_head is not None:
            self._waiting_for_head.cancel()
            self._waiting_for_head = None
        self._has_begun = False

    def _give_up(self) -> None:
        """Browsers open connections in advance. One without a request gets no answer."""
        self._waiting_for_head = None
        if self.transport.is_closing():
            return
        if self._has_begun:
            self.transport.write(_TOO_SLOW)
        self.transport.close()
