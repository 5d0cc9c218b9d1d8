"""Names that a reader may not learn: queues out of their sight, and change sets about those.

Some texts are written once for all readers, such as why a planned change cannot begin. They are
told only to those who may know everything that they name.
"""

from __future__ import annotations

import re
from functools import cached_property

from scheduler.domain.access import Access
from scheduler.models import ChangeSet, Queue
from scheduler.selectors.change_sets.listing import visible_sets

_WORD = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
"""As names of queues are written."""


class HiddenNames:
    """Asked of the database when the first text is looked at, and once."""

    def __init__(self, access: Access, reader: str) -> None:
        self._access = access
        self._reader = reader

    def occur_in(self, text: str) -> bool:
        if self._access.visible is None or not text:
            return False
        words = _WORD.findall(text.lower())
        if not self._queues.isdisjoint(words):
            return True
        return any(name in text for name in self._change_sets)

    @cached_property
    def _queues(self) -> frozenset[str]:
        names = Queue.with_deleted.order_by().values_list("name", flat=True)
        return frozenset(names) - (self._access.visible or frozenset()) - self._access.above

    @cached_property
    def _change_sets(self) -> frozenset[str]:
        seen = visible_sets(self._access, self._reader)
        others = ChangeSet.objects.exclude(pk__in=seen.values("pk"))
        known = set(seen.values_list("name", flat=True))
        return frozenset(others.values_list("name", flat=True)) - known
