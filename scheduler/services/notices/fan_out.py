"""Happenings into inboxes: for each, the people whose rules ask for it, or who are told of it by
default, and who may see it.

Happenings are taken and notices written in one transaction, so that a worker that dies has told
nobody, or everybody once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection, transaction

from scheduler.domain.notices import JOB_KINDS
from scheduler.models import Happening, Notice, NoticeRule
from scheduler.selectors.accounts.access import Places, places_of_queues, sights_of
from scheduler.selectors.notices.rules import active_rules, default_recipients
from scheduler.services.notices.gathering import gather

STEP: Final = 500
"""Happenings in one transaction."""
_COLUMNS: Final = ("kind", "title", "message", "queue_id", "namespace", "name", "path", "at", "key")


def has_happenings() -> bool:
    return Happening.objects.exists()


def write_notices() -> int:
    """How many notices were written."""
    written = 0
    while True:
        with transaction.atomic():
            happenings = _take()
            written += _tell(happenings)
            Happening.objects.filter(pk__in=[row.pk for row in happenings]).delete()
        if len(happenings) < STEP:
            return written


def _take() -> Sequence[Happening]:
    rows = Happening.objects.order_by("pk")
    if connection.vendor == "postgresql":
        rows = rows.select_for_update(skip_locked=True, of=("self",))
    return list(rows[:STEP])


def _tell(happenings: Sequence[Happening]) -> int:
    if not happenings:
        return 0
    rules = active_rules({row.kind for row in happenings}).select_related("user")
    names = {name for row in happenings for name in row.by_default}
    matching = Matching(rules.prefetch_related("channels"), default_recipients(names))
    notices: dict[tuple[Any, str], Notice] = {}
    channels: dict[Any, set[int]] = {}
    for row in happenings:
        for rule in matching.rules_for(row):
            notice = notices.setdefault((rule.user_id, row.key), _notice(rule.user_id, row))
            channels.setdefault(notice.uid, set()).update(
                channel.pk for channel in rule.channels.all()
            )
        for user in matching.default_recipients(row):
            notices.setdefault((user.pk, row.key), _notice(user.pk, row))
    Notice.objects.bulk_create(notices.values(), ignore_conflicts=True, batch_size=500)
    gather(channels)
    return len(notices)


def _notice(user: Any, row: Happening) -> Notice:
    return Notice(user_id=user, **{name: getattr(row, name) for name in _COLUMNS})


@dataclass(frozen=True, slots=True)
class _Reader:
    """None sees every queue."""

    sight: frozenset[str] | None

    def sees(self, place: str) -> bool:
        return self.sight is None or (bool(place) and place in self.sight)


class Matching:
    """The rules of many people, who is told without one, and what each of them may see."""

    def __init__(
        self, rules: Iterable[NoticeRule], by_default: Mapping[str, Any] | None = None
    ) -> None:
        self._by_kind: dict[str, list[NoticeRule]] = {}
        self._by_default = by_default or {}
        users = {user.pk: user for user in self._by_default.values()}
        for rule in rules:
            self._by_kind.setdefault(rule.kind, []).append(rule)
            users[rule.user_id] = rule.user
        self._readers: Mapping[Any, _Reader] = {
            pk: _Reader(sight) for pk, sight in sights_of(users.values()).items()
        }
        self._places = places_of_queues() if users else Places()
        self._place_of = {number: place for place, number in self._places.numbers.items()}

    def rules_for(self, row: Happening) -> Iterable[NoticeRule]:
        place = self._place_of.get(row.queue_id or 0, "")
        for rule in self._by_kind.get(row.kind, []):
            if self._is_meant(rule, row, place) and self._readers[rule.user_id].sees(place):
                yield rule

    def default_recipients(self, row: Happening) -> Iterable[Any]:
        place = self._place_of.get(row.queue_id or 0, "")
        for name in row.by_default:
            user = self._by_default.get(name)
            if user is not None and self._readers[user.pk].sees(place):
                yield user

    def _is_meant(self, rule: NoticeRule, row: Happening, place: str) -> bool:
        name = rule.user.get_username()
        if row.users and name not in row.users:
            return False
        if rule.queue_id is not None:
            return self._is_below(place, self._place_of.get(rule.queue_id, ""))
        return row.kind not in JOB_KINDS or row.owner == name

    def _is_below(self, place: str, above: str) -> bool:
        """Whether it is that queue or below it."""
        seen: set[str] = set()
        while place and place not in seen:
            if place == above:
                return True
            seen.add(place)
            place = self._places.parents.get(place, "")
        return False
