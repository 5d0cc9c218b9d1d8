"""Words of a fixed set, in an address or an option. Others are refused, with the known ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches


def stored_word(word: str, known: Iterable[str]) -> str | None:
    """The word as it is stored, whatever its case; None where it is none of them."""
    by_name = {one.lower(): one for one in known}
    return by_name.get(word.strip().lower())


def refusal_of(what: str, word: str, known: Iterable[str]) -> str:
    """Why the word is refused, in a sentence that names the known ones."""
    by_name = {one.lower(): one for one in known}
    close = get_close_matches(word.lower(), list(by_name), 1)
    meant = ""
    if close:
        meant = f" Did you mean {by_name[close[0]]}?"
    return f"There is no {what} “{word[:40]}”.{meant} There are {', '.join(by_name.values())}."


def problems_with(given: Mapping[str, str], known: Mapping[str, Iterable[str]]) -> list[str]:
    """A sentence for each parameter whose value is not one of its choices."""
    found = []
    for name, words in known.items():
        choices = list(words)
        if given.get(name) and stored_word(given[name], choices) is None:
            found.append(refusal_of(name, given[name], choices))
    return found


class UnknownWord(Exception):
    """A filter of a page has a value that cannot be; the message names those there are."""


def checked_word(given: Mapping[str, str], name: str, known: Iterable[str]) -> str:
    """The parameter as it is stored, "" where it was not given. Raises `UnknownWord`."""
    word = given.get(name, "").strip()
    if not word:
        return ""
    words = tuple(known)
    found = stored_word(word, words)
    if found is None:
        raise UnknownWord(refusal_of(name, word, words))
    return found
