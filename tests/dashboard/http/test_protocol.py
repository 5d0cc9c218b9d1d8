"""Half-sent requests end, on the real server: `REQUEST_SECONDS` is what a client has for a head."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from tests.browser.server import ConsoleServer

PATIENCE = 60.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleServer]:
    folder = tmp_path_factory.mktemp("web")
    server = ConsoleServer(f"sqlite:///{folder / 'empty.sqlite3'}", "redis://127.0.0.1:1/0", folder)
    server.environment["REQUEST_SECONDS"] = "0.5"
    server.start()
    yield server
    server.stop()


def said_until_closed(server: ConsoleServer, *pieces: bytes, pause: float = 0.0) -> bytes:
    """What the server says before it closes a connection that asks for no more than
    these pieces.
    """
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as connection:
        connection.settimeout(PATIENCE)
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)
        said = b""
        while part := connection.recv(65536):
            said += part
    return said


def test_half_a_head_is_not_waited_for(server: ConsoleServer):
    assert said_until_closed(server, b"GET /healthz HTTP/1.1\r\nHost: 127.").startswith(
        b"HTTP/1.1 408 "
    )


def test_a_head_that_drips_has_no_more_time(server: ConsoleServer):
    drops = [bytes([letter]) for letter in b"GET /h"]

    assert said_until_closed(server, *drops, pause=0.05).startswith(b"HTTP/1.1 408 ")


def test_a_connection_without_a_word_is_closed_without_one(server: ConsoleServer):
    assert said_until_closed(server) == b""


def test_half_a_head_after_an_answer_is_not_waited_for(server: ConsoleServer):
    said = said_until_closed(
        server, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"\r\nGET /he", pause=0.2
    )

    assert said.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 408 " in said


def test_half_a_body_is_not_waited_for(server: ConsoleServer):
    head = b"POST /api/v1/jobs/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n"

    said = said_until_closed(server, head, b"{")

    assert said.startswith(b"HTTP/1.1 408 ")
    assert b"application/problem+json" in said
