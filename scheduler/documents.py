"""YAML and JSON texts from outside, read into plain values without trusting them: no aliases, no
tags, no surprises of type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

POLICY_LIMIT: Final = 256 * 1024
SCENARIO_LIMIT: Final = 256 * 1024 * 1024
MOST_DOCUMENTS: Final = 10_000
_DEEPEST: Final = 40
_LONGEST_WORD: Final = 80
_LONGEST_NUMBER: Final = 31

_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class DocumentError(ValueError):
    """A text that is no usable YAML or JSON; the message says where and what to do."""


class HalfCharacter(DocumentError):
    """A text holds one half of a character that takes two; `field` is its place."""

    def __init__(self, field: str, half: str) -> None:
        self.field = field
        super().__init__(
            f"{f'{_short(field)}: ' if field else ''}{half} is half of a character; "
            "write the whole of it"
        )


def read_document(text: str, limit: int = SCENARIO_LIMIT) -> object:
    """Mappings, lists, texts, whole numbers, true, false and null.

    Numbers with a point stay texts, so that no digit is lost.
    """
    if len(text) > limit:
        raise DocumentError(
            f"the text has {len(text)} characters, more than the {limit} that are read; make it "
            "smaller"
        )
    if text.lstrip()[:1] in ("{", "["):
        return _read_json(text)
    return _read_yaml(text)


def _read_json(text: str) -> object:
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique_pairs,
            parse_int=_whole,
            parse_float=str,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        return _read_flow_yaml(
            text, f"line {error.lineno}, column {error.colno}: this is not JSON: {error.msg}"
        )
    except RecursionError:
        raise DocumentError("the text is nested too deeply") from None
    except ValueError as error:
        raise DocumentError(_first_line(error)) from None
    refuse_half_characters(text, value)
    return value


_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")


def refuse_half_characters(text: str, value: object) -> None:
    r"""An escape such as \ud800 alone is half of a character: nothing that can be stored, sent or
    shown.

    Raises `HalfCharacter`.
    """
    if not _ESCAPED_HALF.search(text):
        return
    found = _half_character(value)
    if found is not None:
        raise HalfCharacter(_field(found), f"\\u{ord(_HALF.findall(found.word)[0]):04x}")


@dataclass(frozen=True, slots=True)
class _Place:
    """A value and where it stands.

    The way is put into words only when it is asked for: keys may be long, and what they hold
    plenty.
    """

    value: object
    step: str = ""
    within: _Place | None = None

    @property
    def word(self) -> str:
        """The text at this place; of a mapping its keys, joined."""
        if isinstance(self.value, str):
            return self.value
        if isinstance(self.value, dict):
            return "".join(self.value)
        return ""


def _half_character(value: object) -> _Place | None:
    """The first place with half of a character."""
    waiting = [_Place(value)]
    while waiting:
        place = waiting.pop()
        if _HALF.search(place.word):
            return place
        waiting += reversed(list(_places_in(place)))
    return None


def _places_in(place: _Place) -> Iterator[_Place]:
    if isinstance(place.value, dict):
        for key, inner in place.value.items():
            yield _Place(inner, f".{key}", place)
    if isinstance(place.value, list):
        for index, inner in enumerate(place.value):
            yield _Place(inner, f"[{index}]", place)


def _field(place: _Place) -> str:
    steps: list[str] = []
    here: _Place | None = place
    while here is not None:
        steps.append(here.step)
        here = here.within
    return "".join(reversed(steps)).removeprefix(".")


def _read_flow_yaml(text: str, problem: str) -> object:
    """YAML may begin with a bracket too, as {a: b}.

    A large text that is no JSON is not worth a second reading.
    """
    if len(text) > POLICY_LIMIT:
        raise DocumentError(problem)
    try:
        return _read_yaml(text)
    except DocumentError:
        raise DocumentError(problem) from None


def _unique_pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise DocumentError(
            f"the key “{_short(_first_repeated(pairs))}” is given twice in one mapping"
        )
    return found


def _first_repeated(pairs: list[tuple[str, object]]) -> str:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return key
        seen.add(key)
    return ""


def _refuse_constant(word: str) -> object:
    raise DocumentError(f"{word} is not a number that can be used")


def _whole(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise DocumentError(f"{_short(digits)} has more digits than any number that can be used")
    return int(digits)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def _short(word: str) -> str:
    if len(word) <= _LONGEST_WORD:
        return word
    return word[: _LONGEST_WORD - 1] + "…"


class _PlainLoader(_SafeLoader):  # type: ignore[misc]  # the C loader has no type
    """Only what JSON has: dates, octal numbers and `yes` stay texts."""

    yaml_implicit_resolvers: dict[str, Any] = {}


def _plain_mapping(loader: _PlainLoader, node: Any) -> dict[str, object]:
    keys: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise DocumentError(
                f"{_place(key.start_mark)}: a key must be a word, not a list or a mapping"
            )
        if key.value in keys:
            raise DocumentError(
                f"{_place(key.start_mark)}: the key “{_short(key.value)}” is given twice in one "
                "mapping"
            )
        keys.add(key.value)
    mapping: dict[str, object] = {}
    for key, value in node.value:
        mapping[key.value] = loader.construct_object(value, deep=True)
    return mapping


def _resolve(tag: str, pattern: str, first: Iterable[str]) -> None:
    _PlainLoader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), list(first))


_resolve("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF")
_resolve("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""])
_resolve("int", r"^-?(?:0|[1-9][0-9]{0,30})$", "-0123456789")
_PlainLoader.add_constructor("tag:yaml.org,2002:map", _plain_mapping)


def _read_yaml(text: str) -> object:
    try:
        _check_events(text)
        value: object = yaml.load(text, Loader=_PlainLoader)  # noqa: S506 - a subclass of the safe loader
    except yaml.MarkedYAMLError as error:
        raise DocumentError(
            f"{_place(error.problem_mark)}: this is not YAML: {error.problem or error.context}"
        ) from None
    except yaml.YAMLError as error:
        raise DocumentError(f"this is not YAML: {_first_line(error)}") from None
    except RecursionError:
        raise DocumentError("the text is nested too deeply") from None
    refuse_half_characters(text, value)
    return value


def _check_events(text: str) -> None:
    """An alias can make a small text enormous and depth can exhaust the stack: both are found
    before anything is built.
    """
    depth = documents = 0
    for event in yaml.parse(text, Loader=_SafeLoader):
        documents += isinstance(event, yaml.DocumentStartEvent)
        if documents > MOST_DOCUMENTS:
            raise DocumentError(
                f"there are more than the {MOST_DOCUMENTS} documents that are read at once"
            )
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise DocumentError(
                f"{_place(event.start_mark)}: anchors and aliases (& and *) are not read; "
                "write the value out"
            )
        if getattr(event, "tag", None):
            raise DocumentError(
                f"{_place(event.start_mark)}: tags (!) are not read; write the value without"
            )
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise DocumentError(f"{_place(event.start_mark)}: nested more than {_DEEPEST} deep")


def _place(mark: Any) -> str:
    if mark:
        return f"line {mark.line + 1}, column {mark.column + 1}"
    return "somewhere"


def read_json(text: str, limit: int = SCENARIO_LIMIT) -> object:
    """One JSON text and nothing else, no deeper than YAML may be."""
    if len(text) > limit:
        raise DocumentError(
            f"the text has {len(text)} characters, more than the {limit} that are read; make it "
            "smaller"
        )
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique_pairs,
            parse_int=_whole,
            parse_float=str,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        raise DocumentError(
            f"line {error.lineno}, column {error.colno}: this is not JSON: {error.msg}"
        ) from None
    except RecursionError:
        raise DocumentError("the text is nested too deeply") from None
    _check_depth(value)
    refuse_half_characters(text, value)
    return value


def _check_depth(value: object) -> None:
    level: list[object] = [value]
    for _ in range(_DEEPEST + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise DocumentError(f"nested more than {_DEEPEST} deep")


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list):
        return value
    return ()


def read_documents(text: str, limit: int = SCENARIO_LIMIT) -> list[object]:
    """All documents of a text: YAML with `---` between them, or one JSON value."""
    if text.lstrip()[:1] in ("{", "["):
        return [read_document(text, limit)]
    if len(text) > limit:
        raise DocumentError(
            f"the text has {len(text)} characters, more than the {limit} that are read; make it "
            "smaller"
        )
    try:
        _check_events(text)
        documents = list(yaml.load_all(text, Loader=_PlainLoader))
    except yaml.MarkedYAMLError as error:
        raise DocumentError(
            f"{_place(error.problem_mark)}: this is not YAML: {error.problem or error.context}"
        ) from None
    except yaml.YAMLError as error:
        raise DocumentError(f"this is not YAML: {_first_line(error)}") from None
    except RecursionError:
        raise DocumentError("the text is nested too deeply") from None
    refuse_half_characters(text, documents)
    return documents
