"""What planned changes will find, and whether they can begin and end together.

The objects are followed through every begin and end within a horizon. Each combination of plans
that are in force at the same time is judged once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from scheduler.domain.calendar import Turn
from scheduler.domain.change_sets import (
    ChangeItem,
    Crossing,
    Manifest,
    crossing_of,
    edits_between,
    merged_wish,
)

Key = tuple[str, str]
Objects = Mapping[Key, Manifest]
Judge = Callable[[tuple[ChangeItem, ...]], tuple[str, ...]]
"""What stands against these changes of the objects as they are now, in words."""
MOST_COMBINATIONS: Final = 200


def settled(item: ChangeItem, now: Manifest | None) -> ChangeItem | Crossing:
    """The item as it can be applied to the object as it is: its own fields, and no others.

    A crossing where one of its own fields is not what it began with. An object that is to be made
    must not be there, and one that is to go must be as it was.
    """
    if item.base is None or item.wanted is None or now is None:
        return crossing_of(item, now) or item
    theirs = {edit.field for edit in edits_between(item.base, now)}
    mine = {edit.field for edit in item.edits}
    if mine & theirs:
        return Crossing(item, now, only_own=True)
    return replace(item, base=now, wanted=merged_wish(item, now))


@dataclass(frozen=True, slots=True)
class Settled:
    items: tuple[ChangeItem, ...] = ()
    crossings: tuple[Crossing, ...] = ()


def settle_all(items: Iterable[ChangeItem], now: Objects) -> Settled:
    found = []
    crossings = []
    for item in items:
        result = settled(item, now.get(item.key))
        if isinstance(result, Crossing):
            crossings.append(result)
        else:
            found.append(result)
    return Settled(tuple(found), tuple(crossings))


@dataclass(frozen=True, slots=True)
class Booking:
    """A plan: what it changes, and when. `held` is what it has applied, until `held_until`."""

    plan: int
    items: tuple[ChangeItem, ...]
    turns: tuple[Turn, ...] = ()
    held: tuple[ChangeItem, ...] = ()
    held_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """What stands against a begin or an end."""

    plan: int
    number: int
    begins: bool
    at: datetime
    others: frozenset[int]
    """Plans that are in force then."""
    messages: tuple[str, ...]

    @property
    def key(self) -> tuple[int, int, bool]:
        return self.plan, self.number, self.begins


@dataclass(frozen=True, slots=True)
class _Step:
    at: datetime
    begins: bool
    plan: int
    number: int

    @property
    def order(self) -> tuple[datetime, bool, int]:
        """What ends at a moment ends before others begin."""
        return self.at, self.begins, self.plan


_HELD = -1


def look_ahead(bookings: Sequence[Booking], now: Objects, judge: Judge) -> tuple[Trouble, ...]:
    """The first trouble of every plan, in the order of time."""
    course = _Course(bookings, now, judge)
    for step in _steps(bookings):
        course.take(step)
    return tuple(course.troubles.values())


def objects_at(bookings: Sequence[Booking], now: Objects, moment: datetime) -> dict[Key, Manifest]:
    """The objects as all begins and ends up to a moment leave them, where nothing crosses."""
    course = _Course(bookings, now, lambda _items: ())
    for step in _steps(bookings):
        if step.at <= moment:
            course.take(step)
    return course.world


def difference(now: Objects, then: Objects) -> tuple[ChangeItem, ...]:
    items = []
    for kind, name in {**now, **then}:
        item = ChangeItem(kind, name, now.get((kind, name)), then.get((kind, name)))
        if item.base != item.wanted:
            items.append(item)
    return tuple(items)


def _steps(bookings: Sequence[Booking]) -> list[_Step]:
    steps = []
    for booking in bookings:
        if booking.held_until is not None:
            steps.append(_Step(booking.held_until, False, booking.plan, _HELD))
        for turn in booking.turns:
            if turn.ends_at is not None and turn.ends_at <= turn.begins_at:
                continue  # clocks are put forward over all of it
            steps.append(_Step(turn.begins_at, True, booking.plan, turn.number))
            if turn.ends_at is not None:
                steps.append(_Step(turn.ends_at, False, booking.plan, turn.number))
    return sorted(steps, key=lambda step: step.order)


class _Course:
    """The objects on their way through the steps. What is in trouble is not taken."""

    def __init__(self, bookings: Sequence[Booking], now: Objects, judge: Judge) -> None:
        self.world: dict[Key, Manifest] = dict(now)
        self.troubles: dict[int, Trouble] = {}
        self._now = now
        self._judge = judge
        self._items = {booking.plan: booking.items for booking in bookings}
        self._applied = {booking.plan: booking.held for booking in bookings if booking.held}
        self._begun = set(self._applied)  # what is in force tells what the objects are
        self._known: dict[frozenset[int], tuple[str, ...]] = {}

    def take(self, step: _Step) -> None:
        if step.begins:
            wanted = self._items[step.plan]
        else:
            applied = self._applied.get(step.plan)
            if applied is None:
                return  # it did not begin
            wanted = tuple(item.reversed for item in applied)
        found = settle_all(wanted, self.world)
        if found.crossings:
            self._note(
                step,
                tuple(crossing.message for crossing in found.crossings),
                {crossing.item.key for crossing in found.crossings},
            )
            return
        world = changed_by(self.world, found.items)
        begun = self._begun ^ {step.plan}
        messages = self._verdict(frozenset(begun), world)
        if messages:
            self._note(step, messages)
            return
        self.world = world
        self._begun = begun
        if step.begins:
            self._applied[step.plan] = found.items
        else:
            del self._applied[step.plan]

    def _verdict(self, begun: frozenset[int], world: Objects) -> tuple[str, ...]:
        if begun not in self._known:
            if len(self._known) >= MOST_COMBINATIONS:
                return (f"More than {MOST_COMBINATIONS} combinations of plans cannot be judged.",)
            self._known[begun] = self._judge(difference(self._now, world))
        return self._known[begun]

    def _note(
        self, step: _Step, messages: tuple[str, ...], about: Collection[Key] | None = None
    ) -> None:
        """`about` is what is in the way. Plans that do not touch it are not named."""
        others = set()
        for plan, applied in self._applied.items():
            if about is None or any(item.key in about for item in applied):
                others.add(plan)
        named = frozenset(others - {step.plan})
        trouble = Trouble(step.plan, step.number, step.begins, step.at, named, messages)
        self.troubles.setdefault(step.plan, trouble)


def changed_by(world: Objects, items: Iterable[ChangeItem]) -> dict[Key, Manifest]:
    """The objects with these items applied to them."""
    result = dict(world)
    for item in items:
        if item.wanted is None:
            result.pop(item.key, None)
        else:
            result[item.key] = item.wanted
    return result
