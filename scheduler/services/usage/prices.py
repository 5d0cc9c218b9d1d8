"""Price lists: set and deleted by admins of the cluster. Months that are over keep their prices."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from django.db import transaction
from django.utils import timezone

from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.prices import LONGEST_CURRENCY, BadPrice, read_price, written
from scheduler.models import PriceList
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import Actor
from scheduler.services.records import audit

MOST_PRICES = 100
_LONGEST_RESOURCE = 317
_DOING = "set what usage costs"


@transaction.atomic
def set_prices(
    valid_from: str, currency: object, prices: object, *, by: Actor, dry_run: bool = False
) -> PriceList:
    """The list of that day, new or instead of the one there is. Raises `Rejected`, `Forbidden`."""
    access.require_cluster(by, doing=_DOING)
    day = read_day(valid_from)
    name = _read_currency(currency)
    texts = _read_prices(prices)
    row = PriceList.objects.select_for_update().filter(valid_from=day).first()
    before = None if row is None else describe(row)
    row = row or PriceList(valid_from=day)
    row.currency, row.prices = name, texts
    if before != describe(row):
        _refuse_past(day)
        row.save()
        audit.record(
            by, "SetPrices", "PriceList", day.isoformat(), before=before, after=describe(row)
        )
    transaction.set_rollback(dry_run)
    return row


@transaction.atomic
def delete_prices(valid_from: str, *, by: Actor, dry_run: bool = False) -> None:
    access.require_cluster(by, doing=_DOING)
    rows = {row.valid_from.isoformat(): row for row in PriceList.objects.select_for_update()}
    row = rows.get(valid_from.strip())
    if row is None:
        message = f"There is no price list from “{valid_from[:20]}” on."
        fix = f"one of {', '.join(rows)}" if rows else "there are none"
        violation = Violation("unknown_price_list", "", "validFrom", message, fix)
        raise Rejected([violation], by_state=True)
    day = row.valid_from
    _refuse_past(day)
    audit.record(by, "DeletePrices", "PriceList", day.isoformat(), before=describe(row))
    row.delete()
    transaction.set_rollback(dry_run)


def describe(row: PriceList) -> dict[str, Any]:
    return {"currency": row.currency, "prices": dict(row.prices)}


def read_day(text: str) -> date:
    try:
        day = date.fromisoformat(str(text).strip())
    except ValueError:
        day = date.min
    if not 1970 <= day.year <= 9000:
        message = f"“{str(text)[:20]}” is not a day."
        raise _refused("invalid_value", "validFrom", message, "write it as 2026-11-01")
    return day


def _refuse_past(day: date) -> None:
    """Statements of months that are over do not change. The first list may begin in the past."""
    this_month = timezone.now().date().replace(day=1)
    if day >= this_month or not PriceList.objects.filter(valid_from__lt=this_month).exists():
        return
    message = f"Prices from {day} on would change statements of months that are over."
    fix = f"choose {this_month} or a later day"
    raise _refused("prices_are_fixed", "validFrom", message, fix)


def _read_currency(given: object) -> str:
    text = given.strip() if isinstance(given, str) else ""
    if not text or len(text) > LONGEST_CURRENCY or not text.isprintable():
        message = f"The currency is a text of 1 to {LONGEST_CURRENCY} characters."
        raise _refused("invalid_value", "currency", message, "write EUR, say")
    return text


def _read_prices(given: object) -> dict[str, str]:
    if not isinstance(given, Mapping) or not given or len(given) > MOST_PRICES:
        message = f"Prices are 1 to {MOST_PRICES} numbers by resource."
        raise _refused("invalid_value", "prices", message, "write cpu: 0.04, say")
    found = {}
    for resource, price in given.items():
        name = str(resource).strip()
        if not name or len(name) > _LONGEST_RESOURCE or not name.isprintable():
            raise _refused("invalid_value", "prices", "A resource has no name.", "name it")
        try:
            found[name] = written(read_price(name, price))
        except BadPrice as problem:
            message = str(problem)
            raise _refused("invalid_value", problem.field, message, "write 2.5, say") from None
    return dict(sorted(found.items()))


def _refused(rule: str, field: str, message: str, fix: str) -> Rejected:
    return Rejected([Violation(rule, "", f"spec.{field}", message, fix)])
