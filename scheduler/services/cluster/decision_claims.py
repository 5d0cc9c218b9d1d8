"""Decisions that are to be carried out, claimed by conditional update.

So two dispatchers never do the same one at the same time. One that dies leaves claims behind, which
end after a while. Times are those of the database: the clocks of two dispatchers may differ. The
number of attempts grows with each claim, so it tells whether a claim is still the last one.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q

from scheduler.models import Decision
from scheduler.models.bulk import as_parameter, execute, values_table
from scheduler.models.clock import database_now

CLAIM_SECONDS = 30
LONGEST_PAUSE_SECONDS = 300
"""Nothing is put off for longer."""


@transaction.atomic
def claim_decisions(most: int) -> list[Decision]:
    """The oldest that nobody has and that are not put off, with their pods and nodes."""
    now = database_now()
    found = (
        Decision.objects.filter(_is_free(now), _is_due(now), done_at=None)
        .order_by("id")
        .values_list("pk", flat=True)[:most]
    )
    claimed = list(found.select_for_update(skip_locked=True))
    if not claimed:
        return []
    Decision.objects.filter(pk__in=claimed).update(claimed_at=now, attempts=F("attempts") + 1)
    return list(Decision.objects.filter(pk__in=claimed).select_related("pod__node").order_by("id"))


def _is_free(now: datetime) -> Q:
    patience = timedelta(seconds=CLAIM_SECONDS)
    # A claim of the future was made before the clock was put back: nobody knows how old it is.
    left_behind = Q(claimed_at__lt=now - patience) | Q(claimed_at__gt=now + patience)
    return Q(claimed_at=None) | left_behind


def _is_due(now: datetime) -> Q:
    """The same goes for a pause that is longer than any."""
    too_long = now + timedelta(seconds=LONGEST_PAUSE_SECONDS)
    return Q(retry_at=None) | Q(retry_at__lte=now) | Q(retry_at__gt=too_long)


def renew_claims(decisions: Iterable[Decision]) -> None:
    """They are still being carried out."""
    ids = [decision.pk for decision in decisions]
    if ids:
        Decision.objects.filter(pk__in=ids, done_at=None).update(claimed_at=database_now())


def give_back(decisions: Iterable[Decision]) -> None:
    """They were not begun: whoever claims them next begins where this attempt did."""
    rows = _as_claimed(decisions)
    if rows:
        execute(
            "UPDATE scheduler_decision SET claimed_at = NULL, attempts = d.attempts - 1 "
            f"FROM {values_table('d', _CLAIM)} WHERE scheduler_decision.id = d.id "
            "AND scheduler_decision.attempts = d.attempts",
            [as_parameter(rows)],
        )


def still_claimed(decisions: Iterable[Decision]) -> set[int]:
    """The numbers of those that nobody else has claimed since.

    Nobody can before the transaction ends.
    """
    attempts = {decision.pk: decision.attempts for decision in decisions}
    rows = Decision.objects.filter(pk__in=list(attempts)).order_by("id").select_for_update()
    found = set()
    for pk, number in rows.values_list("pk", "attempts"):
        if number == attempts[pk]:
            found.add(pk)
    return found


_CLAIM = {"id": "bigint", "attempts": "integer"}


def _as_claimed(decisions: Iterable[Decision]) -> list[dict[str, int]]:
    return [{"id": decision.pk, "attempts": decision.attempts} for decision in decisions]
