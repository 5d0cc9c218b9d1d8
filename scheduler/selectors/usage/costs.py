"""What usage cost, by the price lists of the days that it was in, in two queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Any

from django.db.models import Q, Sum

from scheduler.domain.prices import Prices, cost_of, currency_of, lists_between
from scheduler.models import PriceList
from scheduler.selectors.usage.report import COLUMNS, UsageQuestion, rows_of


@dataclass(frozen=True, slots=True)
class ResourceCost:
    """`value` is in units × seconds. `price` is None where it changed in between."""

    resource: str
    value: int
    price: Decimal | None
    cost: Fraction


@dataclass(frozen=True, slots=True)
class Costs:
    """`currency` is "" where there is no price list, or lists of several currencies."""

    currency: str = ""
    by_name: dict[str, Fraction] = field(default_factory=dict)
    by_resource: tuple[ResourceCost, ...] = ()

    @property
    def total(self) -> Fraction:
        return sum((row.cost for row in self.by_resource), Fraction())


def price_lists() -> list[Prices]:
    found = []
    for row in PriceList.objects.order_by("valid_from"):
        prices = {name: Decimal(text) for name, text in row.prices.items()}
        found.append(Prices(row.valid_from, row.currency, prices))
    return found


def costs_of(question: UsageQuestion) -> Costs:
    """By name of each line of the report, of all resources that have a price."""
    span = question.span
    lists = lists_between(price_lists(), span.start.date(), _last_day(span.end))
    currency = currency_of(lists)
    if not currency:
        return Costs()
    priced = {name for one in lists for name in one.prices}
    names = COLUMNS[question.by]
    rows: Any = rows_of(replace(question, resource="")).filter(resource__in=priced)
    sums = {
        f"part_{place}": Sum("used", filter=_in_force(lists, place)) for place in _places(lists)
    }
    by_name: defaultdict[str, Fraction] = defaultdict(Fraction)
    values: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(lists))
    for found in rows.order_by().values_list(*names, "resource").annotate(**sums):
        name = "/".join(found[: len(names)])
        resource = found[len(names)]
        for place, value in enumerate(found[len(names) + 1 :]):
            price = lists[place].prices.get(resource, Decimal())
            by_name[name] += cost_of(resource, value or 0, price)
            values[resource][place] += value or 0
    by_resource = tuple(_resource_cost(name, values[name], lists) for name in sorted(values))
    return Costs(currency, dict(by_name), by_resource)


def _places(lists: Sequence[Prices]) -> range:
    return range(len(lists))


def _last_day(end: datetime) -> date:
    """The first day that is not in the span, but for the present day of an hourly one."""
    if end.time() == time.min:
        return end.date()
    return date.fromordinal(end.date().toordinal() + 1)


def _in_force(lists: Sequence[Prices], place: int) -> Q:
    found = Q(at__gte=_midnight(lists[place].valid_from))
    if place + 1 < len(lists):
        found &= Q(at__lt=_midnight(lists[place + 1].valid_from))
    return found


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)


def _resource_cost(resource: str, values: Sequence[int], lists: Sequence[Prices]) -> ResourceCost:
    cost = Fraction()
    prices = set()
    for place, value in enumerate(values):
        price = lists[place].prices.get(resource, Decimal())
        cost += cost_of(resource, value, price)
        if value:
            prices.add(price)
    only = prices.pop() if len(prices) == 1 else None
    return ResourceCost(resource, sum(values), only, cost)
