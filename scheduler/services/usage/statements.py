"""Monthly statements: sent to the owners of queues, by hand or at the turn of the month."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from django.db import transaction
from django.utils import timezone

from scheduler.admission.rules.known_queues import unknown_queue
from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.access import OutOfSight, Permission, Role
from scheduler.domain.notices import Note, NoticeKind
from scheduler.domain.prices import rounded
from scheduler.domain.usage_spans import UsageSpan, month_span
from scheduler.models import Grant, PriceList, Queue, SentStatements, UsageBook, UsageRow
from scheduler.selectors.accounts.access import effective_grants
from scheduler.selectors.usage.costs import Costs, costs_of
from scheduler.selectors.usage.report import UsageQuestion
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import Actor
from scheduler.services.notices.publish import publish
from scheduler.services.records import audit

LATE: Final = timedelta(hours=1)
"""So long after the month, what ended in it has been heard of."""


@transaction.atomic
def send_statement(queue: str, month: str, *, by: Actor, dry_run: bool = False) -> list[str]:
    """To whom it was sent. Raises `BadSpan`, `Forbidden` and `Rejected`."""
    try:
        access.require(by, Permission.ADMINISTER, queue, "send its statement")
        Queue.objects.get(name=queue)
    except (OutOfSight, Queue.DoesNotExist):
        raise Rejected([unknown_queue(queue)]) from None
    span = month_span(month)
    recipients = owners_of_queue(queue)
    if not recipients:
        raise Rejected([_nobody_to_send_to(queue)], by_state=True)
    audit.record(
        by, "SendStatement", "Queue", queue, queue=queue, after={"month": month, "to": recipients}
    )
    key = f"Statement:{queue}:{month}:{timezone.now().isoformat()}"
    publish([_note(queue, span, month, recipients, key)])
    transaction.set_rollback(dry_run)
    return recipients


def _nobody_to_send_to(queue: str) -> Violation:
    return Violation(
        "nobody_to_send_to",
        queue,
        "spec.queue",
        f"There is nobody to send it to: no role makes anybody admin of {queue}.",
        f"give somebody the role admin of {queue}",
    )


def send_due_statements(now: datetime) -> int:
    """At the turn of the month, once, where there are prices. How many were sent."""
    month, span = _last_month(now)
    if now < span.end + LATE or SentStatements.objects.filter(month=month).exists():
        return 0
    if not PriceList.objects.filter(valid_from__lt=span.end.date()).exists():
        return 0
    with transaction.atomic():
        book = UsageBook.objects.select_for_update().filter(pk=1).first()
        is_complete = book is not None and (book.complete_until or 0) >= span.end.timestamp()
        if not is_complete or not _note_sent(month, now):
            return 0
        names = _queues_with_usage(span)
        publish(
            [_note(name, span, month, owners_of_queue(name), _key(name, month)) for name in names]
        )
    return len(names)


def _key(queue: str, month: str) -> str:
    return f"Statement:{queue}:{month}"


def _note_sent(month: str, now: datetime) -> bool:
    _, created = SentStatements.objects.get_or_create(month=month, defaults={"sent_at": now})
    return created


def _last_month(now: datetime) -> tuple[str, UsageSpan]:
    first = now.astimezone(UTC).date().replace(day=1)
    month = (first - timedelta(days=1)).strftime("%Y-%m")
    return month, month_span(month)


def _queues_with_usage(span: UsageSpan) -> list[str]:
    """Those that exist: a deleted queue has nobody to be told."""
    used = UsageRow.objects.filter(
        grain=UsageRow.QUEUE,
        seconds=UsageRow.DAY,
        at__gte=span.start,
        at__lt=span.end,
        used__gt=0,
    )
    names = used.order_by().values_list("queue_name", flat=True).distinct()
    return list(
        Queue.objects.filter(name__in=names).order_by("name").values_list("name", flat=True)
    )


def owners_of_queue(queue: str) -> list[str]:
    """Who administers it: its own admins, or where it has none those of the nearest queue above."""
    own: set[str] = set()
    above: set[str] = set()
    for grant, inherited in effective_grants(queue):
        if grant.role == Role.ADMIN.value:
            (above if inherited else own).update(_people(grant))
    return sorted(own or above)


def _people(grant: Grant) -> Iterable[str]:
    if grant.user is not None:
        return [grant.user.get_username()]
    assert grant.group is not None
    return [user.get_username() for user in grant.group.user_set.all()]


def _note(queue: str, span: UsageSpan, month: str, recipients: list[str], key: str) -> Note:
    costs = costs_of(UsageQuestion(span, "", queue=queue))
    return Note(
        NoticeKind.STATEMENT,
        key,
        f"Statement of {queue} for {month}",
        _words(queue, month, costs),
        queue=queue,
        by_default=tuple(recipients),
        link=f"/insights/usage/statement/?{urlencode({'queue': queue, 'month': month})}",
    )


def _words(queue: str, month: str, costs: Costs) -> str:
    if not costs.currency:
        return f"What {queue} used in {month}. There are no prices for it."
    return f"What {queue} used in {month} costs {rounded(costs.total):,} {costs.currency}."
