"""Requests with an Idempotency-Key: the first is carried out and its answer kept, the same one again gets that answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from rest_framework.response import Response

from dashboard.api.errors import Refusal, bad_parameter
from scheduler.services.records import idempotency
from scheduler.services.records.idempotency import Busy, OtherRequest

LONGEST_KEY = 128


class _Undone(Exception):
    """The answer says that nothing was done, and so nothing is."""

    def __init__(self, response: Response) -> None:
        self.response = response


@dataclass(frozen=True, slots=True)
class Keyed:
    """A request that is to be carried out once, or one item of its list."""

    user: Any
    key: str
    digest: str
    shown_key: str
    secrets: tuple[str, ...] = ()  # what of an answer is kept nowhere

    def once(self, carry_out: Callable[[], Response]) -> Response:
        """What `carry_out` answers, with the deed and the answer in one transaction; or what was answered before."""
        try:
            with _in_words(self.shown_key), transaction.atomic():
                kept = idempotency.claim(self.user, self.key, self.digest)
                if kept is not None:
                    return _again(kept)
                return self._kept(carry_out())
        except _Undone as undone:
            return undone.response

    def _kept(self, response: Response) -> Response:
        if response.status_code >= 500 or connection.needs_rollback:
            raise _Undone(response)
        headers = {name: response[name] for name in ("ETag", "Location") if name in response}
        body = _without(self.secrets, response.data)
        idempotency.keep(
            self.user, self.key, status=response.status_code, headers=headers, body=body
        )
        return response

    def begin_list(self) -> None:
        """A list is no one transaction: each of its items is carried out once, and a repeat goes on where the first one ended."""
        with _in_words(self.shown_key):
            idempotency.note(self.user, self.key, self.digest)

    def item(self, index: int, item: Any) -> Keyed:
        text = json.dumps(item, sort_keys=True, default=str).encode()
        own = hashlib.sha256(self.key.encode()).hexdigest()
        # No key that somebody sends begins with a line break.
        return Keyed(
            self.user,
            f"\n{own}#{index}",
            hashlib.sha256(text).hexdigest(),
            self.shown_key,
            self.secrets,
        )


def keyed(
    user: Any, key: str, method: str, path: str, body: bytes, secrets: tuple[str, ...]
) -> Keyed:
    if len(key) > LONGEST_KEY or not key.isprintable():
        raise bad_parameter(
            "Idempotency-Key", f"An Idempotency-Key has at most {LONGEST_KEY} printable characters."
        )
    digest = hashlib.sha256(b"\n".join([method.encode(), path.encode(), body])).hexdigest()
    return Keyed(user, key, digest, key[:60], secrets)


@contextmanager
def _in_words(key: str) -> Iterator[None]:
    try:
        yield
    except OtherRequest:
        message = f"The Idempotency-Key {key} was used for another request. Choose a new one for each request."
        raise Refusal(message, code=409, kind="key-reused") from None
    except Busy:
        message = f"The request with the Idempotency-Key {key} is still being worked on. Ask again in a moment."
        raise Refusal(message, code=409, kind="key-busy") from None


def _without(secrets: tuple[str, ...], body: Any) -> Any:
    return (
        {**body, **{name: "" for name in secrets if name in body}}
        if isinstance(body, dict)
        else body
    )


def _again(answer: Any) -> Response:
    """The very answer that was given before; a refusal is a problem this time too."""
    response = Response(
        answer.body, status=answer.status, headers={**answer.headers, "Idempotent-Replayed": "true"}
    )
    response.exception = answer.status >= 400
    return response
