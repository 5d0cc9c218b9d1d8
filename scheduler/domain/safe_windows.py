"""A safe window: a subtree is suspended, changed, looked at, and resumed.

What it had before is kept, so that it gets back exactly that, whatever others did meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from scheduler.domain.change_sets import (
    QUEUE,
    ChangeItem,
    Manifest,
    SetState,
    state_in,
    with_state,
)
from scheduler.domain.lifecycle import QueueCommand, command_for
from scheduler.domain.queues import QueueState, QueueTree


class WindowState(StrEnum):
    OPEN = "Open"
    FINISHED = "Finished"
    ABANDONED = "Abandoned"


class WindowStep(StrEnum):
    """What comes next in it."""

    SUSPEND = "suspend"
    EDIT = "edit"
    PREVIEW = "preview"
    APPLY = "apply"
    RESUME = "resume"
    NOTHING = "nothing"


STEPS: Final = (
    WindowStep.SUSPEND,
    WindowStep.EDIT,
    WindowStep.PREVIEW,
    WindowStep.APPLY,
    WindowStep.RESUME,
)


@dataclass(frozen=True, slots=True)
class Before:
    """A queue when the window began: what was asked for it, and what it was."""

    requested: QueueState
    state: QueueState


StatesBefore = Mapping[str, Before]


def states_as_json(before: StatesBefore) -> dict[str, dict[str, str]]:
    told = {}
    for name, each in before.items():
        told[name] = {"requested": each.requested.value, "state": each.state.value}
    return told


def states_from_json(stored: Mapping[str, Mapping[str, str]]) -> dict[str, Before]:
    found = {}
    for name, each in stored.items():
        found[name] = Before(QueueState(each["requested"]), QueueState(each["state"]))
    return found


def way_back(before: QueueState) -> QueueCommand | None:
    """The command that gives a queue back what was asked for it before it was suspended.

    None where it was Suspended then: it stays so. A queue that was draining drains again.
    """
    if before is QueueState.SUSPENDED:
        return None
    return command_for(before, QueueState.SUSPENDED)


def next_step(
    state: WindowState,
    set_state: SetState,
    *,
    is_held: bool,
    has_items: bool,
    is_previewed: bool,
) -> WindowStep:
    """It follows from what is the case, not from what was pressed: others can act too."""
    if state is not WindowState.OPEN:
        return WindowStep.NOTHING
    if set_state is SetState.APPLIED:
        return WindowStep.RESUME
    if not is_held:
        return WindowStep.SUSPEND
    if set_state is SetState.DISCARDED or not has_items:
        return WindowStep.EDIT
    if not is_previewed:
        return WindowStep.PREVIEW
    return WindowStep.APPLY


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that others did to the subtree since the window began."""

    code: str
    queue: str
    message: str


def incidents_in(
    queue: str,
    before: StatesBefore,
    tree: QueueTree,
    own: Collection[str] = frozenset(),
) -> tuple[Incident, ...]:
    """`own` are the queues that the window's own change set made, changed or deleted."""
    if queue not in tree:
        message = f"{queue} was deleted. There is nothing left to resume."
        return (Incident("queue_gone", queue, message),)
    found = []
    requested = tree[queue].state
    if requested is not QueueState.SUSPENDED:
        message = (
            f"{queue} is no longer suspended: {requested} was asked for it since. "
            "Its jobs start and stop as they would without this window."
        )
        found.append(Incident("not_suspended", queue, message))
    found += _moves(queue, before, tree, own)
    found += _other_requests(queue, before, tree, own)
    return tuple(found)


def _moves(
    queue: str, before: StatesBefore, tree: QueueTree, own: Collection[str]
) -> Iterator[Incident]:
    inside = set(tree.subtree_names(queue))
    for name in sorted(set(before) - inside - set(own)):
        if name in tree:
            message = f"{name} was moved away from {queue}, so this window no longer holds it."
            yield Incident("moved_away", name, message)
        else:
            yield Incident("child_gone", name, f"{name} was deleted since the window began.")
    for name in sorted(inside - set(before) - set(own)):
        message = f"{name} came below {queue} since the window began, and is held with it."
        yield Incident("child_came", name, message)


def _other_requests(
    queue: str, before: StatesBefore, tree: QueueTree, own: Collection[str]
) -> Iterator[Incident]:
    for name in sorted(set(before) & set(tree.subtree_names(queue)) - {queue} - set(own)):
        requested = tree[name].state
        if requested is not before[name].requested:
            message = (
                f"{name} itself was {before[name].requested} when the window began, and "
                f"{requested} was asked for it since. Resuming {queue} leaves it so."
            )
            yield Incident("other_request", name, message)


def resumption(queue: str, now: Manifest | None, before: QueueState) -> ChangeItem | None:
    """What resuming the window changes; None where it changes nothing."""
    if now is None or way_back(before) is None or state_in(now) != QueueState.SUSPENDED.value:
        return None
    return ChangeItem(QUEUE, queue, now, with_state(now, before))


def and_resumed(items: tuple[ChangeItem, ...], resumed: ChangeItem) -> tuple[ChangeItem, ...]:
    """The items of a set, with the queue resumed on top of what they want of it."""
    state = QueueState(state_in(resumed.wanted or {}))
    found = []
    for item in items:
        if item.key != resumed.key:
            found.append(item)
        elif item.wanted is not None:
            found.append(replace(item, wanted=with_state(item.wanted, state)))
        else:
            return items
    if all(item.key != resumed.key for item in items):
        found.append(resumed)
    return tuple(found)


def after_the_window(
    items: tuple[ChangeItem, ...], queue: str, before: QueueState
) -> tuple[ChangeItem, ...]:
    """The items of a set whose window has ended: what they hold as Suspended was given back."""
    found = []
    for item in items:
        if item.key == (QUEUE, queue) and item.base is not None and item.wanted is not None:
            states = {state_in(item.base), state_in(item.wanted)}
            if states == {QueueState.SUSPENDED.value}:
                item = replace(
                    item, base=with_state(item.base, before), wanted=with_state(item.wanted, before)
                )
        found.append(item)
    return tuple(found)
