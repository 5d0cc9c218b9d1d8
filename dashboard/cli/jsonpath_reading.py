"""Reading a JSONPath template. A mistake is named with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

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

_TERMINATORS: Final = frozenset(" \t\r\n.,[]$@{}")
_KEY: Final = re.compile(r"'([^']*)'")
_SLICE: Final = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?")
_COMPARISON: Final = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.DOTALL)
_OPERATORS: Final = ("==", "!=", "<", "<=", ">", ">=")
_NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'", "a": "\a"}
_MOST_DEPTH: Final = 50


class TemplateReader:
    """One template, read from left to right. `offset` is where it stands in a larger one."""

    def __init__(self, text: str, offset: int = 0, depth: int = 0) -> None:
        self.text = text
        self.place = 0
        self.offset = offset
        self.depth = depth
        if depth > _MOST_DEPTH:
            raise self.problem("is nested too deep")

    def problem(self, what: str, place: int | None = None) -> BadTemplate:
        found = self.offset + (self.place if place is None else place)
        return BadTemplate(f"{what}, at character {found + 1}")

    def template(self) -> list[Path]:
        """Texts outside braces, and what is in each pair of braces."""
        paths: list[Path] = []
        while self.place < len(self.text):
            opening = self.text.find("{", self.place)
            end = len(self.text) if opening < 0 else opening
            if end > self.place:
                paths.append((Text(self.text[self.place : end]),))
            self.place = end
            if opening >= 0:
                self.place += 1
                paths.append(tuple(self.action()))
        return paths

    def action(self) -> Iterator[Node]:
        """Up to the closing brace."""
        opened = self.place - 1
        while True:
            if self.place >= len(self.text) or self.text[self.place] == "\n":
                raise self.problem("“{” is not closed", opened)
            if self.text[self.place] == "}":
                self.place += 1
                return
            yield from self.part()

    def path(self) -> Path:
        """All of the text, which has no braces."""
        nodes: list[Node] = []
        while self.place < len(self.text):
            nodes += self.part()
        return tuple(nodes)

    def part(self) -> Iterator[Node]:
        letter = self.text[self.place]
        if self.text.startswith("[?(", self.place):
            yield self._filter()
        elif self.text.startswith("..", self.place):
            yield from self._everywhere()
        elif letter in " @$":
            self.place += 1
        elif letter == "[":
            yield from self._brackets()
        elif letter in "\"'":
            yield Text(self._quoted(letter))
        elif letter == ".":
            self.place += 1
            yield self._field()
        elif letter in "+-" or letter.isdigit():
            yield Text(self._number())
        elif letter.isalnum() or letter == "_":
            yield self._word()
        else:
            raise self.problem(f"“{letter}” is not understood")

    def _field(self) -> Node:
        begin = self.place
        while self.place < len(self.text) and self.text[self.place] not in _TERMINATORS:
            self.place += 2 if self.text[self.place] == "\\" else 1
        name = self.text[begin : self.place]
        if name == "*":
            return Every()
        return Field(name.replace("\\", ""))

    def _everywhere(self) -> Iterator[Node]:
        self.place += 2
        if self.text.startswith(".", self.place):
            raise self.problem("“..” stands twice")
        yield Everywhere()
        following = self.text[self.place : self.place + 1]
        if following.isalnum() or following in ("_", "*"):
            yield self._field()

    def _number(self) -> int | float:
        match = _NUMBER.match(self.text, self.place)
        if match is None:
            raise self.problem("this is no number")
        self.place = match.end()
        if match[1] or match[2]:
            return float(match[0])
        return int(match[0])

    def _word(self) -> Node:
        begin = self.place
        while self.place < len(self.text) and self.text[self.place] not in _TERMINATORS:
            self.place += 1
        name = self.text[begin : self.place]
        if name in ("true", "false"):
            return Text(name == "true")
        if name not in ("range", "end"):
            raise self.problem(f"“{name}” is not known: a field begins with a dot", begin)
        return Word(name)

    def _quoted(self, mark: str) -> str:
        begin = self.place
        self.place += 1
        letters = []
        while self.place < len(self.text) and self.text[self.place] not in (mark, "\n"):
            letter = self.text[self.place]
            if letter == "\\" and self.place + 1 < len(self.text):
                self.place += 1
                letter = self._escaped(self.text[self.place])
            letters.append(letter)
            self.place += 1
        if not self.text.startswith(mark, self.place):
            raise self.problem("the quotes are not closed", begin)
        self.place += 1
        return "".join(letters)

    def _escaped(self, letter: str) -> str:
        if letter not in _ESCAPES:
            raise self.problem(f"“\\{letter}” is not understood", self.place - 1)
        return _ESCAPES[letter]

    def _brackets(self) -> Iterator[Node]:
        begin = self.place
        end = self.text.find("]", begin)
        if end < 0:
            raise self.problem("“[” is not closed", begin)
        self.place = end + 1
        inside = self.text[begin + 1 : end]
        parts = inside.split(",")
        if len(parts) > 1:
            yield Union(tuple(self._inner(f"[{part.strip()}]", begin) for part in parts))
            return
        key = _KEY.fullmatch(inside)
        if key:
            yield from self._inner(f".{key[1]}", begin)
            return
        yield self._slice(inside, begin)

    def _inner(self, text: str, begin: int) -> Path:
        return TemplateReader(text, self.offset + begin, self.depth + 1).path()

    def _slice(self, inside: str, begin: int) -> Slice:
        if inside == "*":
            inside = ":"
        match = _SLICE.fullmatch(inside)
        if match is None or inside == "" or "-" in (match[1], (match[2] or "")[1:]):
            raise self.problem(f"“[{inside[:40]}]” is no index", begin)
        end = _whole((match[2] or "")[1:])
        step = _whole((match[3] or "")[1:])
        return Slice(_whole(match[1]), end, step, is_single=match[2] is None)

    def _filter(self) -> Filter:
        begin = self.place
        end = self._end_of_filter(begin + 3)
        inside = self.text[begin + 3 : end]
        self.place = end + 2
        match = _COMPARISON.fullmatch(inside)
        if match is None:
            return Filter(self._inner(inside, begin + 3))
        if match[2] not in _OPERATORS:
            raise self.problem(f"“{match[2]}” compares nothing", begin + 3 + match.start(2))
        left = self._inner(match[1], begin + 3)
        return Filter(left, match[2], self._inner(match[3], begin + 3 + match.start(3)))

    def _end_of_filter(self, place: int) -> int:
        """Where `)]` stands that is in no quotes."""
        mark = ""
        while place < len(self.text) and self.text[place] != "\n":
            letter = self.text[place]
            if mark:
                if letter == "\\":
                    place += 1
                elif letter == mark:
                    mark = ""
            elif letter in "\"'":
                mark = letter
            elif letter == ")":
                if not self.text.startswith("]", place + 1):
                    raise self.problem("after “)” comes “]”", place + 1)
                return place
            place += 1
        raise self.problem("“[?(” is not closed")


def _whole(text: str) -> int | None:
    if not text:
        return None
    return int(text[:12])
