"""Taking a mapping from outside apart, key by key, so that every complaint names its place and no
key goes unread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from scheduler.domain.resources import NOTHING, QuantityError, Resources, parse_quantity

_WORDS_FOR_TRUTH = {
    "true": True,
    "yes": True,
    "on": True,
    "false": False,
    "no": False,
    "off": False,
}
_SHOWN = 60


class FieldError(ValueError):
    """Something in a document is not as it must be.

    `place` is its path, such as `queues[2].weight`.
    """

    def __init__(self, place: str, problem: str) -> None:
        self.place = place
        self.problem = problem
        super().__init__(f"{place}: {problem}" if place else problem)


def shown(value: object) -> str:
    """A value from outside as it may stand in a message: quoted and short."""
    if isinstance(value, str):
        text = f"“{value}”"
    else:
        text = _KINDS.get(type(value), str(value))
    if len(text) <= _SHOWN:
        return text
    return text[: _SHOWN - 2] + "…”"


_KINDS: dict[type, str] = {dict: "a mapping", list: "a list", type(None): "nothing"}


class Fields:
    """One mapping of a document.

    Each key is taken once; `finish` refuses those nobody asked for.
    """

    def __init__(self, value: object, place: str) -> None:
        if not isinstance(value, dict):
            raise FieldError(place, f"must be a mapping of names to values, not {shown(value)}")
        self.place = place
        self._values: dict[str, object] = value
        self._taken: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def at(self, key: str) -> str:
        if self.place:
            return f"{self.place}.{key}"
        return key

    def take(self, key: str) -> object:
        self._taken.add(key)
        return self._values.get(key)

    def ignore(self, *keys: str) -> None:
        """Keys that may stand there for the reader's sake."""
        self._taken.update(keys)

    def finish(self) -> None:
        for key in self._values:
            if key not in self._taken:
                raise FieldError(
                    self.at(key), "is not a known key; remove it or correct its spelling"
                )

    def problem(self, key: str, problem: str) -> FieldError:
        return FieldError(self.at(key), problem)

    def text(self, key: str, default: str = "") -> str:
        value = self.take(key)
        if value is None:
            return default
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str):
            raise self.problem(key, f"must be a text, not {shown(value)}")
        return value

    def name(self, key: str) -> str:
        value = self.text(key)
        if not value:
            raise self.problem(key, "must be given")
        return value

    def choice(self, key: str, choices: Collection[str], default: str) -> str:
        value = self.text(key, default)
        if value not in choices:
            raise self.problem(
                key, f"must be one of {', '.join(filter(None, choices))}, not {shown(value)}"
            )
        return value

    def whole(self, key: str, default: int, least: int = 0, most: int = 2**31 - 1) -> int:
        value = self.take(key)
        if value is None:
            return default
        return read_whole(value, self.at(key), least, most)

    def flag(self, key: str, default: bool) -> bool:
        value = self.take(key)
        if value is None:
            return default
        return read_flag(value, self.at(key))

    def resources(self, key: str) -> Resources:
        value = self.take(key)
        if value is None:
            return NOTHING
        return read_resources(value, self.at(key))

    def mapping(self, key: str) -> Fields | None:
        value = self.take(key)
        if value is None:
            return None
        return Fields(value, self.at(key))

    def items(self, key: str) -> list[Fields]:
        items: list[Fields] = []
        for value, place in self.values(key):
            items.append(Fields(value, place))
        return items

    def values(self, key: str) -> list[tuple[object, str]]:
        """The entries of a list with the place of each."""
        value = self.take(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.problem(key, f"must be a list, not {shown(value)}")
        place = self.at(key)
        entries: list[tuple[object, str]] = []
        for index, entry in enumerate(value):
            entries.append((entry, f"{place}[{index}]"))
        return entries

    def texts(self, key: str) -> dict[str, str]:
        """A mapping of words to words, such as labels."""
        fields = self.mapping(key)
        if fields is None:
            return {}
        return {name: fields.text(name) for name in fields}


def entries_of(entries: list[object], place: str) -> list[Fields]:
    """The entries of a list of mappings, each with its place."""
    read: list[Fields] = []
    for index, entry in enumerate(entries):
        read.append(Fields(entry, f"{place}[{index}]"))
    return read


def read_whole(value: object, place: str, least: int, most: int) -> int:
    if isinstance(value, str) and value.removeprefix("-").isdecimal() and len(value) < 20:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise FieldError(place, f"must be a whole number, not {shown(value)}")
    if not least <= value <= most:
        raise FieldError(place, f"must be between {least} and {most}, not {shown(value)}")
    return value


def read_flag(value: object, place: str) -> bool:
    """Also `yes` and `on`, and the quoted words that Volcano's arguments use."""
    if isinstance(value, bool):
        return value
    known = None
    if isinstance(value, str):
        known = _WORDS_FOR_TRUTH.get(value.lower())
    if known is None:
        raise FieldError(place, f"must be true or false, not {shown(value)}")
    return known


def read_resources(value: object, place: str) -> Resources:
    """Kubernetes quantities by resource name, none of them below zero."""
    fields = Fields(value, place)
    return Resources(
        {name: _read_amount(name, fields.take(name), fields.at(name)) for name in fields}
    )


def _read_amount(resource: str, text: object, place: str) -> int:
    try:
        amount = parse_quantity(resource, text)
    except QuantityError as error:
        raise FieldError(place, f"{shown(error.text)} {error.problem}") from None
    if amount < 0:
        raise FieldError(place, f"must not be below zero, not {shown(text)}")
    return amount
