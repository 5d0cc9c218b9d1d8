"""Safe windows: a subtree is suspended, changed by a change set, and resumed, step by step.

Each step is one transaction and has its undo. Commands and change sets do the work; here is kept
which of them belong together, and what the subtree had before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.utils import timezone

from scheduler import notify
from scheduler.admission.violations import Notice, Rejected, Violation
from scheduler.domain.access import Permission
from scheduler.domain.change_sets import SetState
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.lifecycle import NotAllowed, QueueCommand
from scheduler.domain.queues import QueueState
from scheduler.domain.safe_windows import Before, WindowState, states_as_json, way_back
from scheduler.models import ChangeSet, Queue, SafeWindow
from scheduler.selectors.change_sets.windows import (
    is_held_in,
    is_reverted,
    is_same_queue,
    lives_tree,
    open_windows_around,
    visible_windows,
)
from scheduler.selectors.queues.tree import stored_queues, tree_of
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.change_sets import drafts
from scheduler.services.change_sets.apply import apply_change_set
from scheduler.services.cluster.queue_writes import are_queues_in_cluster
from scheduler.services.files.versions import Expected
from scheduler.services.locks import alone_with_pods, lock_tree
from scheduler.services.queues.commands import CommandOutcome, command_queue
from scheduler.services.queues.transaction import tree_transaction
from scheduler.services.records import audit


@dataclass(frozen=True, slots=True)
class WindowDeed:
    """A window after a step, and what came of it. `outcome` is of the command that was given."""

    window: SafeWindow
    message: str
    notices: tuple[Notice, ...] = ()
    outcome: CommandOutcome | None = None


# Step 1: suspend


def begin_window(
    queue: str, *, by: Actor = SYSTEM, name: str = "", dry_run: bool = False
) -> WindowDeed:
    """Suspend the queue with all below it, and begin an empty change set for it.

    Whoever may suspend and change the queue may do this. Raises `Forbidden`, `OutOfSight`,
    `Queue.DoesNotExist`, `NotAllowed`, and `Rejected` while another window holds one of the queues.
    """
    _require_rights(by, queue, "begin a safe window on it")
    with tree_transaction(dry_run=dry_run):
        _lock()
        stored = Queue.objects.get(name=queue)
        _refuse_overlap(queue, by)
        window = SafeWindow(
            queue=queue,
            queue_uid=str(stored.uid),
            author=by.name[:150],
            reason=by.reason[:1024],
            before=_states_of(queue),
        )
        outcome = _suspend(window, by, dry_run)
        title = name or f"Safe window of {queue}"
        window.change_set = drafts.create_change_set(title[: drafts.LONGEST_NAME], by=by)
        window.save()
        message = f"{queue} is held by safe window {window.pk}. {outcome.message}"
        _record(window, "BeginWindow", by, message)
    return WindowDeed(window, message, outcome=outcome)


def _require_rights(by: Actor, queue: str, doing: str) -> None:
    mine = access.access_for(by)
    mine.require(Permission.OPERATE, queue, doing)
    mine.require(Permission.ADMINISTER, queue, doing)


def _lock() -> None:
    """Two windows that begin at the same time see each other. In a real cluster nothing waits."""
    if not are_queues_in_cluster():
        lock_tree()
        alone_with_pods()


def window_in_the_way(queue: str, *, by: Actor) -> SafeWindow | None:
    """The window that keeps the caller from beginning one, if they may see it."""
    mine = access.access_for(by)
    for other in open_windows_around(queue, lives_tree()):
        if mine.may(Permission.VIEW, other.queue):
            return other
    return None


def _refuse_overlap(queue: str, by: Actor) -> None:
    mine = access.access_for(by)
    for other in open_windows_around(queue, lives_tree()):
        message = f"A queue above {queue} is in a safe window of somebody else."
        if mine.may(Permission.VIEW, other.queue):
            message = (
                f"Safe window {other.pk} of {other.author or 'the system'} holds {other.queue} "
                f"since {other.created_at:%d %B %H:%M} UTC. Two windows cannot hold the same queue."
            )
        fix = "wait until it ends, or end it"
        raise Rejected([Violation("window_overlaps", queue, "queue", message, fix)], by_state=True)


def _states_of(queue: str) -> dict[str, dict[str, str]]:
    stored = stored_queues(only_life=True)
    before = {}
    for name in tree_of(stored).subtree_names(queue):
        before[name] = Before(stored[name].spec.state, stored[name].standing.state)
    return states_as_json(before)


def _suspend(window: SafeWindow, by: Actor, dry_run: bool) -> CommandOutcome:
    """One that was suspended already is held as it is, and stays so in the end.

    Raises `NotAllowed` for one that is Closed: a suspend would be ignored.
    """
    words = by.reason or "safe window"
    queue = window.queue
    outcome = command_queue(queue, QueueCommand.SUSPEND, by=by, reason=words, dry_run=dry_run)
    if outcome.changed or window.requested_before is QueueState.SUSPENDED:
        return outcome
    raise NotAllowed(
        f"{outcome.message} Nothing starts in it, so it needs no safe window.",
        rule_id="queue_closed",
        queue=queue,
        fix="change it directly or by a change set, or open it first",
    )


# Steps 4 and 5, and the way back


def apply_window(
    number: int, *, by: Actor = SYSTEM, expected_version: Expected = None, dry_run: bool = False
) -> WindowDeed:
    """Apply the change set of a window whose queue is still suspended.

    Raises what `apply_change_set` raises.
    """
    with tree_transaction(dry_run=dry_run):
        window = _open_window(number, by, "apply its change set")
        if not is_held_in(lives_tree(), window):
            raise NotPossible(
                f"{window.queue} is no longer suspended, so it is not safe to apply it here: "
                "suspend it again, or apply the change set on its own page"
            )
        applied = apply_change_set(
            window.change_set_id,
            by=_for_the_window(by, window),
            expected_version=expected_version,
            dry_run=dry_run,
        )
    window.change_set = applied.change_set
    return WindowDeed(window, applied.message, applied.notices)


def revert_window(number: int, *, by: Actor = SYSTEM, dry_run: bool = False) -> WindowDeed:
    """Undo an applied set at once. Its edits become a new draft of the same window.

    Raises `Crossed` where others changed the same objects since.
    """
    with tree_transaction(dry_run=dry_run):
        window = _open_window(number, by, "revert its change set")
        applied = window.change_set
        if applied.state != SetState.APPLIED.value:
            raise NotPossible(f"“{applied.name}” is not applied, so there is nothing to revert")
        if not is_reverted(applied):
            _undo_applied(window, by, dry_run)
        window.change_set = drafts.copy_of(applied, by=by)
        window.save()
        message = f"Reverted “{applied.name}”. Its edits are a draft again."
    return WindowDeed(window, message)


def _undo_applied(window: SafeWindow, by: Actor, dry_run: bool) -> None:
    by = _for_the_window(by, window)
    back = drafts.revert(window.change_set_id, by=by)
    apply_change_set(back.pk, by=by, dry_run=dry_run)


def resume_window(number: int, *, by: Actor = SYSTEM, dry_run: bool = False) -> WindowDeed:
    """Give the queue back what it was before, and end the window.

    Before anything was applied this is the undo of the suspend: the draft stays a draft.
    """
    with tree_transaction(dry_run=dry_run):
        window = _open_window(number, by, "resume it")
        deed = _lead_back(window, by, dry_run)
        state = WindowState.ABANDONED
        if window.change_set.state == SetState.APPLIED.value and not is_reverted(window.change_set):
            state = WindowState.FINISHED
        _end(window, state, by, deed.message)
    return deed


def abandon_window(number: int, *, by: Actor = SYSTEM, dry_run: bool = False) -> WindowDeed:
    """All the way back: revert what was applied, discard the draft, resume, end.

    All of it or nothing. Raises `Crossed` where others changed the same objects since.
    """
    with tree_transaction(dry_run=dry_run):
        window = _open_window(number, by, "abandon it")
        words = _take_back(window, by, dry_run)
        deed = _lead_back(window, by, dry_run)
        deed = replace(deed, message=f"{words} {deed.message}".strip())
        _end(window, WindowState.ABANDONED, by, deed.message)
    return deed


def _take_back(window: SafeWindow, by: Actor, dry_run: bool) -> str:
    change_set = window.change_set
    if change_set.state == SetState.APPLIED.value and not is_reverted(change_set):
        _undo_applied(window, by, dry_run)
        return f"Reverted “{change_set.name}”."
    if change_set.is_draft and _may_discard(change_set, by):
        window.change_set = drafts.discard(change_set.pk, by=by)
        return f"Discarded “{change_set.name}”."
    return ""


def _may_discard(change_set: ChangeSet, by: Actor) -> bool:
    """Else it stays a draft of its author."""
    return change_set.author == by.name or access.access_for(by).is_cluster_admin


def _lead_back(window: SafeWindow, by: Actor, dry_run: bool) -> WindowDeed:
    """Only what this window suspended: whatever others asked for stays."""
    queue = window.queue
    tree = lives_tree()
    if queue not in tree or not is_same_queue(window):
        return WindowDeed(window, f"{queue} is gone, so there was nothing to resume.")
    if tree[queue].state is not QueueState.SUSPENDED:
        message = f"{queue} was not suspended any more, and was left as it is."
        return WindowDeed(window, message)
    command = way_back(window.requested_before)
    if command is None:
        message = f"{queue} was suspended before this window began, and stays so."
        return WindowDeed(window, message)
    words = by.reason or f"end of safe window {window.pk}"
    outcome = command_queue(queue, command, by=by, reason=words, dry_run=dry_run)
    return WindowDeed(window, outcome.message, outcome=outcome)


def suspend_again(number: int, *, by: Actor = SYSTEM, dry_run: bool = False) -> WindowDeed:
    """The undo of resume, and the answer to others who resumed the queue meanwhile."""
    with tree_transaction(dry_run=dry_run):
        window = _window(number, by, "suspend it again")
        if window.state == WindowState.ABANDONED.value:
            raise NotPossible(f"Safe window {number} was abandoned: begin a new one")
        if not is_same_queue(window):
            raise NotPossible(f"{window.queue} is gone, so it cannot be suspended again")
        if not window.is_open:
            _refuse_overlap(window.queue, by)
        words = by.reason or f"safe window {number}"
        outcome = command_queue(
            window.queue, QueueCommand.SUSPEND, by=by, reason=words, dry_run=dry_run
        )
        if not window.is_open:
            _reopen(window, by, outcome.message)
    return WindowDeed(window, outcome.message, outcome=outcome)


def _reopen(window: SafeWindow, by: Actor, message: str) -> None:
    window.state = WindowState.OPEN.value
    window.ended_at = None
    window.ended_by = ""
    window.save()
    _record(window, "ReopenWindow", by, message)


def new_draft(number: int, *, by: Actor = SYSTEM, dry_run: bool = False) -> WindowDeed:
    """Another empty change set, where that of an open window was discarded."""
    with tree_transaction(dry_run=dry_run):
        window = _open_window(number, by, "begin another change set for it")
        old = window.change_set
        if old.state != SetState.DISCARDED.value:
            raise NotPossible(f"“{old.name}” was not discarded, so it is still that of this window")
        window.change_set = drafts.create_change_set(old.name, by=by)
        window.save()
    return WindowDeed(window, f"{old.name} begins anew.")


# What all steps need


def _open_window(number: int, by: Actor, doing: str) -> SafeWindow:
    window = _window(number, by, doing)
    if not window.is_open:
        raise NotPossible(f"Safe window {number} is {window.state.lower()} already")
    return window


def _window(number: int, by: Actor, doing: str) -> SafeWindow:
    """Locked, for whoever may suspend and change its queue.

    Raises `SafeWindow.DoesNotExist`, also for one that the caller may not see.
    """
    _lock()
    window = visible_windows(access.access_for(by), by.name).filter(pk=number).first()
    if window is None:
        raise SafeWindow.DoesNotExist(f"There is no safe window {number}.")
    if Queue.objects.filter(name=window.queue).exists():
        _require_rights(by, window.queue, doing)
    return window


def _for_the_window(by: Actor, window: SafeWindow) -> Actor:
    return replace(by, reason=by.reason or f"safe window {window.pk} of {window.queue}")


def _end(window: SafeWindow, state: WindowState, by: Actor, message: str) -> None:
    window.state = state.value
    window.ended_at = timezone.now()
    window.ended_by = by.name[:150]
    window.save()
    _record(window, "EndWindow", by, message)


def _record(window: SafeWindow, action: str, by: Actor, message: str) -> None:
    queue = window.queue
    audit.record(
        by,
        action,
        "SafeWindow",
        str(window.pk),
        queue=queue,
        after={"queue": queue, "state": window.state, "changeSet": window.change_set_id},
        message=message,
    )
    notify.queues_changed([queue, *window.before])
