"""A single deed of the audit log undone: the change that leads back, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from scheduler.domain.change_sets import (
    KINDS,
    POLICY,
    POLICY_TEXT,
    QUEUE,
    ChangeItem,
    Manifest,
    state_in,
    with_state,
)
from scheduler.domain.lifecycle import QueueCommand, command_named
from scheduler.domain.queues import QueueState
from scheduler.domain.three_way import merge, merge_lines


@dataclass(frozen=True, slots=True)
class Deed:
    """An entry of the audit log, as far as it says what was done to an object."""

    action: str
    kind: str
    name: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    follows: str = ""


@dataclass(frozen=True, slots=True)
class Inverse:
    """The item of a change set, or in words why there is none.

    Both are empty for deeds that change sets have nothing to do with.
    """

    item: ChangeItem | None = None
    why_not: str = ""


_WHY_NOT: Final = {
    "DrainNode": "Pods that were told to leave do not come back. Uncordon the node instead.",
    "NodeLost": "The cluster reported it. It cannot be undone by a change.",
    "NodeReady": "The cluster reported it. It cannot be undone by a change.",
    "PlanDeletion": "Keep the queue instead: its page has a button for it.",
    "KeepQueue": "Ask for the deletion again instead.",
}
_REQUESTED: Final = {
    QueueCommand.OPEN: QueueState.OPEN,
    QueueCommand.RESUME: QueueState.OPEN,
    QueueCommand.CLOSE: QueueState.CLOSED,
    QueueCommand.SUSPEND: QueueState.SUSPENDED,
}
_REQUESTED_BEFORE: Final = {
    "Open": QueueState.OPEN,
    "Closing": QueueState.CLOSED,
    "Closed": QueueState.CLOSED,
    "Suspended": QueueState.SUSPENDED,
}


def inverse_of(deed: Deed, now: Manifest | None) -> Inverse:
    """`now` is the object as it is; None where it is gone.

    Where others changed the same fields since, the item begins with what the deed left: the check
    of the change set then names what they changed.
    """
    if deed.kind not in KINDS:
        return Inverse()
    if deed.action in _WHY_NOT:
        return Inverse(why_not=_WHY_NOT[deed.action])
    command = command_named(deed.action)
    if command is not None:
        return _inverse_of_command(deed, command, now)
    if deed.action in ("CordonNode", "UncordonNode"):
        return _inverse_of_cordon(deed, now)
    if deed.before is None and deed.after is not None:
        return _inverse_of_creation(deed, now)
    if deed.after is None and deed.before is not None:
        return _inverse_of_deletion(deed, now)
    if deed.before is None or deed.after is None:
        return Inverse()
    if deed.kind == POLICY:
        return _inverse_of_policy(deed, deed.before, deed.after, now)
    return _inverse_of_update(deed, deed.before, deed.after, now)


def _inverse_of_creation(deed: Deed, now: Manifest | None) -> Inverse:
    if now is None:
        return Inverse(why_not=f"{deed.name} is gone already.")
    return Inverse(ChangeItem(deed.kind, deed.name, deed.after, None))


def _inverse_of_deletion(deed: Deed, now: Manifest | None) -> Inverse:
    if now is not None:
        return Inverse(why_not=f"There is a {deed.kind} {deed.name} again.")
    return Inverse(ChangeItem(deed.kind, deed.name, None, deed.before))


def _inverse_of_update(
    deed: Deed, before: Manifest, after: Manifest, now: Manifest | None
) -> Inverse:
    if now is None:
        return Inverse(why_not=f"{deed.name} is gone.")
    merged = merge(after, before, now)
    if merged.both:
        return Inverse(ChangeItem(deed.kind, deed.name, after, before))
    return _changed(deed, now, merged.value)


def _changed(deed: Deed, now: Manifest, wanted: Manifest) -> Inverse:
    if wanted == now:
        return Inverse(why_not=f"{deed.name} is already as it was before.")
    return Inverse(ChangeItem(deed.kind, deed.name, now, wanted))


def _inverse_of_policy(
    deed: Deed, before: Manifest, after: Manifest, now: Manifest | None
) -> Inverse:
    present = (now or after)[POLICY_TEXT]
    lines = merge_lines(after[POLICY_TEXT], before[POLICY_TEXT], present)
    if lines is None:
        return Inverse(ChangeItem(POLICY, deed.name, after, before))
    return _changed(deed, {POLICY_TEXT: present}, {POLICY_TEXT: lines})


def _inverse_of_cordon(deed: Deed, now: Manifest | None) -> Inverse:
    if now is None:
        return Inverse(why_not=f"{deed.name} is gone.")
    unschedulable = bool((deed.before or {}).get("unschedulable"))
    spec = {**now.get("spec", {}), "unschedulable": unschedulable}
    return _changed(deed, now, {**now, "spec": spec})


def _inverse_of_command(deed: Deed, command: QueueCommand, now: Manifest | None) -> Inverse:
    if deed.follows:
        why = f"It followed from {deed.action} of {deed.follows}: revert that."
        return Inverse(why_not=why)
    if now is None:
        return Inverse(why_not=f"{deed.name} is gone.")
    before = _requested_before(deed, command)
    if before is None:
        why = (
            f"The log has only what {deed.name} was, not what was asked for it: it may have been "
            "so because of a queue above. Give the command that you want."
        )
        return Inverse(why_not=why)
    if state_in(now) == before.value:
        return Inverse(why_not=f"{deed.name} is already as it was before.")
    base = with_state(now, _REQUESTED[command])
    return Inverse(ChangeItem(QUEUE, deed.name, base, with_state(now, before)))


def _requested_before(deed: Deed, command: QueueCommand) -> QueueState | None:
    """What was asked for a queue, from the state that it had.

    The states above allow Open and Resume only where it had its state by itself, and Suspend only
    where nothing above is closed. Close is allowed always: what it was may have come from above.
    """
    state = (deed.before or {}).get(deed.name)
    if state is None:
        # it kept its state: it was suspended by a queue above, and is now by itself too
        return QueueState.OPEN if command is QueueCommand.SUSPEND else None
    if command is QueueCommand.CLOSE and state != "Open":
        return None
    return _REQUESTED_BEFORE.get(state)
