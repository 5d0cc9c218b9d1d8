"""Rows that admins give and take back: grants of roles, and groups that are mapped to them."""

from __future__ import annotations

from typing import Any, ClassVar

from dashboard.api import schema
from dashboard.api.framework import permissions
from dashboard.api.records import Records
from dashboard.api.schema.openapi import Operation, Operations


class GivenRecords(Records):
    rules: ClassVar[permissions.Rules] = {
        "list": permissions.signed_in,
        "retrieve": permissions.signed_in,
        "create": permissions.ADMIN,
        "destroy": permissions.ADMIN,
    }


def given_operations(shown: Any, given: Any, taken_back: str = "") -> Operations:
    """`taken_back` is the summary of what a deletion does, if it is more than that."""
    return {
        "list": Operation(shown, many=True),
        "retrieve": Operation(shown),
        "create": Operation(shown, given, 201),
        "destroy": Operation(schema.Gone, summary=taken_back),
    }
