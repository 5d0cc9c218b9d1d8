"""Webhooks as Standard Webhooks describes them: one POST, signed, without redirects."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from scheduler.services.notices.addresses import NotSendable, Resolve, sendable_addresses

PREFIX: Final = "whsec_"
_SECRET_BYTES: Final = 32
_PORTS: Final = {"http": 80, "https": 443}
_GONE: Final = 410


@dataclass(frozen=True, slots=True)
class Result:
    """What came of sending. `gone`: the receiver wants no more, ever."""

    worked: bool
    message: str
    status: int | None = None
    gone: bool = False


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def signatures(body: bytes, message_id: str, timestamp: int, keys: Iterable[str]) -> str:
    """One for each secret, with spaces between them."""
    content = f"{message_id}.{timestamp}.".encode() + body
    found = []
    for key in keys:
        secret = base64.b64decode(key.removeprefix(PREFIX))
        digest = hmac.new(secret, content, hashlib.sha256).digest()
        found.append(f"v1,{base64.b64encode(digest).decode()}")
    return " ".join(found)


def split_url(url: str) -> SplitResult:
    """Raises `NotSendable` for what is no address of a web server."""
    try:
        parts = urlsplit(url)
        is_wrong = parts.scheme not in _PORTS or not parts.hostname or parts.port == 0
    except ValueError:
        is_wrong = True
    if is_wrong or any(not character.isprintable() or character == " " for character in url):
        raise NotSendable("A webhook needs an address like https://example.com/hook.")
    if parts.username or parts.password:
        raise NotSendable("The address of a webhook must not have a user or a password in it.")
    return parts


def post(
    url: str,
    body: bytes,
    message_id: str,
    keys: Sequence[str],
    *,
    allowed: Sequence[str] = (),
    seconds: float = 10.0,
    resolve: Resolve = socket.getaddrinfo,
) -> Result:
    """Send it once. Whatever goes wrong is a result, never an exception."""
    try:
        parts = split_url(url)
        port = parts.port or _PORTS[parts.scheme]
        places = sendable_addresses(str(parts.hostname), port, allowed, resolve)
    except NotSendable as problem:
        return Result(False, str(problem))
    timestamp = int(time.time())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Fumarole",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signatures(body, message_id, timestamp, keys),
    }
    try:
        return _answer(_status(parts, places, body, headers, seconds))
    except (OSError, http.client.HTTPException) as problem:
        return Result(False, f"No answer: {_in_words(problem)}.")


def _status(
    parts: SplitResult,
    places: Sequence[tuple[Any, ...]],
    body: bytes,
    headers: dict[str, str],
    seconds: float,
) -> int:
    connection = _Connection(parts, places, seconds)
    # A receiver that sends a byte now and then must not hold us for longer either.
    deadline = threading.Timer(seconds, connection.cut)
    deadline.daemon = True
    deadline.start()
    try:
        path = parts.path or "/"
        if parts.query:
            path = f"{path}?{parts.query}"
        connection.request("POST", path, body, headers)
        return connection.getresponse().status
    finally:
        deadline.cancel()
        connection.close()


class _Connection(http.client.HTTPConnection):
    """To addresses that were looked at before, under the name of the host."""

    def __init__(
        self, parts: SplitResult, places: Sequence[tuple[Any, ...]], seconds: float
    ) -> None:
        super().__init__(str(parts.hostname), parts.port or _PORTS[parts.scheme], timeout=seconds)
        self._places = places
        self._is_secret = parts.scheme == "https"
        if self._is_secret:
            self.default_port = _PORTS["https"]

    def connect(self) -> None:
        plain = self._first_that_answers()
        self.sock = plain
        if self._is_secret:
            context = ssl.create_default_context()
            self.sock = context.wrap_socket(plain, server_hostname=self.host)

    def _first_that_answers(self) -> socket.socket:
        problem: OSError = OSError("there is no address")
        for place in self._places:
            try:
                return socket.create_connection(place[:2], self.timeout)
            except OSError as refused:
                problem = refused
        raise problem

    def cut(self) -> None:
        if self.sock is not None:
            try:
                self.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # it has ended by itself


def _answer(status: int) -> Result:
    if 200 <= status < 300:
        return Result(True, f"The receiver answered {status}.", status)
    if 300 <= status < 400:
        words = f"The receiver answered {status}, a redirect. Redirects are not followed."
        return Result(False, words, status)
    return Result(False, f"The receiver answered {status}.", status, gone=status == _GONE)


def _in_words(problem: BaseException) -> str:
    if isinstance(problem, TimeoutError):
        return "it took too long"
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"its certificate is not valid ({problem.verify_message})"
    text = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
    return str(text).lower().rstrip(".")[:200]
