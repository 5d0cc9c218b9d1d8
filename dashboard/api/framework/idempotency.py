"""Requests with an Idempotency-Key: the first is carried out, a repeated one gets its answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from rest_framework.response import Response

from dashboard.api.framework.errors import Refusal, bad_parameter
from scheduler.services.records import idempotency
from scheduler.services.records.idempotency import Busy, OtherRequest

LONGEST_KEY = 128
_KEPT_HEADERS = ("ETag", "Location")


class _Undone(Exception):
    """The answer says that nothing was done, so everything is rolled back."""

    def __init__(self, response: Response) -> None:
        self.response = response


@dataclass(frozen=True, slots=True)
class Keyed:
    """A request that is to be carried out once, or one item of its list."""

    user: Any
    key: str
    digest: str
    shown_key: str
    secrets: tuple[str, ...] = ()
    """Fields of an answer that are not kept."""

    def carry_out_once(self, carry_out: Callable[[], Response]) -> Response:
        """What `carry_out` answers, or what was answered before.

        The change and its answer are stored in one transaction.
        """
        try:
            with _conflicts_as_refusals(self.shown_key), transaction.atomic():
                kept = idempotency.claim(self.user, self.key, self.digest)
                if kept is not None:
                    return _kept_response(kept)
                return self._keep(carry_out())
        except _Undone as undone:
            return undone.response

    def _keep(self, response: Response) -> Response:
        if response.status_code >= 500 or connection.needs_rollback:
            raise _Undone(response)
        headers = {}
        for name in _KEPT_HEADERS:
            if name in response:
                headers[name] = response[name]
        idempotency.keep(
            self.user,
            self.key,
            status=response.status_code,
            headers=headers,
            body=_without_secrets(response.data, self.secrets),
        )
        return response

    def begin_list(self) -> None:
        """Note a list. Each item is carried out once, in a transaction of its own.

        A repeated request goes on where the first one ended.
        """
        with _conflicts_as_refusals(self.shown_key):
            idempotency.note(self.user, self.key, self.digest)

    def keyed_item(self, index: int, item: Any) -> Keyed:
        text = json.dumps(item, sort_keys=True, default=str).encode()
        own = hashlib.sha256(self.key.encode()).hexdigest()
        return Keyed(
            user=self.user,
            key=f"\n{own}#{index}",  # no key that somebody sends begins with a line break
            digest=hashlib.sha256(text).hexdigest(),
            shown_key=self.shown_key,
            secrets=self.secrets,
        )


def keyed_request(
    user: Any,
    key: str,
    method: str,
    path: str,
    body: bytes,
    secrets: tuple[str, ...],
) -> Keyed:
    if len(key) > LONGEST_KEY or not key.isprintable():
        message = f"An Idempotency-Key has at most {LONGEST_KEY} printable characters."
        raise bad_parameter("Idempotency-Key", message)
    digest = hashlib.sha256(b"\n".join([method.encode(), path.encode(), body])).hexdigest()
    return Keyed(user, key, digest, key[:60], secrets)


@contextmanager
def _conflicts_as_refusals(key: str) -> Iterator[None]:
    try:
        yield
    except OtherRequest:
        message = (
            f"The Idempotency-Key {key} was used for another request. "
            "Choose a new one for each request."
        )
        raise Refusal(message, code=409, problem_type="key-reused") from None
    except Busy:
        message = (
            f"The request with the Idempotency-Key {key} is still being worked on. "
            "Ask again in a moment."
        )
        raise Refusal(message, code=409, problem_type="key-busy") from None


def _without_secrets(body: Any, secrets: tuple[str, ...]) -> Any:
    if not isinstance(body, dict):
        return body
    kept = dict(body)
    for name in secrets:
        if name in kept:
            kept[name] = ""
    return kept


def _kept_response(answer: Any) -> Response:
    """The same answer as before; a refusal is a problem this time too."""
    headers = {**answer.headers, "Idempotent-Replayed": "true"}
    response = Response(answer.body, status=answer.status, headers=headers)
    response.exception = answer.status >= 400
    return response
