"""JSONPath templates as kubectl has them: `{range .items[*]}{.metadata.name}{"\\n"}{end}`.

The dialect is that of Kubernetes, with its habits: `['a.b']` is a path and a dot in a key is
written `\\.`; what is not there gives nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dashboard.cli.jsonpath_nodes import (
    BadTemplate,
    Every,
    Everywhere,
    Field,
    Filter,
    Node,
    Path,
    Slice,
    Text,
    Union,
    Word,
)
from dashboard.cli.jsonpath_reading import TemplateReader
from dashboard.cli.jsonpath_values import compare, go_json, go_text


class Template:
    """Raises `BadTemplate` where it cannot be read."""

    def __init__(self, text: str) -> None:
        self._paths = TemplateReader(text).template()
        self._end_of = _matching_ends(self._paths)

    def text_for(self, value: Any) -> str:
        """Raises `BadTemplate` where it does not fit the value."""
        return "".join(_written(found) for found in self.results(value))

    def results(self, value: Any) -> list[list[Any]]:
        """What each part finds, one after the other."""
        return list(self._run(value, 0, len(self._paths)))

    def _run(self, value: Any, begin: int, end: int) -> Iterator[list[Any]]:
        place = begin
        while place < end:
            path = self._paths[place]
            if place in self._end_of:
                after = self._end_of[place]
                for item in _walk(path[1:], [value]):
                    yield from self._run(item, place + 1, after)
                place = after + 1
                continue
            yield _walk(path, [value])
            place += 1


def _matching_ends(paths: Sequence[Path]) -> dict[int, int]:
    """For each `range`, where its `end` is."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for place, path in enumerate(paths):
        if path[:1] == (Word("range"),):
            opened.append(place)
        elif path == (Word("end"),):
            if not opened:
                raise BadTemplate("{end} has no {range}")
            ends[opened.pop()] = place
        elif any(isinstance(node, Word) for node in path):
            raise BadTemplate("“range” and “end” stand at the beginning of their braces")
    if opened:
        raise BadTemplate("{range} has no {end}")
    return ends


def _walk(path: Path, values: list[Any]) -> list[Any]:
    for node in path:
        values = _step(node, values)
    return values


def _step(node: Node, values: list[Any]) -> list[Any]:
    match node:
        case Text(value):
            return [value]
        case Field(name):
            return [each[name] for each in values if isinstance(each, Mapping) and name in each]
        case Every():
            return [item for each in values for item in _children(each)]
        case Everywhere():
            return [found for each in values for found in _descend(each)]
        case Slice():
            return [item for each in values for item in _sliced(node, each)]
        case Union(paths):
            return [found for path in paths for found in _walk(path, values)]
        case Filter():
            return [item for each in values for item in _filtered(node, each)]
        case Word():
            return values


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, list):
        return value
    return ()


def _descend(value: Any) -> Iterator[Any]:
    children = list(_children(value))
    if children:
        yield value
    for child in children:
        yield from _descend(child)


def _sliced(node: Slice, value: Any) -> Sequence[Any]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise BadTemplate(f"{_short(value)} is no list")
    length = len(value)
    begin = _from_end(node.begin or 0, length)
    if node.is_single:
        if not 0 <= begin < length:
            raise BadTemplate(f"there is no item {node.begin} in a list of {length}")
        return (value[begin],)
    end = length if node.end is None else _from_end(node.end, length)
    if begin == end:
        return ()
    if not 0 <= begin < length or not begin <= end <= length:
        raise BadTemplate(f"a list of {length} has no items from {begin} to {end}")
    step = 1 if node.step is None else node.step
    if step <= 0:
        raise BadTemplate("the step of a slice must be more than 0")
    return value[begin:end:step]


def _from_end(index: int, length: int) -> int:
    if index < 0:
        return index + length
    return index


def _filtered(node: Filter, value: Any) -> Iterator[Any]:
    if not isinstance(value, list):
        raise BadTemplate(f"{_short(value)} is no list, and cannot be filtered")
    for item in value:
        lefts = _walk(node.left, [item])
        if not node.operator:
            if lefts:
                yield item
            continue
        rights = _walk(node.right, [item])
        if len(lefts) > 1 or len(rights) > 1:
            raise BadTemplate("a filter compares one value with one")
        if lefts and rights and _holds(lefts[0], node.operator, rights[0]):
            yield item


def _holds(left: Any, operator: str, right: Any) -> bool:
    held = compare(left, operator, right)
    if held is None:
        raise BadTemplate(f"{_short(left)} and {_short(right)} have no order")
    return held


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:60]


def _written(values: Sequence[Any]) -> str:
    texts = []
    for value in values:
        if isinstance(value, (Mapping, list)):
            texts.append(go_json(value))
        else:
            texts.append(go_text(value))
    return " ".join(texts)
