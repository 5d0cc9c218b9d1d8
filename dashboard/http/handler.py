"""A request from its first byte to its answer in one thread.

Django's own handler goes back to the event loop between the middleware and the view, and starts a thread for each request: with views that
are all plain functions this costs more than a small answer itself. Here the loop receives and sends, and everything in between is one call
in a thread that is kept for the next request.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import django
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.conf import settings
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.db import close_old_connections
from django.http import HttpResponse, StreamingHttpResponse
from django.urls import set_script_prefix

from dashboard.http import early_answers
from dashboard.http.lanes import Lanes, WaitedTooLong

_SLOWEST_BYTES_A_SECOND = 16_384  # of a body, after its first seconds


class ThreadedHandler(ASGIHandler):
    """As `ASGIHandler`; at most `WEB_THREADS` requests are worked on at once, the others wait, and not for long."""

    def __init__(self) -> None:
        super().__init__()
        self._lanes = Lanes(self._respond, settings.WEB_THREADS, settings.WEB_LONGEST_WAIT)

    def load_middleware(self, is_async: bool = False) -> None:  # noqa: ARG002 - Django asks for the asynchronous kind
        """All of one kind, whatever is asked for: plain functions."""
        super().load_middleware(is_async=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        limited = _Limited(receive)
        try:
            body = await self.read_body(limited)
        except RequestAborted:
            return
        except TimeoutError:
            await self.send_response(early_answers.too_slow(scope["path"]), send)
            return
        with body:
            response = await self._respond_in_turn(limited.told(scope), body)
            if isinstance(response, StreamingHttpResponse):
                await self._stream(response, receive, send)
            else:
                await self.send_response(response, send)

    async def _respond_in_turn(self, scope: Any, body: Any) -> Any:
        lane = self._lanes.of(scope["method"], scope["path"])
        if not lane.is_full():
            with contextlib.suppress(WaitedTooLong):
                return await lane.run(scope, body)
        return early_answers.overloaded(scope["path"], lane.wait_ahead())

    def _respond(self, scope: Any, body: Any) -> Any:
        """The answer; one that streams is only begun, and closed by whoever sends it."""
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=self.__class__, scope=scope)
        request, refusal = self.create_request(scope, body)
        response: Any = refusal if request is None else self.get_response(request)
        response._handler_class = self.__class__
        if not response.streaming:
            response.close()
        elif not response.is_async:
            return _whole(response)
        else:
            close_old_connections()  # its rows are read in another thread
        return response

    async def _stream(self, response: StreamingHttpResponse, receive: Any, send: Any) -> None:
        """Until its end, or until nobody listens any more."""
        async with ThreadSensitiveContext():
            sending = asyncio.create_task(self.send_response(response, send))
            leaving = asyncio.create_task(receive())
            await asyncio.wait([sending, leaving], return_when=asyncio.FIRST_COMPLETED)
            leaving.cancel()
            sending.cancel()  # does nothing to one that has ended
            with contextlib.suppress(asyncio.CancelledError):
                await sending
            await sync_to_async(response.close)()


class _Limited:
    """Reads of a body no more than is taken, and one message beyond: nobody fills the disk of this machine by sending without end.

    A view learns of it as of any other body that is too large: by its length, which a sender in pieces does not tell.
    Who sends too slowly, or only a part, gets no more time: `TimeoutError`.
    """

    def __init__(self, receive: Any) -> None:
        self._receive, self._read = receive, 0
        self._began = asyncio.get_running_loop().time()

    @property
    def _is_too_much(self) -> bool:
        return self._read > int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)

    async def __call__(self) -> Any:
        deadline = self._began + settings.REQUEST_SECONDS + self._read / _SLOWEST_BYTES_A_SECOND
        async with asyncio.timeout_at(deadline):
            message = await self._receive()
        self._read += len(message.get("body", b""))
        return {**message, "more_body": False} if self._is_too_much else message

    def told(self, scope: Any) -> Any:
        if not self._is_too_much:
            return scope
        others = [
            (name, value) for name, value in scope["headers"] if name.lower() != b"content-length"
        ]
        return {**scope, "headers": [*others, (b"content-length", str(self._read).encode())]}


def _whole(response: StreamingHttpResponse) -> HttpResponse:
    """A file, read: files are few and small here, and the event loop must not read them."""
    whole = HttpResponse(
        b"".join(response), status=response.status_code, headers=dict(response.headers)
    )
    whole.cookies = response.cookies
    response.close()
    return whole


def http_application() -> ThreadedHandler:
    django.setup(set_prefix=False)
    return ThreadedHandler()
