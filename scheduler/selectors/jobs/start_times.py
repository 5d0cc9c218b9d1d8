"""When waiting gangs are expected to start, and how good earlier forecasts were."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any, Final

from django.db import DEFAULT_DB_ALIAS
from django.db.models import QuerySet
from django.utils import timezone

from scheduler.domain.gang_sizes import SIZE_WORDS
from scheduler.models import ExpectedStart, LookAhead, PodGroup, StartForecast
from scheduler.models.prepared import Prepared, condition_with_slot
from scheduler.selectors.jobs.gangs import WAITING
from scheduler.selectors.queues.objects import names_in_records
from scheduler.selectors.queues.reused_names import records_of
from scheduler.selectors.sessions.snapshot_rows import ids_parameter, one_of_ids

WINDOWS: Final[Mapping[str, timedelta]] = {
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
DEFAULT_WINDOW: Final = "7d"
FEWEST: Final = 20
"""Forecasts with a known answer. Of fewer no figure is shown."""
MOST: Final = 50_000


def expected_starts(podgroups: Iterable[int]) -> dict[int, ExpectedStart]:
    """By the number of the podgroup; those that nobody has looked at yet are missing."""
    numbers = list(podgroups)
    if not numbers:
        return {}
    found: dict[int, ExpectedStart] = {}
    for row in _EXPECTED.rows(ids=ids_parameter(numbers)):
        start = ExpectedStart.from_db(DEFAULT_DB_ALIAS, _columns_of_starts(), row)
        found[start.pk] = start
    return found


def _columns_of_starts() -> list[str]:
    return [field.attname for field in ExpectedStart._meta.concrete_fields]


def _starts_by_ids() -> QuerySet[Any, Any]:
    chosen = condition_with_slot(one_of_ids("podgroup_number"), "ids")
    return ExpectedStart.objects.filter(chosen).order_by().values_list(*_columns_of_starts())


_EXPECTED = Prepared(_starts_by_ids, keep_plan=True)


def starts_of_waiting(groups: Iterable[PodGroup | None]) -> dict[int, ExpectedStart]:
    """The same of those of these podgroups that wait: what has started needs no forecast."""
    waiting = [group.pk for group in groups if group is not None and group.phase in WAITING]
    return expected_starts(waiting)


def last_look() -> LookAhead | None:
    return LookAhead.objects.filter(pk=1).first()


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Of `known` forecasts whose answer is known, so many `held`.

    Errors and widths are medians in seconds; None where too few are known.
    """

    queue: str
    size: str
    known: int
    held: int
    error: float | None
    width: float | None

    @property
    def coverage(self) -> float | None:
        if self.known < FEWEST:
            return None
        return self.held / self.known


@dataclass(frozen=True, slots=True)
class Accuracies:
    """`rows` by queue and size, and `whole` of all of them together."""

    whole: Accuracy
    rows: tuple[Accuracy, ...]


def accuracies_for(visible: Collection[str] | None, window: str, queue: str = "") -> Accuracies:
    """Of forecasts that had a range, made in the window. `visible` are the queues that the reader
    may see, None for all. With a queue: of it and of those below it.
    """
    now = timezone.now()
    answers: defaultdict[tuple[str, str], list[_Answer]] = defaultdict(list)
    for row in _rows(visible, now - WINDOWS[window], queue).values_list(*_COLUMNS)[:MOST]:
        answer = _answer(now, *row[2:])
        if answer is not None:
            answers[row[0], row[1]].append(answer)
    rows = [_accuracy(*place, found) for place, found in answers.items()]
    rows.sort(key=lambda row: (row.queue, _ORDER[row.size]))
    together = [answer for found in answers.values() for answer in found]
    return Accuracies(_accuracy("", "", together), tuple(rows))


_ORDER = {size: number for number, size in enumerate(SIZE_WORDS)}
_COLUMNS = (
    "queue_name",
    "size",
    "made_at",
    "median",
    "earliest",
    "latest",
    "actual",
)


def _rows(visible: Collection[str] | None, since: datetime, queue: str) -> QuerySet[StartForecast]:
    found = StartForecast.objects.filter(made_at__gte=since, earliest__isnull=False)
    found = found.exclude(ended_at__isnull=False, actual=None)  # gone without a start
    if visible is not None:
        found = found.filter(records_of(visible, "made_at"))
    if queue:
        found = found.filter(queue_name__in=names_in_records(queue))
    return found.order_by("-pk")


@dataclass(frozen=True, slots=True)
class _Answer:
    held: bool
    error: float
    width: float


def _answer(
    now: datetime, made_at: datetime, middle: float, earliest: float, latest: float, actual: Any
) -> _Answer | None:
    """None while the gang may still start in its range. One that is late has missed it already."""
    if actual is None:
        actual = (now - made_at).total_seconds()
        if actual <= latest:
            return None
    # The range is shown in whole seconds.
    held = earliest - 1.0 <= actual <= latest + 1.0
    return _Answer(held, abs(actual - middle), latest - earliest)


def _accuracy(queue: str, size: str, answers: Sequence[_Answer]) -> Accuracy:
    held = sum(answer.held for answer in answers)
    if len(answers) < FEWEST:
        return Accuracy(queue, size, len(answers), held, None, None)
    error = median(answer.error for answer in answers)
    width = median(answer.width for answer in answers)
    return Accuracy(queue, size, len(answers), held, error, width)
