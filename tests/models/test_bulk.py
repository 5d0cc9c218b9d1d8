"""Many rows in one statement, whatever stands in them, on either database."""

from __future__ import annotations

import pytest

from scheduler.models.bulk import columns_table, fetch

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

COLUMNS = {"id": "bigint", "name": "text", "borrowed": "boolean"}


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "",
        "with space",
        "a,b",
        "{a}",
        'say "hello"',
        "back\\slash",
        "NULL",
        "new\nline and\ttab",
        "ünïcode ✓",
        "'quoted'",
        None,
    ],
    ids=repr,
)
def test_a_column_arrives_as_it_was_sent(text: str | None):
    table, parameters = columns_table("d", COLUMNS, [[1, 2], ["first", text], [True, False]])

    found = fetch(f"SELECT d.id, d.name, d.borrowed FROM {table} ORDER BY d.id", parameters)

    assert [(number, name, bool(borrowed)) for number, name, borrowed in found] == [
        (1, "first", True),
        (2, text, False),
    ]


def test_no_rows_are_no_rows():
    table, parameters = columns_table("d", COLUMNS, [[], [], []])

    assert fetch(f"SELECT d.id FROM {table}", parameters) == []
