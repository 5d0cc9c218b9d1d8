"""The figures of each queue at one moment of a session, as values with names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from scheduler.domain.nodes import Amounts
from scheduler.domain.resources import Resources
from scheduler.engine.decisions import QueueFigures
from scheduler.engine.session import Session
from scheduler.engine.state.holdings import asked_for, holdings_of
from scheduler.engine.state.queue_quotas import Quotas
from scheduler.engine.state.queue_specs import NO_LIMIT


def named_amounts(session: Session, values: Amounts, *, zeros: bool = False) -> Resources:
    """As a value with names: what is there, without `pods` unless queues are about it.

    No limit is left out.
    """
    return named_values(session, values.tolist(), zeros=zeros)


def named_values(session: Session, values: list[int], *, zeros: bool) -> Resources:
    """The same of plain numbers, one for each column."""
    named: dict[str, int] = {}
    for dim, name in session.queue_resources:
        value = values[dim]
        if (value or zeros) and value < NO_LIMIT:
            named[name] = value
    return Resources.in_order(named)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What was found out about podgroups that wait: the rows of those that can never run, and how
    much of which resource (by its column) the gangs of a queue wait for.
    """

    never: set[int] = field(default_factory=set)
    lacking: dict[tuple[int, int], int] = field(default_factory=dict)


class Figures(Mapping[str, QueueFigures]):
    """By queue, as things stand when this is made; put into values only for queues that are looked
    at.
    """

    def __init__(self, session: Session, waiting: Waiting | None = None) -> None:
        self._session = session
        self._rows = session.queue_tree.rows
        self._used: Amounts = np.stack(_matrices(session, waiting or Waiting()))
        self._made: dict[str, QueueFigures] = {}
        self._warnings = {row: tuple(found) for row, found in session.queue_warnings.items()}

    def changed_rows(self, before: Figures) -> set[int]:
        """Of the queues whose figures are not what they were then; both of the same queues,
        resources and policy.
        """
        changed = (self._numbers != before._numbers).any(axis=(0, 2))
        told = {
            row
            for row in self._warnings.keys() | before._warnings.keys()
            if self._warnings.get(row) != before._warnings.get(row)
        }
        return {*np.flatnonzero(changed).tolist(), *told}

    @cached_property
    def _numbers(self) -> Amounts:
        """Everything that its values are made of: figures by queues by the resources that queues
        are about.
        """
        session = self._session
        quotas = self._session.quotas
        limits = (
            [quotas.deserved, quotas.real_capability, quotas.nominal, quotas.guarantee]
            if quotas
            else []
        )
        dims = [dim for dim, _ in session.queue_resources]
        numbers: Amounts = np.minimum(np.stack([*self._used, *limits])[:, :, dims], NO_LIMIT)
        return numbers

    def is_comparable(self, before: Figures) -> bool:
        mine = self._session
        other = before._session
        same = (mine.policy, mine.queue_resources, self._rows) == (
            other.policy,
            other.queue_resources,
            before._rows,
        )
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
        session = self._session
        quotas = self._session.quotas
        matrices = zip(_USED, self._used[:, row].tolist(), strict=True)
        used: dict[str, Any] = {
            figure: named_values(session, values, zeros=figure in _WITH_ZEROS)
            for figure, values in matrices
        }
        if quotas is None:
            return QueueFigures(name, **used)
        return QueueFigures(
            name,
            **used,
            deserved=named_amounts(session, quotas.deserved[row], zeros=True),
            real_capability=named_amounts(session, quotas.real_capability[row], zeros=True),
            nominal_share=named_amounts(session, quotas.nominal[row], zeros=True),
            guarantee=named_amounts(session, quotas.guarantee[row]),
            share=quotas.share_of(row, self._allocated(row)),
            overused=self._is_overused(quotas, row),
            warnings=self._warnings.get(row, ()),
        )

    def _allocated(self, row: int) -> list[int]:
        allocated: list[int] = self._used[0][row].tolist()
        return allocated

    def _is_overused(self, quotas: Quotas, row: int) -> bool:
        """Under proportion it has all it deserves and must not grow; under capacity it has more
        than that of something.
        """
        allocated = self._allocated(row)
        if self._session.lends_idle_room:
            return quotas.has_all(row, allocated)
        return quotas.share_of(row, allocated) > 1


def differing(now: Mapping[str, QueueFigures], before: Mapping[str, QueueFigures]) -> list[str]:
    """The queues whose figures are not what they were before.

    Few change in a session: they are found before any is put into values.
    """
    if isinstance(now, Figures) and isinstance(before, Figures) and now.is_comparable(before):
        rows = now.changed_rows(before)
        return [name for row, name in enumerate(now) if row in rows]
    return [name for name in now if before.get(name) != now[name]]


_USED = (
    "allocated",
    "request",
    "inqueue",
    "elastic",
    "held",
    "in_use",
    "leaving",
    "promised",
    "asked",
    "lacking",
)
_WITH_ZEROS = frozenset({"allocated", "request", "in_use"})
"""The figures that name also resources of which there is nothing."""


def _matrices(session: Session, waiting: Waiting) -> list[Amounts]:
    """In the order of `_USED`."""
    usage = session.queue_usage
    holdings = holdings_of(session)
    asked = asked_for(session, waiting.never)
    lacking = np.zeros_like(usage.request)
    for (row, dim), amount in waiting.lacking.items():
        lacking[row, dim] = amount
    return [
        usage.allocated,
        usage.request,
        usage.inqueue,
        usage.elastic,
        usage.held,
        holdings.in_use,
        holdings.leaving,
        holdings.promised,
        asked,
        lacking,
    ]
