"""The fake API server: HTTP, and the faults that a test has planned.

with FakeApiServer() as server:
    server.plan("WATCH", "/api/v1/pods", Expired(after_events=1))
    server.store.create(...)            # or over HTTP, at server.address
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.control_plane.fake.conversation import Conversation
from tests.control_plane.fake.faults import Answer, Fault, Late, Planned, Reset
from tests.control_plane.fake.pod_logs import log_answer
from tests.control_plane.fake.refusals import Refused
from tests.control_plane.fake.resources import Target, resource_of, target_of
from tests.control_plane.fake.store import Store
from tests.control_plane.fake.watch import BreakConnection, Watch


class FakeApiServer:
    """Runs in threads of this process, at `address`, without encryption and without rights."""

    def __init__(self) -> None:
        self.store = _store_with_namespaces()
        self.logs: dict[str, str] = {}  # what pods have written, by name
        self.requests: list[tuple[str, str]] = []  # method and path with its question, as they came
        self.is_over = threading.Event()
        self._planned: list[Planned] = []
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler_for(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> FakeApiServer:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.is_over.set()
        with self.store.changed:
            self.store.changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def plan(self, method: str, path: str, fault: Fault, times: int = 1) -> None:
        """Let the next requests go wrong. The method WATCH is a GET that watches."""
        with self._lock:
            self._planned.append(Planned(method, path, fault, times))

    def note_request(self, method: str, path: str) -> None:
        with self._lock:
            self.requests.append((method, path))

    def next_fault(self, method: str, path: str) -> Fault | None:
        with self._lock:
            for planned in self._planned:
                if planned.fits(method, path):
                    planned.times -= 1
                    return planned.fault
        return None


def _store_with_namespaces() -> Store:
    store = Store()
    for name in ("default", "kube-system"):
        store.create(resource_of("v1", "namespaces"), "", {"metadata": {"name": name}})
    return store


def _is_served(target: Target) -> bool:
    return target.subresource != "status" or target.resource.has_status


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error here."""


def _handler_for(fake: FakeApiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        server_state = fake

    return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_state: FakeApiServer

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the requests are kept in a list."""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_PATCH(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        question = dict(parse_qsl(parts.query, keep_blank_values=True))
        body = self._read_body()
        self.server_state.note_request(self.command, self.path)
        is_watch = question.get("watch") in ("1", "true")
        fault = self.server_state.next_fault("WATCH" if is_watch else self.command, parts.path)
        try:
            self._answer_or_fail(parts.path, question, body, fault, is_watch)
        except Refused as refused:
            self._send(refused.code, refused.status(), retry_after=refused.retry_after)
        except BreakConnection:
            self._break_connection()

    def _answer_or_fail(
        self, path: str, question: dict[str, str], body: Any, fault: Fault | None, is_watch: bool
    ) -> None:
        if isinstance(fault, Answer):
            details = {"causes": list(fault.causes)} if fault.causes else None
            raise Refused(fault.code, fault.reason, fault.message, details, fault.retry_after)
        if isinstance(fault, Late):
            self.server_state.is_over.wait(fault.seconds)
        if isinstance(fault, Reset) and not fault.is_done:
            raise BreakConnection
        if path in ("/readyz", "/livez", "/healthz"):
            self._send_text("ok")
            return
        target = target_of(path)
        if target is None or not _is_served(target):
            raise Refused(404, "NotFound", "the server could not find the requested resource", {})
        if target.subresource == "log":
            written = self.server_state.logs.get(target.name, "")
            self._send_text(log_answer(written, question))
            return
        if is_watch:
            self._send_head_of_watch()
            watch = Watch(self.server_state.store, target, question, fault)
            watch.serve(self.wfile, self.server_state.is_over)
            return
        conversation = Conversation(self.server_state.store, target, question)
        content_type = self.headers.get("Content-Type", "")
        code, answer = conversation.answer(self.command, body, content_type)
        if isinstance(fault, Reset):
            raise BreakConnection
        self._send(code, answer)

    def _read_body(self) -> Any:
        length = int(self.headers.get("Content-Length") or 0)
        content = self.rfile.read(length)
        return json.loads(content) if content else None

    def _send(self, code: int, answer: Any, retry_after: int | None = None) -> None:
        content = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if retry_after is not None:
            self.send_header("Retry-After", str(retry_after))
        self.end_headers()
        self.wfile.write(content)

    def _send_head_of_watch(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _send_text(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def _break_connection(self) -> None:
        """Close so that the client sees a reset, not an orderly end."""
        self.close_connection = True
        at_once = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        self.connection.close()
