"""Rows that are addressed by their number, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from dashboard.api.framework import permissions
from dashboard.api.framework.collection import EndpointSet, Orderings
from dashboard.api.framework.errors import not_found

_LONGEST_NUMBER = 18


class Records(EndpointSet):
    rules: ClassVar[permissions.Rules] = {
        "list": permissions.signed_in,
        "retrieve": permissions.signed_in,
    }
    orderings: ClassVar[Orderings] = {"created": "id"}
    default_ordering = "-created"
    number: ClassVar[str] = "id"
    """The column of the number."""

    def lookup_values(self, where: Mapping[str, str]) -> dict[str, Any]:
        text = where["name"]
        if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER):
            raise not_found(f"There is no {self.noun} {text[:80]}.")
        return {self.number: int(text)}
