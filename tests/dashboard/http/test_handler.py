"""A request is worked on in one thread, from the first middleware to the last, and an answer that
streams ends with its reader.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.conf import settings as django_settings
from django.core import signals
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from dashboard.http.handler import ThreadedHandler
from dashboard.http.thread_pools import ThreadPool, WaitedTooLong

SEEN: list[int] = []
CLOSED: list[bool] = []
BEGUN = threading.Semaphore(0)
GO_ON = threading.Event()


def note_thread(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    def middleware(request: HttpRequest) -> HttpResponse:
        SEEN.append(threading.get_ident())
        response = get_response(request)
        SEEN.append(threading.get_ident())
        return response

    return middleware


@csrf_exempt
def plain(request: HttpRequest) -> HttpResponse:
    SEEN.append(threading.get_ident())
    answer = HttpResponse(request.body[::-1], headers={"X-Kind": request.method or ""})
    answer.set_cookie("taste", "oat")
    return answer


def broken(_request: HttpRequest) -> HttpResponse:
    raise ZeroDivisionError


def endless(_request: HttpRequest) -> StreamingHttpResponse:
    async def lines() -> AsyncIterator[str]:
        while True:
            yield await sync_to_async(lambda: "again\n")()

    response = StreamingHttpResponse(lines())
    response._resource_closers.append(lambda: CLOSED.append(True))  # type: ignore[attr-defined]
    return response


def three(_request: HttpRequest) -> StreamingHttpResponse:
    async def lines() -> AsyncIterator[str]:
        for word in ("one", "two", "three"):
            yield await sync_to_async(word.upper)()

    return StreamingHttpResponse(lines())


@csrf_exempt
def slow(_request: HttpRequest) -> HttpResponse:
    BEGUN.release()
    assert GO_ON.wait(30)
    return HttpResponse("done")


urlpatterns = [
    path("plain/", plain),
    path("slow/", slow),
    path("api/slow/", slow),
    path("healthz", plain),
    path("broken/", broken),
    path("endless/", endless),
    path("three/", three),
]


@pytest.fixture
def handler(settings: Any) -> ThreadedHandler:
    settings.ROOT_URLCONF = __name__
    settings.MIDDLEWARE = [
        f"{__name__}.note_thread",
        *django_settings.MIDDLEWARE,
        f"{__name__}.note_thread",
    ]
    SEEN.clear()
    CLOSED.clear()
    GO_ON.clear()
    return ThreadedHandler()


def ask(handler: Any, address: str, method: str = "GET") -> ApplicationCommunicator:
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": address,
        "raw_path": address.encode(),
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    return ApplicationCommunicator(handler, scope)


async def answer(
    handler: Any,
    address: str,
    method: str = "GET",
    body: bytes = b"",
) -> tuple[int, dict[bytes, bytes], bytes]:
    asked = ask(handler, address, method)
    await asked.send_input({"type": "http.request", "body": body[:3], "more_body": True})
    await asked.send_input({"type": "http.request", "body": body[3:]})
    start = await asked.receive_output(30)
    content = b""
    more = True
    while more:
        part = await asked.receive_output(30)
        content = content + part.get("body", b"")
        more = part.get("more_body", False)
    await asked.wait(30)
    return start["status"], dict(start["headers"]), content


async def test_middleware_and_view_share_a_thread_that_is_not_the_event_loops(
    handler: ThreadedHandler,
):
    status, headers, content = await answer(handler, "/plain/", "PUT", b"abcdef")

    assert (status, headers[b"X-Kind"], content) == (200, b"PUT", b"fedcba")
    assert b"taste=oat" in headers[b"Set-Cookie"]
    assert len(SEEN) == 5
    assert len(set(SEEN)) == 1
    assert SEEN[0] != threading.get_ident()


async def test_threads_are_kept_and_never_more_than_set(settings: Any, handler: ThreadedHandler):
    settings.WEB_THREADS = 2
    few = ThreadedHandler()

    await asyncio.gather(*(answer(few, "/plain/") for _ in range(12)))

    assert len(set(SEEN)) <= 2


async def test_the_request_is_finished_before_its_answer_is_sent(handler: ThreadedHandler):
    finished: list[int] = []

    def note(**_: Any) -> None:
        finished.append(threading.get_ident())

    signals.request_finished.connect(note)
    try:
        asked = ask(handler, "/plain/")
        await asked.send_input({"type": "http.request"})
        await asked.receive_output(30)

        assert finished == SEEN[:1]  # once, in its own thread: there its database connection is
        await asked.receive_output(30)
        await asked.wait(30)
    finally:
        signals.request_finished.disconnect(note)


async def test_a_bug_is_answered(handler: ThreadedHandler):
    status, _, content = await answer(handler, "/broken/")

    assert status == 500
    assert b"ZeroDivisionError" not in content


async def test_a_file_is_sent_whole(handler: ThreadedHandler):
    status, headers, content = await answer(handler, "/static/css/console.css")

    assert status == 200
    assert headers[b"Content-Type"].startswith(b"text/css")
    assert len(content) == int(headers[b"Content-Length"]) > 1000


async def test_a_stream_is_sent_to_its_end(handler: ThreadedHandler):
    assert (await answer(handler, "/three/"))[2] == b"ONETWOTHREE"


async def test_a_stream_ends_when_its_reader_leaves(handler: ThreadedHandler):
    asked = ask(handler, "/endless/")
    await asked.send_input({"type": "http.request"})
    assert (await asked.receive_output(30))["status"] == 200
    assert (await asked.receive_output(30))["body"] == b"again\n"

    await asked.send_input({"type": "http.disconnect"})
    await asked.wait(30)

    assert CLOSED == [True]


async def test_a_caller_who_leaves_before_the_end_of_his_request_is_forgotten(
    handler: ThreadedHandler,
):
    asked = ask(handler, "/plain/", "POST")
    await asked.send_input({"type": "http.request", "body": b"abc", "more_body": True})
    await asked.send_input({"type": "http.disconnect"})
    await asked.wait(30)

    assert SEEN == []


async def test_a_body_without_end_is_read_no_further_than_is_taken(handler: Any, settings: Any):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    asked = ask(handler, "/plain/", "POST")
    for _ in range(20):
        await asked.send_input({"type": "http.request", "body": b"x" * 300, "more_body": True})

    start = await asked.receive_output(30)

    assert start["status"] == 400  # by Django itself: these pages have no answer of their own to it
    assert asked.input_queue.qsize() >= 20 - 4


async def test_a_body_in_pieces_that_is_not_too_large_arrives_whole(handler: Any, settings: Any):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    asked = ask(handler, "/plain/", "POST")
    for piece in (b"a" * 600, b"b" * 400):
        await asked.send_input(
            {"type": "http.request", "body": piece, "more_body": piece[:1] == b"a"}
        )

    assert (await asked.receive_output(30))["status"] == 200
    assert (await asked.receive_output(30))["body"] == b"b" * 400 + b"a" * 600


@pytest.fixture
async def busy(settings: Any, handler: ThreadedHandler) -> AsyncIterator[ThreadedHandler]:
    """One thread for each kind of request.

    The one for writing is at work, and one more request has waited for it too long already.
    """
    settings.WEB_THREADS = 2
    settings.WEB_LONGEST_WAIT = 0.05
    few = ThreadedHandler()
    writing = [asyncio.create_task(answer(few, "/slow/", "POST")) for _ in range(2)]
    await asyncio.to_thread(BEGUN.acquire)
    await asyncio.sleep(0.1)
    yield few
    GO_ON.set()
    first, _ = await asyncio.gather(*writing)
    assert first[0] == 200


@pytest.mark.parametrize(
    ("address", "kind"),
    [("/api/slow/", b"application/problem+json"), ("/slow/", b"text/html; charset=utf-8")],
)
async def test_past_what_can_be_taken_a_request_is_refused_at_once(
    busy: ThreadedHandler,
    address: str,
    kind: bytes,
):
    status, headers, content = await answer(busy, address, "POST")

    assert (status, headers[b"Retry-After"], headers[b"Content-Type"]) == (503, b"1", kind)
    assert (
        b"The server has more to do than it can take just now, and did nothing about this request."
        in content
    )


@pytest.mark.parametrize("address", ["/plain/", "/healthz"])
async def test_those_who_write_do_not_keep_readers_out(busy: ThreadedHandler, address: str):
    assert (await answer(busy, address))[0] == 200


async def test_when_the_storm_is_over_all_are_taken_again(busy: ThreadedHandler):
    assert (await answer(busy, "/plain/", "POST"))[0] == 503

    GO_ON.set()

    while (await answer(busy, "/plain/", "POST"))[0] != 200:
        await asyncio.sleep(0.01)


async def test_a_request_that_was_given_up_while_it_waited_is_not_counted():
    pool = ThreadPool(GO_ON.wait, 1, "test", usual_seconds=0.0, longest_wait=30)
    GO_ON.clear()
    first = asyncio.create_task(pool.run(30))
    second = asyncio.create_task(pool.run(30))
    await asyncio.sleep(0.05)
    assert pool.expected_wait() > 0

    second.cancel()
    await asyncio.gather(second, return_exceptions=True)

    assert pool.expected_wait() == 0
    GO_ON.set()
    await first


async def test_a_request_that_waited_longer_than_was_thought_is_not_begun():
    pool = ThreadPool(GO_ON.wait, 1, "test", usual_seconds=0.0, longest_wait=0.02)
    GO_ON.clear()
    first = asyncio.create_task(pool.run(30))
    second = asyncio.create_task(pool.run(30))
    await asyncio.sleep(0.1)
    GO_ON.set()

    assert await first
    with pytest.raises(WaitedTooLong):
        await second


async def test_half_a_body_is_not_waited_for(handler: Any, settings: Any):
    settings.REQUEST_SECONDS = 0.05
    asked = ask(handler, "/plain/", "POST")
    await asked.send_input({"type": "http.request", "body": b"abc", "more_body": True})

    start = await asked.receive_output(30)

    assert start["status"] == 408
    assert (b"Connection", b"close") in start["headers"]
    assert SEEN == []


async def test_a_large_body_has_the_time_it_needs(handler: Any, settings: Any):
    settings.REQUEST_SECONDS = 0.2
    asked = ask(handler, "/plain/", "POST")
    for piece in range(4):
        await asked.send_input(
            {"type": "http.request", "body": b"x" * 16_384, "more_body": piece < 3}
        )
        await asyncio.sleep(0.1)

    assert (await asked.receive_output(30))["status"] == 200
