"""Something that the program leans on is away: said once when it goes and once when it is back,
however often it is asked for meanwhile.
"""

from __future__ import annotations

import logging
import sqlite3

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class Outage:
    """One for each thing that may be away, in each process."""

    def __init__(self, logger: logging.Logger, back: str) -> None:
        self._logger = logger
        self._back = back
        self._lasts = False

    def noticed(self, message: str, *words: object) -> None:
        if not self._lasts:
            self._logger.warning(message, *words)
        self._lasts = True

    def over(self) -> None:
        if self._lasts:
            self._logger.warning(self._back)
        self._lasts = False


def in_a_line(problem: object) -> str:
    """The first line of what a driver says; the others repeat it with advice."""
    return next(iter(str(problem).strip().splitlines()), "no reason given")


def is_damage(error: BaseException) -> bool:
    """Whether SQLite says that its file is damaged, or no database at all: no server is to blame,
    and waiting does not help.
    """
    code = int(getattr(error.__cause__ or error, "sqlite_errorcode", 0))
    return code & 0xFF in _DAMAGE  # the rest of the number says which part of it
