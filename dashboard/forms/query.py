"""The query box of the jobs table: `state:pending queue:team-a/* user:me gpu>=8 age>1h`.

Words are separated by spaces and must all hold. `field:a,b` means one of them, a leading `-`
negates a word, `*` stands for anything in names, quotes keep spaces together, and a word without a
field is looked for in names. A word that cannot be read is reported, and the others still hold.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from scheduler.domain.filters import Comparison, Condition
from scheduler.domain.job_groups import read_shape, shape_word
from scheduler.domain.resources import parse_quantity

STATES = {
    "waiting": "waiting for a place",
    "pending": "waiting, not admitted to the queue yet",
    "inqueue": "in the line, waiting for a place",
    "running": "its gang runs",
    "unknown": "some of its pods run, the rest does not fit",
    "restarting": "stopping, to begin again",
    "aborted": "suspended by its owner, can be resumed",
    "stopping": "its pods are leaving",
    "completed": "ended well",
    "failed": "ended badly",
    "terminated": "cancelled by its owner",
    "finished": "ended, whichever way",
    "live": "everything that has not ended",
}
_OTHER_STATE_NAMES = {
    "suspended": "aborted",
    "cancelled": "terminated",
    "canceled": "terminated",
    "done": "finished",
    "active": "live",
}
TEXT_FIELDS = {
    "state": "state:pending, state:running, state:failed …",
    "queue": "queue:vision, queue:research/* for everything below",
    "user": "user:me, user:alice",
    "reason": "reason:WaitingForQuota",
    "namespace": "namespace:research",
    "name": "name:train-*",
    "class": "class:high, the priority class",
    "shape": "shape:8;cpu=64, the pods that the gang needs and what they ask for",
}
NUMBER_FIELDS = {
    "priority": "priority>=1000",
    "members": "members>=8, the pods that the gang needs",
}
DURATION_FIELDS = {"age": "age>1h, since it was submitted", "wait": "wait>30m, without a place"}
_OTHER_FIELD_NAMES = {
    "ns": "namespace",
    "owner": "user",
    "is": "state",
    "status": "state",
    "phase": "state",
    "q": "queue",
}

_WORD = re.compile(r'-?(?:[^\s"]|"[^"]*"?)+')
_SHAPE = re.compile(
    r'(?P<minus>-?)(?P<field>"[^"]+"|[A-Za-z][\w./-]*?)(?P<sign>>=|<=|:|=|>|<)(?P<value>.*)',
    re.DOTALL,
)
_DURATION = re.compile(r"(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")
_SECONDS = (604_800, 86_400, 3600, 60, 1)
_LONGEST_SECONDS = 100 * 365 * 86_400  # no job is older, and no calendar reaches back without end
# A database refuses too many conditions.
_MOST_WORDS = 40
_MOST_VALUES = 100


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What exists: reason codes, and the cluster's resources by the short name that people type."""

    reasons: Collection[str] = ()
    resources: Mapping[str, str] = field(default_factory=dict)
    user: str = ""

    @property
    def fields(self) -> list[str]:
        return [*TEXT_FIELDS, *self.resources, *NUMBER_FIELDS, *DURATION_FIELDS]


@dataclass(frozen=True, slots=True)
class Term:
    """One word of the query: as typed, and as read. `problem` says why it was left out."""

    text: str
    condition: Condition | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    terms: tuple[Term, ...] = ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        found: list[Condition] = []
        for term in self.terms:
            if term.condition:
                found.append(term.condition)
        return tuple(found)

    @property
    def problems(self) -> tuple[str, ...]:
        found: list[str] = []
        for term in self.terms:
            if term.problem:
                found.append(term.problem)
        return tuple(found)

    def without(self, position: int) -> str:
        """The query as text, with one word left out."""
        return " ".join(term.text for place, term in enumerate(self.terms) if place != position)


class _NotUnderstood(Exception):
    pass


def parse(text: str, vocabulary: Vocabulary) -> Query:
    """Never fails: a word that cannot be read becomes a term with a problem."""
    words = _WORD.findall(text)
    terms = []
    for word in words[:_MOST_WORDS]:
        terms.append(_read_term(word, vocabulary))
    if len(words) > _MOST_WORDS:
        terms.append(Term(words[_MOST_WORDS], problem=_TOO_MANY))
    return Query(tuple(terms))


_TOO_MANY = f"A filter has at most {_MOST_WORDS} words: leave this one and those behind it out."


def _read_term(word: str, vocabulary: Vocabulary) -> Term:
    try:
        return Term(word, _condition(word, vocabulary))
    except _NotUnderstood as problem:
        return Term(word, problem=str(problem))


def _condition(word: str, vocabulary: Vocabulary) -> Condition:
    shape = _SHAPE.fullmatch(word)
    if shape is None:
        plain = _unquoted(word.removeprefix("-"))
        return Condition("text", values=(plain,), negated=word.startswith("-") and len(word) > 1)
    name = _field_name(_unquoted(shape["field"]).lower(), vocabulary)
    comparison = Comparison(shape["sign"])
    value = shape["value"]
    negated = bool(shape["minus"])
    if not _unquoted(value).strip(","):
        raise _NotUnderstood(f"“{word}” has no value: write something like {_example(name)}.")
    if name in TEXT_FIELDS:
        return _text_condition(name, comparison, value, negated, vocabulary)
    return _number_condition(name, comparison, _unquoted(value), negated, vocabulary)


def _field_name(name: str, vocabulary: Vocabulary) -> str:
    known = {}
    for item in vocabulary.fields:
        known[item.lower()] = item
    for short, full in vocabulary.resources.items():
        known[full.lower()] = short
    found = known.get(_OTHER_FIELD_NAMES.get(name, name))
    if found is None:
        fields = ", ".join(vocabulary.fields)
        raise _NotUnderstood(f"There is no field “{name}”{_meant(name, known)} There are {fields}.")
    return found


def _meant(word: str, known: Collection[str]) -> str:
    close = get_close_matches(word, list(known), 1)
    if not close:
        return "."
    return f": did you mean “{close[0]}”?"


def _example(name: str) -> str:
    examples = {**TEXT_FIELDS, **NUMBER_FIELDS, **DURATION_FIELDS}
    return examples.get(name, f"{name}>=8").partition(",")[0]


def _text_condition(
    name: str,
    comparison: Comparison,
    value: str,
    negated: bool,
    vocabulary: Vocabulary,
) -> Condition:
    if comparison not in (Comparison.IS, Comparison.EQUAL):
        raise _NotUnderstood(
            f"“{name}” cannot be compared with {comparison}: write {_example(name)}."
        )
    parts = [_unquoted(part) for part in _parts(value)]
    values = tuple(dict.fromkeys(filter(None, parts)))
    if len(values) > _MOST_VALUES:
        raise _NotUnderstood(f"“{name}” has {len(values)} values: write {_MOST_VALUES} at most.")
    check = _CHECKS.get(name)
    if check is not None:
        values = tuple(check(part, vocabulary) for part in values)
    return Condition(name, values=values, negated=negated)


def _parts(value: str) -> list[str]:
    """At commas, but not inside quotes."""
    return re.findall(r'(?:[^,"]|"[^"]*"?)+', value)


def _state(value: str, _: Vocabulary) -> str:
    state = _OTHER_STATE_NAMES.get(value.lower(), value.lower())
    if state not in STATES:
        raise _NotUnderstood(
            f"There is no state “{value}”{_meant(state, STATES)} There are {', '.join(STATES)}."
        )
    return state


def _reason(value: str, vocabulary: Vocabulary) -> str:
    known = {}
    for code in vocabulary.reasons:
        known[code.lower()] = code
    if value.lower() not in known:
        reasons = vocabulary.reasons
        raise _NotUnderstood(
            f"There is no reason “{value}”{_meant(value, reasons)} There are {', '.join(reasons)}."
        )
    return known[value.lower()]


def _user(value: str, vocabulary: Vocabulary) -> str:
    if value == "me" and vocabulary.user:
        return vocabulary.user
    return value


def _shape(value: str, _: Vocabulary) -> str:
    try:
        pods, request = read_shape(value)
    except ValueError:
        raise _NotUnderstood(
            f"“{value}” is no shape of a gang: write the pods that it needs and what they ask for "
            "together, such as shape:8;cpu=64;memory=256Gi."
        ) from None
    return shape_word(pods, request)


_CHECKS = {"state": _state, "reason": _reason, "user": _user, "shape": _shape}


def _number_condition(
    name: str,
    comparison: Comparison,
    value: str,
    negated: bool,
    vocabulary: Vocabulary,
) -> Condition:
    if comparison is Comparison.IS:
        sign = Comparison.EQUAL
    else:
        sign = comparison
    if name in DURATION_FIELDS:
        return Condition(name, sign, number=_seconds(name, value), negated=negated)
    if name in NUMBER_FIELDS:
        return Condition(name, sign, number=_whole(name, value), negated=negated)
    resource = vocabulary.resources[name]
    try:
        return Condition(
            f"resource:{resource}",
            sign,
            number=parse_quantity(resource, value),
            negated=negated,
        )
    except ValueError:
        raise _NotUnderstood(
            f"“{value}” is not an amount of {name}: write a number such as 8, 500m or 64Gi."
        ) from None


def _whole(name: str, value: str) -> int:
    if not re.fullmatch(r"-?\d{1,12}", value):
        raise _NotUnderstood(f"“{value}” is not a whole number: write {_example(name)}.")
    return int(value)


def _seconds(name: str, value: str) -> int:
    found = _DURATION.fullmatch(value.lower())
    if found is None or not any(found.groups()) or len(value) > 20:
        raise _NotUnderstood(
            f"“{value}” is not a length of time: "
            f"write 30s, 15m, 1h, 2d or 1w, as in {_example(name)}."
        )
    whole = 0
    for number, seconds in zip(found.groups(), _SECONDS, strict=True):
        whole += int(number or 0) * seconds
    if whole > _LONGEST_SECONDS:
        raise _NotUnderstood(
            f"“{value}” is longer than a hundred years: write something like {_example(name)}."
        )
    return whole


def _unquoted(text: str) -> str:
    return text.replace('"', "")
