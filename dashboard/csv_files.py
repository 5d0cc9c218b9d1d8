"""Tables as files for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.http import HttpResponse

_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def csv_file(name: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> HttpResponse:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([harmless(row[column]) for column in columns] for row in rows)
    return HttpResponse(
        text.getvalue(), content_type="text/csv; charset=utf-8", headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


def harmless(value: Any) -> Any:
    """A spreadsheet must not take a name for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULAS) else value
