"""What usage costs: prices per resource and hour, each list from a day on. Sums are exact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from fractions import Fraction
from typing import Final

from scheduler.domain.resources import is_bytes, units_per_one
from scheduler.domain.usage import HOUR, unit_of

LONGEST_CURRENCY: Final = 16
HIGHEST: Final = Decimal(10**9)
_CENT: Final = Decimal("0.01")
_FINEST: Final = 6


@dataclass(frozen=True, slots=True)
class Prices:
    """From this day (UTC) on, until the next list. A resource without a price costs nothing."""

    valid_from: date
    currency: str
    prices: Mapping[str, Decimal]


class BadPrice(ValueError):
    """`field` is the place in a manifest's spec."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def read_price(resource: str, given: object) -> Decimal:
    """A number that is not negative, with at most six digits behind the point."""
    try:
        price = Decimal(str(given).strip())
    except InvalidOperation:
        price = Decimal("NaN")
    if isinstance(given, bool) or not price.is_finite() or not 0 <= price <= HIGHEST:
        message = f"The price of {resource[:80]} must be a number from 0 to {HIGHEST}."
        raise BadPrice(f"prices.{resource}", message)
    exponent = price.normalize().as_tuple().exponent
    if isinstance(exponent, int) and -exponent > _FINEST:
        message = f"The price of {resource[:80]} has more than {_FINEST} digits behind the point."
        raise BadPrice(f"prices.{resource}", message)
    return price


def written(price: Decimal) -> str:
    """As people write it: "2.5", not "2.50" or "25E-1"."""
    return f"{price.normalize():f}"


def lists_between(lists: Iterable[Prices], start: date, end: date) -> list[Prices]:
    """Those that count on at least one day from `start` up to `end`, in their order."""
    ordered = sorted(lists, key=lambda one: one.valid_from)
    found = []
    for place, one in enumerate(ordered):
        later = ordered[place + 1].valid_from if place + 1 < len(ordered) else end
        if one.valid_from < end and later > start:
            found.append(one)
    return found


def cost_of(resource: str, value: int, price: Decimal) -> Fraction:
    """Of units × seconds, exact. Bytes are priced by the Gi-hour."""
    per_one = 2**30 if is_bytes(resource) else units_per_one(resource)
    return Fraction(value * unit_of(resource), per_one * HOUR) * Fraction(price)


def rounded(cost: Fraction) -> Decimal:
    """In hundredths; a half goes to the even one, so that many sums are not too high."""
    exact = Decimal(cost.numerator) / Decimal(cost.denominator)
    return exact.quantize(_CENT, ROUND_HALF_EVEN)


def currency_of(lists: Sequence[Prices]) -> str:
    """Of all of them, "" where they differ: such costs cannot be added."""
    names = {one.currency for one in lists}
    if len(names) == 1:
        return names.pop()
    return ""
