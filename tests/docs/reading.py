"""The fenced blocks of the documents, each with its language and with what a comment before it says
about running it.

A comment in front of a block of shell lines says when the tests do not simply run it:

<!-- not run: WHY --> it cannot be run here <!-- run by FILE --> another test does it <!-- stays:
WHY --> it does not end; what follows runs beside it
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent.parent
DOCUMENTS = sorted(
    [
        BASE / "README.md",
        BASE / "CONTRIBUTING.md",
        *(BASE / "docs").rglob("*.md"),
        *(BASE / "deploy").rglob("*.md"),
    ]
)
SHELL = ("sh", "bash")
_FENCE = re.compile(r"^ *```(\w*) *$")
_MARKER = re.compile(r"^<!-- (not run: .+|run by \S+|stays: .+) -->$")


@dataclass(frozen=True)
class Block:
    line: int
    language: str
    text: str
    marker: str

    @cached_property
    def commands(self) -> list[str]:
        """Its lines without comments; one that goes on in the next is one."""
        joined = self.text.replace("\\\n", " ")
        return [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]


def blocks(document: Path) -> list[Block]:
    return list(_blocks(document.read_text().splitlines()))


def _blocks(lines: list[str]) -> Iterator[Block]:
    opened = None
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence is None:
            continue
        if opened is None:
            opened = (number, fence[1])
            continue
        begin, language = opened
        marker = _MARKER.match(lines[begin - 1])
        yield Block(
            begin + 2,
            language,
            "\n".join(lines[begin + 1 : number]),
            marker[1] if marker else "",
        )
        opened = None


def outside_blocks(document: Path) -> list[tuple[int, str]]:
    """The lines that are no part of a fenced block, with their numbers."""
    found = []
    is_open = False
    for number, line in enumerate(document.read_text().splitlines(), 1):
        if _FENCE.match(line):
            is_open = not is_open
        elif not is_open:
            found.append((number, line))
    return found


def shell_blocks(document: Path) -> list[Block]:
    return [block for block in blocks(document) if block.language in SHELL]
