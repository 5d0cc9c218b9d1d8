"""The search box of the queue tree: `team is:waiting,borrowing -state:closed below:research`.

Words are separated by spaces and must all hold. A word without a field is looked for in names,
`field:a,b` means one of them, and a leading `-` negates a word. A search with an unknown word is
not carried out: it would show more than was asked for. The page's script reads the same words
(`static/js/queue-search.js`), from the lists below.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from scheduler.domain.queue_fields import TREE_FIELDS, names_of
from scheduler.domain.queues import QueueState

Row = Mapping[str, Any]

QUALITIES: Final = {
    "waiting": "has gangs that wait",
    "running": "has gangs that run",
    "idle": "has no gangs at all",
    "borrowing": "has more of something than it deserves",
    "lending": "others use what it deserves",
    "starved": "waits for what it deserves",
    "warned": "has warnings",
    "overlimit": "has more than its limit",
    "reclaimable": "others may take back what it borrows",
    "leaf": "takes jobs itself",
    "parent": "has queues below it",
    "open": "takes jobs and starts them",
    "suspended": "starts nothing, by its own request or one above it",
    "closing": "drains",
    "closed": "takes no jobs",
    "unknown": "its state is not known",
}
STATES: Final = tuple(state.value.lower() for state in QueueState)
FIELDS: Final = {
    "is": "is:waiting, is:borrowing",
    "state": "state:open, state:closed",
    "below": "below:research, that queue and all below it",
    **{field.name: f"{field.name}:ml, part of the {field.label.lower()}" for field in TREE_FIELDS},
}
TEXTS: Final = names_of(TREE_FIELDS)
LONGEST: Final = 1024
_KNOWN: Final[Mapping[str, Collection[str]]] = {"is": tuple(QUALITIES), "state": STATES}


@dataclass(frozen=True, slots=True)
class Term:
    """One word: `field` is "" for a part of a name."""

    field: str
    values: tuple[str, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Search:
    terms: tuple[Term, ...] = ()
    problems: tuple[str, ...] = ()


def read_search(text: str, names: Collection[str]) -> Search:
    """Never fails: what cannot be read becomes a problem. `names` are queues the reader may see."""
    if len(text) > LONGEST:
        return Search(problems=(f"A search has at most {LONGEST} characters.",))
    terms = []
    for word in text.lower().split():
        terms.append(_read_term(word))
    known = {name.lower() for name in names}
    problems: list[str] = []
    for term in terms:
        problems += _problems_with(term, known)
    return Search(tuple(terms), tuple(dict.fromkeys(problems)))


def _read_term(word: str) -> Term:
    negated = word.startswith("-") and len(word) > 1
    if negated:
        word = word[1:]
    field, colon, value = word.partition(":")
    if not colon:
        return Term("", (field,), negated)
    return Term(field, tuple(part for part in value.split(",") if part), negated)


def _problems_with(term: Term, names: Collection[str]) -> list[str]:
    if not term.field:
        return []
    if term.field not in FIELDS:
        return [_unknown_field(term.field)]
    if not term.values:
        example = FIELDS[term.field].partition(",")[0]
        return [f"“{term.field}:” has no value: write something like {example}."]
    problems = []
    for value in term.values:
        if term.field == "below":
            if value not in names:
                problems.append(f"There is no queue “{value}”{_meant(value, names)}")
        elif not _is_known(term.field, value):
            problems.append(_unknown_value(term.field, value))
    return problems


def _unknown_field(field: str) -> str:
    fields = ", ".join(f"{known}:" for known in FIELDS)
    meant = _meant(field, FIELDS, ":")
    return f"There is no word “{field}:”{meant} There are {fields} and parts of names."


def _unknown_value(field: str, value: str) -> str:
    known = _KNOWN[field]
    listed = ", ".join(f"{field}:{word}" for word in known)
    return f"There is no “{field}:{value}”{_meant(value, known)} There are {listed}."


def _is_known(field: str, value: str) -> bool:
    """Of a state, the first letters will do."""
    if field in TEXTS:
        return True
    if field == "is":
        return value in QUALITIES
    return any(state.startswith(value) for state in STATES)


def _meant(word: str, known: Collection[str], end: str = "") -> str:
    close = get_close_matches(word, list(known), 1)
    if not close:
        return "."
    return f": did you mean “{close[0]}{end}”?"


def matching(rows: Collection[Row], search: Search) -> set[str]:
    """The names of the rows for which every term holds; none for a search with a problem."""
    if search.problems:
        return set()
    paths: dict[str, set[str]] = {}
    if any(term.field == "below" for term in search.terms):
        paths = _paths(rows)
    found = set()
    for row in rows:
        if all(_holds(row, term, paths) != term.negated for term in search.terms):
            found.add(row["name"])
    return found


def _holds(row: Row, term: Term, paths: Mapping[str, Collection[str]]) -> bool:
    if term.field == "is":
        return any(value in row["is"] for value in term.values)
    if term.field == "state":
        return str(row["state"]).lower().startswith(term.values)
    if term.field == "below":
        return any(value in paths[row["name"]] for value in term.values)
    if term.field in TEXTS:
        text = str(row[term.field]).lower()
        return any(value in text for value in term.values)
    return term.values[0] in str(row["name"]).lower()


def _paths(rows: Collection[Row]) -> dict[str, set[str]]:
    """Each queue with all above it, in small letters; rows stand in the order of the tree."""
    paths: dict[str, set[str]] = {}
    for row in rows:
        paths[row["name"]] = {row["name"].lower(), *paths.get(row["parent"], ())}
    return paths


def with_ancestors(rows: Collection[Row], names: Collection[str]) -> set[str]:
    """These, and in a tree what leads to them."""
    parents = {}
    for row in rows:
        parents[row["name"]] = row["parent"]
    kept = set(names)
    for name in names:
        above = parents.get(name, "")
        while above and above not in kept:
            kept.add(above)
            above = parents.get(above, "")
    return kept
