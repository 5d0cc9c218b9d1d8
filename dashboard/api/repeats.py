"""Requests with an Idempotency-Key: the first is carried out and its answer kept, the same one again gets that answer."""

from __future__ import annotations

import hashlib
import time
from typing import Any

from dashboard.api.errors import Refusal
from scheduler.services import answers
from scheduler.services.answers import Busy, OtherRequest

_PATIENCE_SECONDS, _PAUSE_SECONDS = 5.0, 0.05


def digest_of(method: str, path: str, body: bytes) -> str:
    return hashlib.sha256(b"\n".join([method.encode(), path.encode(), body])).hexdigest()


def claim(user: Any, key: str, digest: str) -> Any:
    """None when this request is the first and to be carried out; else the answer that it got."""
    try:
        return _patiently(user, key, digest)
    except OtherRequest:
        message = f"The Idempotency-Key {key[:60]} was used for another request. Choose a new one for each request."
        raise Refusal(message, code=409, kind="key-reused") from None
    except Busy:
        message = f"The request with the Idempotency-Key {key[:60]} is still being worked on. Ask again in a moment."
        raise Refusal(message, code=409, kind="key-busy") from None


def _patiently(user: Any, key: str, digest: str) -> Any:
    """A repeat that comes while the first is still being worked on waits a while for its answer."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return answers.claim(user, key, digest)
        except Busy:
            if time.monotonic() > until:
                raise
            time.sleep(_PAUSE_SECONDS)


keep = answers.keep
forget = answers.forget
