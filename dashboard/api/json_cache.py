"""Answers put together from texts that were made before: an object is written as JSON again only when its row has changed.

Lists are read far more often than what they list changes. A list asks the database which rows it has and for their stamps
(scheduler/models/stamps.py), takes the texts that fit from the shelf, and reads and writes only the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final

_MOST_TEXTS: Final = 20_000

Stamps = Mapping[int, Hashable]
Objects = Mapping[int, dict[str, Any]]


class Shelf:
    """Texts of the objects of one kind by primary key, for this process. Who may see an object is asked before, with every request."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Hashable, str]] = {}

    def texts(self, stamps: Stamps, read: Callable[[list[int]], Objects]) -> list[str]:
        """In the order of the stamps. A row that is gone before it was read is left out."""
        missing = [
            key for key, stamp in stamps.items() if self._kept.get(key, (None, ""))[0] != stamp
        ]
        fresh = self._written(missing, stamps, read) if missing else {}
        kept = self._kept
        return [
            text
            for key in stamps
            if (
                text := fresh.get(key) or (kept[key][1] if key in kept and key not in fresh else "")
            )
        ]

    def _written(
        self, missing: list[int], stamps: Stamps, read: Callable[[list[int]], Objects]
    ) -> dict[int, str]:
        objects = read(missing)
        fresh = {key: as_text(objects[key]) if key in objects else "" for key in missing}
        if len(self._kept) + len(fresh) > _MOST_TEXTS:
            self._kept = {}
        self._kept.update((key, (stamps[key], text)) for key, text in fresh.items() if text)
        return fresh


def as_text(value: Any) -> str:
    """As the JSON renderer writes it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


class Page(str):
    """A page of a list, already JSON."""

    __slots__ = ()


def page_text(next_page: str | None, previous_page: str | None, texts: Iterable[str]) -> Page:
    return Page(
        f'{{"next":{as_text(next_page)},"previous":{as_text(previous_page)},"results":[{",".join(texts)}]}}'
    )
