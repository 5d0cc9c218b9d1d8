"""Edits of several objects, collected under a name and applied together.

Each is kept as the object was when it was added (`base`) and as it is wanted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from scheduler.domain.queues import QueueState
from scheduler.domain.three_way import flat, merge, merge_lines

Manifest = Mapping[str, Any]

QUEUE: Final = "Queue"
NODE: Final = "Node"
POLICY: Final = "Policy"
KINDS: Final = (QUEUE, NODE, POLICY)
"""What a change set can hold."""
THE_POLICY: Final = "policy"
"""The name of the only policy."""
POLICY_TEXT: Final = "policy"
"""The field with its text."""


class SetState(StrEnum):
    DRAFT = "Draft"
    PLANNED = "Planned"
    APPLIED = "Applied"
    DISCARDED = "Discarded"


class Operation(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    NOTHING = "unchanged"


@dataclass(frozen=True, slots=True)
class FieldEdit:
    """One field before and after; None where it is unset."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class ChangeItem:
    """One object. `base` is None for a new one, `wanted` for one that is to go."""

    kind: str
    name: str
    base: Manifest | None
    wanted: Manifest | None

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.name

    @property
    def operation(self) -> Operation:
        if self.base is None and self.wanted is not None:
            return Operation.CREATE
        if self.wanted is None:
            return Operation.DELETE
        if self.base == self.wanted:
            return Operation.NOTHING
        return Operation.UPDATE

    @property
    def edits(self) -> tuple[FieldEdit, ...]:
        return edits_between(self.base, self.wanted)

    @property
    def reversed(self) -> ChangeItem:
        return replace(self, base=self.wanted, wanted=self.base)


def edits_between(before: Manifest | None, after: Manifest | None) -> tuple[FieldEdit, ...]:
    """Field by field, in the order of the manifests."""
    old = flat(before or {})
    new = flat(after or {})
    found = []
    for path in {**old, **new}:
        if old.get(path) != new.get(path):
            found.append(FieldEdit(".".join(path), old.get(path), new.get(path)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Crossing:
    """An object that others changed after it was added. `now` is None where it is gone.

    With `only_own`, only fields that the item itself changes are in the way, and told.
    """

    item: ChangeItem
    now: Manifest | None
    only_own: bool = False

    @property
    def edits(self) -> tuple[FieldEdit, ...]:
        edits = edits_between(self.item.base, self.now)
        if not self.only_own:
            return edits
        own = {edit.field for edit in self.item.edits}
        return tuple(edit for edit in edits if edit.field in own)

    @property
    def message(self) -> str:
        what = f"{self.item.kind} {self.item.name}"
        if self.now is None:
            return f"{what} is gone."
        if self.item.base is None:
            return f"There is a {what} by now."
        fields = ", ".join(_edit_words(edit) for edit in self.edits[:_MOST_NAMED])
        return f"{what} was changed: {fields}."


_MOST_NAMED = 4
_LONGEST_VALUE = 40


def _edit_words(edit: FieldEdit) -> str:
    return f"{edit.field} from {_value_words(edit.before)} to {_value_words(edit.after)}"


def _value_words(value: Any) -> str:
    if value is None:
        return "unset"
    text = str(value)
    if "\n" in text or len(text) > _LONGEST_VALUE:
        return "another text"
    return text


class Crossed(Exception):
    """Objects of the set were changed by others since they were added. Nothing was applied."""

    def __init__(self, crossings: tuple[Crossing, ...]) -> None:
        self.crossings = crossings
        told = " ".join(crossing.message for crossing in crossings)
        super().__init__(
            f"{told} Nothing was applied. Bring the change set up to date and look at it again."
        )


def crossing_of(item: ChangeItem, now: Manifest | None) -> Crossing | None:
    """None where nobody changed it since it was added.

    A queue that is to go may have been closed: that is the first step of its deletion.
    """
    if item.base == now:
        return None
    is_to_go = item.kind == QUEUE and item.wanted is None
    if is_to_go and item.base is not None and now is not None:
        closed = with_state(item.base, QueueState.CLOSED)
        if now == closed:
            return None
    return Crossing(item, now)


def merged_wish(item: ChangeItem, now: Manifest) -> Manifest:
    """What the set wants of an object that others changed: fields that only they changed stay."""
    if item.base is None or item.wanted is None:
        raise ValueError(f"{item.kind} {item.name} is not changed but made or deleted")
    if item.kind != POLICY:
        return merge(item.base, item.wanted, now).value
    lines = merge_lines(item.base[POLICY_TEXT], item.wanted[POLICY_TEXT], now[POLICY_TEXT])
    if lines is None:
        return item.wanted
    return {POLICY_TEXT: lines}


def state_in(manifest: Manifest) -> str:
    """The requested state in the manifest of a queue."""
    spec: Mapping[str, Any] = manifest["spec"]
    return str(spec.get("state", QueueState.OPEN.value))


def with_state(manifest: Manifest, state: QueueState) -> Manifest:
    return {**manifest, "spec": {**manifest["spec"], "state": state.value}}


def with_item(items: tuple[ChangeItem, ...], item: ChangeItem) -> tuple[ChangeItem, ...]:
    """A later edit of the same object takes the place of the earlier one.

    One that leads back to where it began is left out.
    """
    kept: list[ChangeItem] = []
    is_there = False
    for other in items:
        if other.key == item.key:
            is_there = True
            kept.append(item)
        else:
            kept.append(other)
    if not is_there:
        kept.append(item)
    return tuple(each for each in kept if each.base != each.wanted)


def as_json(items: tuple[ChangeItem, ...]) -> list[dict[str, Any]]:
    return [
        {"kind": item.kind, "name": item.name, "base": item.base, "wanted": item.wanted}
        for item in items
    ]


def from_json(stored: list[dict[str, Any]]) -> tuple[ChangeItem, ...]:
    items = []
    for entry in stored:
        items.append(ChangeItem(entry["kind"], entry["name"], entry["base"], entry["wanted"]))
    return tuple(items)
