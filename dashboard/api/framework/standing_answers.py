"""Answers that stand while nothing at all was written to the database.

PostgreSQL numbers the transactions that write. Two statements that see the same set of finished
ones see the same rows, whoever wrote them and from which process. The statement that reads a token
reads that set too (`ApiToken.database_state`). So a request whose token was read in the state in
which an answer was made gets that answer: rights, rows and counts are the same. Nothing has to be
invalidated, and no writer can forget to.
"""

from __future__ import annotations

import secrets
import threading
import zlib
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Final

from django.http import HttpResponse

_MOST_BYTES: Final = 32 * 2**20
"""Of all answers that this process keeps."""
_GZIP_HEAD: Final = b"\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\xff"
"""Deflated, with a file name, at no time, by no known system."""


_SHORTEST_PIECE: Final = 4096
"""What is shorter is compressed with what follows it."""
_LAST_BLOCK: Final = b"\x03\x00"
"""Ends what is deflated, and is empty."""


class StandingAnswer:
    """The bytes of an answer in JSON, and the same compressed once somebody takes it so.

    Pieces of it that were in an answer before are not compressed again.
    """

    def __init__(self, state: str, *pieces: bytes) -> None:
        self.state = state
        self.content = b"".join(pieces)
        self._pieces = pieces

    def compressed(self) -> bytes:
        """With a file name of random length: the length must tell nothing (BREACH)."""
        return _GZIP_HEAD + b"a" * secrets.randbelow(100) + b"\x00" + self._deflated

    @cached_property
    def _deflated(self) -> bytes:
        length = len(self.content) & 0xFFFFFFFF
        ends = (zlib.crc32(self.content), length)
        body = b"".join(_deflated_piece(piece) for piece in _long_pieces(self._pieces))
        return body + _LAST_BLOCK + b"".join(number.to_bytes(4, "little") for number in ends)


def _long_pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    short = b""
    for piece in pieces:
        short += piece
        if len(short) >= _SHORTEST_PIECE:
            yield short
            short = b""
    if short:
        yield short


@lru_cache(maxsize=256)
def _deflated_piece(piece: bytes) -> bytes:
    """It refers to nothing before it, so it can stand between any others."""
    packing = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packing.compress(piece) + packing.flush(zlib.Z_FULL_FLUSH)


class StandingAnswers:
    """By who asks for what. The one that was asked for longest ago goes first."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._answers: OrderedDict[Hashable, StandingAnswer] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def find(self, key: Hashable, state: str) -> StandingAnswer | None:
        with self._lock:
            found = self._answers.get(key)
            if found is None or found.state != state:
                return None
            self._answers.move_to_end(key)
            return found

    def keep(self, key: Hashable, answer: StandingAnswer) -> None:
        """One for each key. Compressed answers are small beside what they were."""
        with self._lock:
            self._drop(key)
            if len(answer.content) > self._most_bytes:
                return
            self._answers[key] = answer
            self._bytes += len(answer.content)
            while self._bytes > self._most_bytes:
                self._drop(next(iter(self._answers)))

    def _drop(self, key: Hashable) -> None:
        gone = self._answers.pop(key, None)
        if gone is not None:
            self._bytes -= len(gone.content)


class StandingResponse(HttpResponse):
    """Its compressed form is not made again (`QuickGZipMiddleware`)."""

    def __init__(self, answer: StandingAnswer) -> None:
        super().__init__(answer.content, content_type="application/json")
        self.compressed = answer.compressed
