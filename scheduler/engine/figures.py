"""The figures of each queue at one moment of a session, as values with names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from scheduler.domain.nodes import Amounts
from scheduler.domain.resources import Resources
from scheduler.engine.decisions import QueueFigures
from scheduler.engine.quotas import Quotas
from scheduler.engine.session import Session
from scheduler.engine.specs import NO_LIMIT


def amounts(session: Session, values: Amounts, *, zeros: bool = False) -> Resources:
    """As a value with names: what is there, without `pods` unless queues are about it. No limit is left out."""
    return _named(session, values.tolist(), zeros)


def _named(session: Session, values: list[int], zeros: bool) -> Resources:
    names = session.queue_resources
    return Resources({name: value for dim, name in names if ((value := values[dim]) or zeros) and value < NO_LIMIT})


class Figures(Mapping[str, QueueFigures]):
    """By queue, as things stand when this is made; put into values only for queues that are looked at."""

    def __init__(self, session: Session) -> None:
        book = session.book
        self._session, self._rows = session, session.forest.rows
        self._used = [matrix.tolist() for matrix in (book.allocated, book.request, book.inqueue, book.elastic, book.held)]
        self._made: dict[str, QueueFigures] = {}
        self._warnings = {row: tuple(found) for row, found in session.queue_warnings.items()}

    def changed_rows(self, before: Figures) -> set[int]:
        """Of the queues whose figures are not what they were then; both of the same queues, resources and policy."""
        changed = (self._numbers() != before._numbers()).any(axis=(0, 2))
        told = {row for row in self._warnings.keys() | before._warnings.keys() if self._warnings.get(row) != before._warnings.get(row)}
        return {*np.flatnonzero(changed).tolist(), *told}

    def _numbers(self) -> Amounts:
        """Everything that its values are made of: figures by queues by the resources that queues are about."""
        session, quotas = self._session, self._session.quotas
        limits = [quotas.deserved, quotas.real_capability, quotas.nominal, quotas.guarantee] if quotas else []
        dims = [dim for dim, _ in session.queue_resources]
        numbers: Amounts = np.minimum(np.stack([*map(np.array, self._used), *limits])[:, :, dims], NO_LIMIT)
        return numbers

    def is_comparable(self, before: Figures) -> bool:
        mine, other = self._session, before._session
        same = (mine.policy, mine.queue_resources, self._rows) == (other.policy, other.queue_resources, before._rows)
        return same and (mine.quotas is None) == (other.quotas is None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, name: str) -> QueueFigures:
        if name not in self._made:
            self._made[name] = self._make(name, self._rows[name])
        return self._made[name]

    def _make(self, name: str, row: int) -> QueueFigures:
        session, quotas = self._session, self._session.quotas
        allocated, request, inqueue, elastic, held = (
            _named(session, matrix[row], zeros) for matrix, zeros in zip(self._used, _ZEROS, strict=True)
        )
        if quotas is None:
            return QueueFigures(name, allocated=allocated, request=request, inqueue=inqueue, elastic=elastic, held=held)
        return QueueFigures(
            name,
            deserved=amounts(session, quotas.deserved[row], zeros=True),
            allocated=allocated,
            request=request,
            real_capability=amounts(session, quotas.real_capability[row], zeros=True),
            nominal_share=amounts(session, quotas.nominal[row], zeros=True),
            guarantee=amounts(session, quotas.guarantee[row]),
            inqueue=inqueue,
            elastic=elastic,
            held=held,
            share=quotas.share_of(row, self._used[0][row]),
            overused=self._is_overused(quotas, row),
            warnings=self._warnings.get(row, ()),
        )

    def _is_overused(self, quotas: Quotas, row: int) -> bool:
        """Under proportion it has all it deserves and must not grow; under capacity it has more than that of something."""
        allocated = self._used[0][row]
        return quotas.has_all(row, allocated) if self._session.lends_idle_room else quotas.share_of(row, allocated) > 1


def differing(now: Mapping[str, QueueFigures], before: Mapping[str, QueueFigures]) -> list[str]:
    """The queues whose figures are not what they were before. Few change in a session: they are found before any is put into values."""
    if isinstance(now, Figures) and isinstance(before, Figures) and now.is_comparable(before):
        rows = now.changed_rows(before)
        return [name for row, name in enumerate(now) if row in rows]
    return [name for name in now if before.get(name) != now[name]]


_ZEROS = (True, True, False, False, False)
"""Whether allocated, request, inqueue, elastic and held name resources of which there is nothing."""
