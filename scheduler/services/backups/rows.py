"""Rows as lines of text, in the format of PostgreSQL's COPY.

PostgreSQL reads and writes it by itself, in any version. For SQLite it is done here, with its own
forms of truth values, moments, identities and bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

NULL: Final = r"\N"
_ESCAPES: Final = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"}
_SPECIAL: Final = re.compile(r"[\\\t\n\r]")
_MEANINGS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)

Writer = Callable[[Any], str]
Reader = Callable[[str], Any]


def escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], text)


def unescaped(field: str) -> str:
    if "\\" not in field:
        return field
    return _ESCAPED.sub(lambda found: _MEANINGS.get(found[1], found[1]), field)


def line_of(row: Sequence[Any], writers: Sequence[Writer]) -> bytes:
    fields = []
    for value, write in zip(row, writers, strict=True):
        if value is None:
            fields.append(NULL)
        else:
            fields.append(escaped(write(value)))
    return ("\t".join(fields) + "\n").encode()


def values_of(line: bytes, readers: Sequence[Reader]) -> list[Any]:
    values: list[Any] = []
    fields = line.decode().rstrip("\n").split("\t")
    for field, read in zip(fields, readers, strict=True):
        if field == NULL:
            values.append(None)
        else:
            values.append(read(unescaped(field)))
    return values


def sqlite_writers(types: Iterable[str]) -> list[Writer]:
    """By the types that the columns were declared with."""
    return [_WRITERS.get(declared.lower(), str) for declared in types]


def _truth_written(value: Any) -> str:
    if value:
        return "t"
    return "f"


def _moment_written(value: Any) -> str:
    """SQLite keeps UTC without saying so."""
    return f"{value}+00"


def _bytes_written(value: bytes) -> str:
    return rf"\x{value.hex()}"


_WRITERS: Final[dict[str, Writer]] = {
    "bool": _truth_written,
    "datetime": _moment_written,
    "blob": _bytes_written,
    "real": repr,
}


def sqlite_readers(types: Iterable[str], source_types: Iterable[str]) -> list[Reader]:
    """`source_types` are those of the database that the rows come from."""
    readers: list[Reader] = []
    for declared, source in zip(types, source_types, strict=True):
        if source == "uuid":
            readers.append(_identity_read)
        else:
            readers.append(_READERS.get(declared.lower(), _text_read))
    return readers


def _text_read(text: str) -> str:
    """A column for numbers makes a number of it by itself."""
    return text


def _truth_read(text: str) -> int:
    return int(text == "t")


def _moment_read(text: str) -> str:
    """As Django writes it: UTC without an offset, and six digits of a second or none."""
    moment = text.removesuffix("+00")
    seconds, point, fraction = moment.partition(".")
    if not point:
        return seconds
    return f"{seconds}.{fraction:0<6}"


def _bytes_read(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix(r"\x"))


def _identity_read(text: str) -> str:
    return text.replace("-", "")


_READERS: Final[dict[str, Reader]] = {
    "bool": _truth_read,
    "datetime": _moment_read,
    "blob": _bytes_read,
}
