"""Two people changed the same thing.

What one of them changed is written over what is stored by now. Nothing else of theirs is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any, Final

Path = tuple[str, ...]
_UNSET: Final = None


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field as it was opened, as I want it, and as others have stored it since.

    None where it is unset.
    """

    path: Path
    base: Any
    mine: Any
    theirs: Any

    @property
    def field(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Merged:
    """`value` is theirs with my changes.

    `kept` are fields that only others changed, `both` those that both did, differently.
    """

    value: dict[str, Any]
    kept: tuple[FieldChange, ...] = ()
    both: tuple[FieldChange, ...] = ()


def merge(base: Mapping[str, Any], mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> Merged:
    """Field by field, however deep; where both changed one, mine is taken and it is named."""
    was = flat(base)
    want = flat(mine)
    now = flat(theirs)
    changes = []
    for path in {**was, **want, **now}:
        changes.append(FieldChange(path, was.get(path), want.get(path), now.get(path)))
    of_mine = [change for change in changes if change.mine != change.base]
    of_theirs = [change for change in changes if change.theirs != change.base]
    result = dict(now)
    for change in of_mine:
        result[change.path] = change.mine
    both = tuple(change for change in of_mine if change.theirs not in (change.base, change.mine))
    kept = tuple(change for change in of_theirs if change.mine == change.base)
    return Merged(_nest_leaves(result, theirs), kept, both)


def flat(value: Mapping[str, Any], above: Path = ()) -> dict[Path, Any]:
    """The leaves by their paths; lists are leaves, and an empty mapping is nothing."""
    leaves: dict[Path, Any] = {}
    for key, inner in value.items():
        path = (*above, str(key))
        if isinstance(inner, Mapping):
            leaves |= flat(inner, path)
        else:
            leaves[path] = inner
    return leaves


def _nest_leaves(leaves: Mapping[Path, Any], pattern: Mapping[str, Any]) -> dict[str, Any]:
    """The mappings of `pattern` stay, even if they are empty by now.

    An empty quota is no quota, and must say so.
    """
    result = _without_leaves(pattern)
    for path, leaf in leaves.items():
        if leaf is _UNSET:
            continue
        place = result
        for key in path[:-1]:
            place = place.setdefault(key, {})
        place[path[-1]] = leaf
    return result


def _without_leaves(pattern: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, inner in pattern.items():
        if isinstance(inner, Mapping):
            found[key] = _without_leaves(inner)
    return found


def merge_lines(base: str, mine: str, theirs: str) -> str | None:
    """A text with both changes.

    None where they touch the same lines, or lines next to each other.
    """
    was = base.splitlines(keepends=True)
    edits = [
        *_line_edits(was, mine.splitlines(keepends=True)),
        *_line_edits(was, theirs.splitlines(keepends=True)),
    ]
    edits = sorted(set(edits))
    for one, other in pairwise(edits):
        if other[0] <= one[1]:
            return None
    for begin, end, lines in reversed(edits):
        was[begin:end] = lines
    return "".join(was)


def _line_edits(was: Sequence[str], now: Sequence[str]) -> list[tuple[int, int, tuple[str, ...]]]:
    matcher = SequenceMatcher(None, was, now, autojunk=False)
    found: list[tuple[int, int, tuple[str, ...]]] = []
    for kind, begin, end, start, stop in matcher.get_opcodes():
        if kind != "equal":
            found.append((begin, end, tuple(now[start:stop])))
    return found
