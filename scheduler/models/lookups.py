"""Lookups that the database does in time that grows with the text and no faster."""

from __future__ import annotations

from typing import Any

from django.db.models import CharField, Lookup

_FOR_LIKE = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_", "*": "%"})
_FOR_GLOB = str.maketrans({"?": "[?]", "[": "[[]"})


@CharField.register_lookup
class Glob(Lookup):
    """`name__glob="train-*-v2*"`: `*` stands for anything, case counts.

    Not by a regular expression: SQLite would leave that to Python, which tries every way to divide
    a text among the stars.
    """

    lookup_name = "glob"

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        return self._compared(compiler, connection, "LIKE", _FOR_LIKE)

    def as_sqlite(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        return self._compared(compiler, connection, "GLOB", _FOR_GLOB)

    def _compared(
        self,
        compiler: Any,
        connection: Any,
        operator: str,
        escapes: dict[int, str],
    ) -> tuple[str, tuple[Any, ...]]:
        column, parameters = self.process_lhs(compiler, connection)
        return f"{column} {operator} %s", (*parameters, str(self.rhs).translate(escapes))
