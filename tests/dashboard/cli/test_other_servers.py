"""An address that is somebody else's: whatever comes back, the answer is one sentence and exit code
5.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.dashboard.cli.conftest import typed

ANSWERS = {
    "page": (200, "text/html", b"<html>hello</html>"),
    "list": (200, "application/json", b"[1, 2]"),
    "object": (200, "application/json", b"{}"),
    "null": (200, "application/json", b"null"),
    "gateway": (502, "text/html", b"<html>bad gateway</html>"),
    "elsewhere": (301, "text/plain", b""),
}


class Stranger(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        code, kind, body = ANSWERS[self.path.split("/")[1]]
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture(scope="module")
def stranger() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stranger)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize(
    "command", ["queue list", "queue get a", "queue tree", "queue close a", "job list", "whoami"]
)
def test_a_server_that_is_not_ours_is_told_in_a_sentence(stranger: str, kind: str, command: str):
    done = typed(f"vcctl --server {stranger}/{kind} {command}")

    assert (done.code, done.out) == (5, "")
    assert done.err.startswith(f"{stranger}/{kind} ")
    assert len(done.err.splitlines()) == 1
