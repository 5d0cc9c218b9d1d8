"""Reading the arguments of plugins and actions, which come as written in a YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from scheduler.domain.durations import seconds_in

_WORDS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False}


class ArgumentError(ValueError):
    """An argument that cannot be read; the message names it and says what to write."""


def number(arguments: Mapping[str, object], name: str, default: int) -> int:
    value = arguments.get(name, default)
    try:
        return int(str(value))
    except ValueError as error:
        raise ArgumentError(f"{name}: {value!r} is not a whole number") from error


def fraction(arguments: Mapping[str, object], name: str, default: Fraction) -> Fraction:
    value = arguments.get(name, default)
    try:
        return Fraction(str(value))
    except (ValueError, ZeroDivisionError) as error:
        raise ArgumentError(f"{name}: {value!r} is not a number such as 1.2") from error


def boolean(arguments: Mapping[str, object], name: str, default: bool) -> bool:
    value = arguments.get(name, default)
    word = _WORDS.get(str(value).lower())
    if word is None:
        raise ArgumentError(f"{name}: {value!r} is neither true nor false")
    return word


def choice(arguments: Mapping[str, object], name: str, options: tuple[str, ...]) -> str:
    """One of the options; the first is the default."""
    value = str(arguments.get(name, options[0]))
    if value not in options:
        raise ArgumentError(f"{name}: {value!r} is none of {', '.join(options)}")
    return value


def duration(arguments: Mapping[str, object], name: str) -> float | None:
    """Seconds, from texts such as 1h30m or 90s; None if it is not given."""
    value = arguments.get(name)
    if value is None or value == "":
        return None
    seconds = seconds_in(str(value))
    if seconds is None:
        raise ArgumentError(f"{name}: {value!r} is not a duration such as 1h30m or 90s")
    return seconds
