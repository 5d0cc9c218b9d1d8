"""Where an object of a file stands, and each field of it: the line, for people."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Place:
    """An object of a text: the number of its document, and of the item if that is a list."""

    source: str  # for words
    text: str
    document: int
    item: int | None = None

    def words(self, field: str = "") -> str:
        return f"{self.source}, line {self.line_of(field)}"

    def line_of(self, field: str = "") -> int:
        """The line of a field such as `spec.tasks[1].name`, or of what is nearest above it.

        The text is read again for it: nobody asks where things are that are right.
        """
        import yaml

        documents = [node for node in yaml.compose_all(self.text) if not _is_nothing(node)]
        node = documents[self.document]
        if self.item is not None:
            node = _items_of(node).value[self.item]
        line = node.start_mark.line
        for name, index in _STEP.findall(field):
            found = _inside(node, name, index)
            if found is None:
                break
            line, node = found
        return int(line) + 1


def _is_nothing(node: Any) -> bool:
    return node is None or node.tag == "tag:yaml.org,2002:null"


def _items_of(node: Any) -> Any:
    """The sequence of a document that is one, or is a List."""
    if node.id == "sequence":
        return node
    found = _inside(node, "items", "")
    assert found is not None
    return found[1]


def _inside(node: Any, name: str, index: str) -> tuple[int, Any] | None:
    if node.id == "mapping" and name:
        for key, value in node.value:
            if key.value == name:
                return key.start_mark.line, value
    if node.id == "sequence" and index and int(index) < len(node.value):
        inner = node.value[int(index)]
        return inner.start_mark.line, inner
    return None
