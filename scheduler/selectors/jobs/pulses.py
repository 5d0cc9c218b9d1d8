"""Whose jobs changed lately.

Each queue has a number. It becomes another one whenever one of its gangs or pods changes.

Read from the change log, so it costs what has changed and not what there is. Who may see one queue
learns of that queue alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Max

from scheduler.models import Change, Queue
from scheduler.models.bulk import fetch

_AGAIN = (
    500  # entries read once more: on PostgreSQL a lower number may be committed after a higher one
)
_MOST = 20_000  # beyond so many new entries every queue counts as changed

_BY_QUEUE = """
    SELECT q.name, max(c.id)
    FROM scheduler_change c
    LEFT JOIN scheduler_pod p ON c.kind = 'pod' AND p.id = c.row_id
    LEFT JOIN scheduler_podgroup g ON g.id = CASE WHEN c.kind = 'podgroup' THEN c.row_id ELSE p.podgroup_id END
    LEFT JOIN scheduler_queue q ON q.id = g.queue_id
    WHERE c.id > %s AND c.kind IN ('pod', 'podgroup')
    GROUP BY q.name
"""


class Pulses:
    """Remembers how far it has read. One reader each: it is not made for several threads."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._seen: int | None = None

    def read(self) -> Mapping[str, int]:
        newest = Change.objects.aggregate(newest=Max("pk"))["newest"] or 0
        if self._seen is None or not self._seen <= newest <= self._seen + _MOST:
            self._numbers = dict.fromkeys(Queue.objects.values_list("name", flat=True), newest)
        else:
            self._take_over(dict(fetch(_BY_QUEUE, [self._seen - _AGAIN])))
        self._seen = newest
        return dict(self._numbers)

    def _take_over(self, found: dict[str | None, int]) -> None:
        """Of what was deleted nobody knows the queue any more: then all may have changed."""
        deleted = found.pop(None, 0)
        known = {}
        for name, number in self._numbers.items():
            known[name] = max(number, deleted)
        self._numbers = known | {
            str(name): max(number, known.get(str(name), 0)) for name, number in found.items()
        }
