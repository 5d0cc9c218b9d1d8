"""Words in an address or an option that are one of a fixed set: what is none of them is refused with those there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches


def stored_word(word: str, known: Iterable[str]) -> str | None:
    """The word as it is stored, whatever its case; None where it is none of them."""
    by_name = {one.lower(): one for one in known}
    return by_name.get(word.strip().lower())


def refusal(what: str, word: str, known: Iterable[str]) -> str:
    """Why the word is refused, in a sentence that names those there are."""
    words = list(known)
    close = get_close_matches(word.lower(), [one.lower() for one in words], 1)
    meant = next(
        (f" Did you mean {one}?" for one in words if close and one.lower() == close[0]), ""
    )
    return f"There is no {what} “{word[:40]}”.{meant} There are {', '.join(words)}."


def problems_with(given: Mapping[str, str], known: Mapping[str, Iterable[str]]) -> list[str]:
    """Of each parameter that must be one of a set and is not, why."""
    found = []
    for name, words in known.items():
        choices = list(words)
        if given.get(name) and stored_word(given[name], choices) is None:
            found.append(refusal(name, given[name], choices))
    return found


class UnknownWord(Exception):
    """A filter of a page has a value that cannot be; the message names those there are."""


def checked_word(given: Mapping[str, str], name: str, known: Iterable[str]) -> str:
    """The parameter as it is stored, "" where it was not given. Raises `UnknownWord`."""
    word, words = given.get(name, "").strip(), tuple(known)
    if not word:
        return ""
    found = stored_word(word, words)
    if found is None:
        raise UnknownWord(refusal(name, word, words))
    return found
