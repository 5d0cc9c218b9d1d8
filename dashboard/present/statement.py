"""The statement of a queue for a month: what it used, by resource and user, and what that costs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from dashboard.http.exports import as_csv, streamed
from dashboard.present.amounts import in_page_order, short_name
from dashboard.present.usage import NOBODY, exact_seconds, hour_unit, in_hours, money, shown_hours
from scheduler.domain.prices import rounded, written
from scheduler.domain.usage_spans import UsageSpan, month_span
from scheduler.selectors.usage.costs import Costs, costs_of
from scheduler.selectors.usage.report import QUEUE, USER, UsageQuestion, used_by_resource

CSV_COLUMNS: Final = (
    "queue",
    "month",
    "by",
    "user",
    "resource",
    "unit",
    "used",
    "usedSeconds",
    "price",
    "cost",
    "currency",
)


@dataclass(frozen=True, slots=True)
class Statement:
    queue: str
    month: str
    span: UsageSpan
    used: dict[str, int]  # units × seconds by resource
    costs: Costs
    by_user: Costs


def statement_of(queue: str, month: str, visible: Collection[str] | None) -> Statement:
    """Raises `BadSpan`."""
    span = month_span(month)
    question = UsageQuestion(span, "", QUEUE, queue=queue, visible=visible)
    used = used_by_resource(question)
    ordered = {name: used[name] for name in in_page_order(used)}
    by_user = costs_of(replace(question, by=USER))
    return Statement(queue, month, span, ordered, costs_of(question), by_user)


def statement_rows(statement: Statement) -> list[dict[str, Any]]:
    """A row for each resource that was used."""
    costs = {row.resource: row for row in statement.costs.by_resource}
    rows = []
    for resource, value in statement.used.items():
        known = costs.get(resource)
        row: dict[str, Any] = {
            "queue": statement.queue,
            "month": statement.month,
            "resource": resource,
            "unit": hour_unit(resource),
            "used": round(in_hours(resource, value), 6),
            "usedSeconds": exact_seconds(resource, value),
            "price": None,
            "cost": None,
            "currency": statement.costs.currency,
        }
        if known is not None:
            row["cost"] = str(rounded(known.cost))
            row["price"] = None if known.price is None else written(known.price)
        rows.append(row)
    return rows


def _users(statement: Statement) -> list[tuple[str, Fraction]]:
    """What each user cost, the dearest first; none where there are no prices."""
    return sorted(statement.by_user.by_name.items(), key=lambda one: (-one[1], one[0]))


def statement_object(statement: Statement) -> dict[str, Any]:
    costs = statement.costs
    total = str(rounded(costs.total)) if costs.currency else None
    users = [{"name": name, "cost": str(rounded(cost))} for name, cost in _users(statement)]
    return {
        "queue": statement.queue,
        "month": statement.month,
        "from": statement.span.start.isoformat(),
        "to": statement.span.end.isoformat(),
        "currency": costs.currency,
        "total": total,
        "resources": statement_rows(statement),
        "users": users,
    }


def present_statement(statement: Statement) -> dict[str, Any]:
    currency = statement.costs.currency
    rows = []
    for row in statement_rows(statement):
        value = statement.used[row["resource"]]
        price = row["price"]
        rows.append(
            {
                "title": short_name(row["resource"]),
                "used": f"{shown_hours(row['resource'], value)} {row['unit']}",
                "price": "changed in between" if price is None and row["cost"] else price or "–",
                "cost": row["cost"] or "–",
            }
        )
    users = []
    for name, cost in _users(statement):
        users.append({"name": name or NOBODY, "cost": money(cost, currency)})
    return {
        "rows": rows,
        "users": users,
        "currency": currency,
        "total": money(statement.costs.total, currency) if currency else "",
        "span": statement.span,
    }


def statement_as_csv(request: HttpRequest, statement: Statement) -> HttpResponseBase:
    """The same money twice, as on the page: by resource, and by user."""
    rows: list[dict[str, Any]] = [{**row, "by": "resource"} for row in statement_rows(statement)]
    for name, cost in _users(statement):
        rows.append(
            {
                "queue": statement.queue,
                "month": statement.month,
                "by": "user",
                "user": name,
                "cost": str(rounded(cost)),
                "currency": statement.costs.currency,
            }
        )
    name = f"statement-{statement.queue}-{statement.month}.csv"
    return streamed(request, as_csv(rows, CSV_COLUMNS), "text/csv", name)
