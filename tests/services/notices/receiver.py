"""A web server on this machine that takes webhooks, and does with them what a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Got:
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def value(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiver:
    """`answer` is called with each request: a status, or None to hang up."""

    answer: Callable[[int], int | None] = lambda _number: 204
    location: str = ""
    got: list[Got] = field(default_factory=list)
    url: str = ""


@contextmanager
def receiver(
    answer: Callable[[int], int | None] | int = 204, location: str = ""
) -> Iterator[Receiver]:
    to = Receiver(answer if callable(answer) else lambda _number: answer, location)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            to.got.append(Got(headers, self.rfile.read(length)))
            status = to.answer(len(to.got))
            if status is None:
                self.connection.close()
                return
            self.send_response(status)
            if to.location:
                self.send_header("Location", to.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing: tests are quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    to.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    try:
        yield to
    finally:
        server.shutdown()
        server.server_close()
