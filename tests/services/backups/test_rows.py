"""Rows as lines: what is written is read back, in SQLite's own forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.services.backups.rows import line_of, sqlite_readers, sqlite_writers, values_of

TYPES = ("text", "bool", "datetime", "BLOB", "varchar(20)")


@given(st.text(), st.booleans(), st.binary(), st.none() | st.text())
def test_a_row_of_sqlite_is_read_back_as_it_was(text, truth, content, name):
    row = [text, int(truth), "2026-11-18 01:02:03.400000", content, name]

    line = line_of(row, sqlite_writers(TYPES))

    assert line.count(b"\n") == 1
    assert values_of(line, sqlite_readers(TYPES, TYPES)) == row


@pytest.mark.parametrize(
    ("of_postgresql", "type", "source_type", "expected"),
    [
        ("2026-11-18 01:02:03+00", "datetime", "timestamp with time zone", "2026-11-18 01:02:03"),
        (
            "2026-11-18 01:02:03.4+00",
            "datetime",
            "timestamp with time zone",
            "2026-11-18 01:02:03.400000",
        ),
        (
            "0f8fad5b-d9cb-469f-a165-70867728950e",
            "char(32)",
            "uuid",
            "0f8fad5bd9cb469fa16570867728950e",
        ),
        (r"\\x00ff", "BLOB", "bytea", b"\x00\xff"),
        (r"a\tb\\N\vc", "text", "text", "a\tb\\N\vc"),
        (r"\N", "text", "text", None),
        ("f", "bool", "boolean", 0),
    ],
)
def test_sqlite_gets_its_own_forms(of_postgresql, type, source_type, expected):
    line = of_postgresql.encode() + b"\n"

    assert values_of(line, sqlite_readers([type], [source_type])) == [expected]
