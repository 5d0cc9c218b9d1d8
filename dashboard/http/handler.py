"""A request from its first byte to its answer in one thread.

Django's own handler goes back to the event loop between the middleware and the view, and starts a
thread for each request. All our views are plain functions, so this would cost more than a small
answer itself. Here the loop receives and sends. Everything in between is one call in a thread that
is kept for the next request.
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
from dashboard.http.thread_pools import ThreadPools, WaitedTooLong

_SLOWEST_BYTES_A_SECOND = 16_384  # of a body, after its first seconds


class ThreadedHandler(ASGIHandler):
    """As `ASGIHandler`, with at most `WEB_THREADS` requests at once. The others wait a little."""

    def __init__(self) -> None:
        super().__init__()
        self._pools = ThreadPools(self._respond, settings.WEB_THREADS, settings.WEB_LONGEST_WAIT)

    def load_middleware(self, is_async: bool = False) -> None:  # noqa: ARG002
        """Always as plain functions, though Django asks for asynchronous ones."""
        super().load_middleware(is_async=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        limited = _LimitedBody(receive)
        try:
            body = await self.read_body(limited)
        except RequestAborted:
            return
        except TimeoutError:
            await self.send_response(early_answers.too_slow_answer(scope["path"]), send)
            return
        with body:
            response = await self._respond_in_pool(limited.with_true_length(scope), body)
            if isinstance(response, StreamingHttpResponse):
                await self._stream(response, receive, send)
            else:
                await self.send_response(response, send)

    async def _respond_in_pool(self, scope: Any, body: Any) -> Any:
        pool = self._pools.pool_for(scope["method"], scope["path"])
        if not pool.is_full():
            with contextlib.suppress(WaitedTooLong):
                return await pool.run(scope, body)
        return early_answers.overloaded_answer(scope["path"], pool.expected_wait())

    def _respond(self, scope: Any, body: Any) -> Any:
        """The answer. One that streams is only started here, and closed by whoever sends it."""
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=self.__class__, scope=scope)
        request, refusal = self.create_request(scope, body)
        response: Any = refusal
        if request is not None:
            response = self.get_response(request)
        response._handler_class = self.__class__
        if not response.streaming:
            response.close()
        elif not response.is_async:
            return _read_file(response)
        else:
            close_old_connections()  # its rows are read in another thread
        return response

    async def _stream(self, response: StreamingHttpResponse, receive: Any, send: Any) -> None:
        """Until its end, until nobody listens any more, or until it is cut off."""
        async with ThreadSensitiveContext():
            sending = asyncio.create_task(self.send_response(response, send))
            others = [asyncio.create_task(receive())]
            if hasattr(response, "until_cut"):
                others.append(asyncio.create_task(response.until_cut()))
            await asyncio.wait([sending, *others], return_when=asyncio.FIRST_COMPLETED)
            for other in others:
                other.cancel()
            sending.cancel()  # does nothing to one that has ended
            with contextlib.suppress(asyncio.CancelledError):
                await sending
            await sync_to_async(response.close)()


class _LimitedBody:
    """Reads a body up to the allowed size, and one message more.

    So nobody fills the disk of this machine by sending without end. A view sees that the body is
    too large by its length, which is not told by a client that sends in pieces. A client that sends
    too slowly, or only a part, gets no more time: `TimeoutError`.
    """

    def __init__(self, receive: Any) -> None:
        self._receive = receive
        self._read = 0
        self._started = asyncio.get_running_loop().time()

    @property
    def _is_too_much(self) -> bool:
        return self._read > int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)

    async def __call__(self) -> Any:
        seconds = settings.REQUEST_SECONDS + self._read / _SLOWEST_BYTES_A_SECOND
        async with asyncio.timeout_at(self._started + seconds):
            message = await self._receive()
        self._read += len(message.get("body", b""))
        if self._is_too_much:
            return {**message, "more_body": False}
        return message

    def with_true_length(self, scope: Any) -> Any:
        """The scope with the length of a body that is too large."""
        if not self._is_too_much:
            return scope
        headers = []
        for header in scope["headers"]:
            if header[0].lower() != b"content-length":
                headers.append(header)
        headers.append((b"content-length", str(self._read).encode()))
        return {**scope, "headers": headers}


def _read_file(response: StreamingHttpResponse) -> HttpResponse:
    """Files are few and small here, and the event loop must not read them."""
    headers = dict(response.headers)
    whole = HttpResponse(b"".join(response), status=response.status_code, headers=headers)
    whole.cookies = response.cookies
    response.close()
    return whole


def http_application() -> ThreadedHandler:
    django.setup(set_prefix=False)
    return ThreadedHandler()
