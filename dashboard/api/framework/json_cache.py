"""Lists put together from JSON that was written before.

Lists are read far more often than what they list changes. A list asks the database which rows it
has and for their stamps (scheduler/models/stamps.py), takes the JSON of unchanged rows from the
cache, and reads and writes only the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

_MOST_TEXTS: Final = 20_000
_IN_ONE_PIECE: Final = 25
_NEVER_WRITTEN: Final = (None, "")

Stamps = Mapping[int, Hashable]
Objects = Mapping[int, dict[str, Any]]
ReadObjects = Callable[[list[int]], Objects]


class JsonCache:
    """The JSON of the objects of one table by primary key, for this process.

    Who may see an object is asked before, with every request.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Hashable, str]] = {}

    def texts_of(self, stamps: Stamps, read: ReadObjects) -> list[str]:
        """In the order of the stamps. A row that is gone before it was read is left out."""
        entries = self._entries  # another thread may empty the cache meanwhile
        outdated = [
            key for key, stamp in stamps.items() if entries.get(key, _NEVER_WRITTEN)[0] != stamp
        ]
        fresh: dict[int, str] = {}
        if outdated:
            fresh = self._write_texts(outdated, stamps, read)
        texts = []
        for key in stamps:
            text = fresh.get(key)
            if text is None:
                text = entries.get(key, _NEVER_WRITTEN)[1]
            if text:
                texts.append(text)
        return texts

    def _write_texts(self, keys: list[int], stamps: Stamps, read: ReadObjects) -> dict[int, str]:
        """The JSON of each key; "" where the row is gone."""
        objects = read(keys)
        if len(self._entries) + len(keys) > _MOST_TEXTS:
            self._entries = {}
        fresh: dict[int, str] = {}
        for key in keys:
            if key not in objects:
                fresh[key] = ""
                continue
            fresh[key] = as_json(objects[key])
            self._entries[key] = (stamps[key], fresh[key])
        return fresh


def as_json(value: Any) -> str:
    """As the JSON renderer writes it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


class JsonPage(str):
    """A page of a list, already JSON. Its pieces, put together, are the page."""

    __slots__ = ("pieces",)
    pieces: tuple[bytes, ...]


def json_page(next_page: str | None, previous_page: str | None, texts: Sequence[str]) -> JsonPage:
    """Each piece has a few objects, so that most pieces of a long page stay what they were."""
    links = f'"next":{as_json(next_page)},"previous":{as_json(previous_page)}'
    pieces = [f'{{{links},"results":[']
    for start in range(0, len(texts), _IN_ONE_PIECE):
        if start:
            pieces.append(",")
        pieces.append(",".join(texts[start : start + _IN_ONE_PIECE]))
    pieces.append("]}")
    page = JsonPage("".join(pieces))
    page.pieces = tuple(piece.encode() for piece in pieces)
    return page
