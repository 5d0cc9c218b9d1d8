"""Which safe windows there are, and how far each is."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from scheduler.domain.access import Access, Permission
from scheduler.domain.change_sets import QUEUE, ChangeItem, Crossing, SetState
from scheduler.domain.previews import PreviewState
from scheduler.domain.queues import QueueState, QueueTree
from scheduler.domain.safe_windows import (
    Incident,
    WindowState,
    WindowStep,
    incidents_in,
    next_step,
    resumption,
)
from scheduler.models import ChangeSet, Command, Preview, Queue, SafeWindow
from scheduler.selectors.change_sets.objects import crossings_of, manifests_now
from scheduler.selectors.queues.tree import stored_queues, tree_of


def visible_windows(access: Access, reader: str) -> QuerySet[SafeWindow]:
    """Those whose queue the reader may see. Its author sees it also when the queue is gone."""
    windows = SafeWindow.objects.select_related("change_set")
    if access.sees_everything:
        return windows
    if not access.may_anywhere(Permission.VIEW):
        return windows.none()
    known = Queue.objects.values("name")
    own = Q(author=reader) & ~Q(queue__in=known)
    return windows.filter(Q(queue__in=access.visible or ()) | own)


def lives_tree() -> QueueTree:
    """Names, parents and requested states."""
    return tree_of(stored_queues(only_life=True))


def open_windows_around(name: str, tree: QueueTree) -> list[SafeWindow]:
    """Those that hold this queue, or one below it."""
    touched = {name, *tree.ancestors(name), *tree.subtree_names(name)}
    return _open_windows_of(touched)


def open_window_over(name: str, above: Collection[str]) -> SafeWindow | None:
    """The one that holds this queue, by itself or with a queue above it."""
    return next(iter(_open_windows_of({name, *above})), None)


def _open_windows_of(names: Collection[str]) -> list[SafeWindow]:
    found = SafeWindow.objects.filter(state=WindowState.OPEN.value, queue__in=names)
    return list(found.order_by("pk"))


def window_of_set(change_set: ChangeSet) -> SafeWindow | None:
    """The newest window that this set is, or was, the change of."""
    return SafeWindow.objects.filter(change_set=change_set).order_by("-pk").first()


@dataclass(frozen=True, slots=True)
class WindowStanding:
    """A window, and what is the case now."""

    window: SafeWindow
    step: WindowStep
    queues: tuple[str, ...]
    """The queue and all below it, as they are now."""
    is_held: bool = False
    is_reverted: bool = False
    incidents: tuple[Incident, ...] = ()
    crossings: tuple[Crossing, ...] = ()
    """What stands against reverting an applied set: others changed its objects since."""
    last_command: Command | None = None
    """The last order that changed the queue, where it is no longer suspended."""


def standings_of(windows: Iterable[SafeWindow]) -> list[WindowStanding]:
    """The tree is read once. Those that have ended ask nothing more."""
    tree = lives_tree()
    return [_standing_in(tree, window) for window in windows]


def standing_of(window: SafeWindow) -> WindowStanding:
    return _standing_in(lives_tree(), window)


def _standing_in(tree: QueueTree, window: SafeWindow) -> WindowStanding:
    queues = _queues_in(window.queue, tree)
    if not window.is_open:
        return WindowStanding(window, WindowStep.NOTHING, queues)
    change_set = window.change_set
    is_held = is_held_in(tree, window)
    set_state = SetState(change_set.state)
    step = next_step(
        WindowState(window.state),
        set_state,
        is_held=is_held,
        has_items=bool(change_set.items),
        is_previewed=is_previewed(change_set),
    )
    last = None
    if not is_held:
        last = _last_command(window.queue)
    return WindowStanding(
        window=window,
        step=step,
        queues=queues,
        is_held=is_held,
        is_reverted=is_reverted(change_set),
        incidents=_incidents(window, tree),
        crossings=_crossings_of_revert(window),
        last_command=last,
    )


def is_held_in(tree: QueueTree, window: SafeWindow) -> bool:
    """Whether its queue is there, the same one, and asked to be Suspended."""
    if window.queue not in tree or tree[window.queue].state is not QueueState.SUSPENDED:
        return False
    return is_same_queue(window)


def is_same_queue(window: SafeWindow) -> bool:
    return Queue.objects.filter(name=window.queue, uid=window.queue_uid).exists()


def is_reverted(change_set: ChangeSet) -> bool:
    return reversal_of(change_set) is not None


def reversal_of(change_set: ChangeSet) -> ChangeSet | None:
    """The set that took it back, the newest of them."""
    return change_set.reverted_by.filter(state=SetState.APPLIED.value).order_by("-pk").first()


def is_previewed(change_set: ChangeSet) -> bool:
    """Of the set as it is now, by anybody."""
    done = Preview.objects.filter(change_set=change_set, state=PreviewState.DONE.value)
    return done.filter(items=change_set.items).exists()


def _incidents(window: SafeWindow, tree: QueueTree) -> tuple[Incident, ...]:
    if window.queue in tree and not is_same_queue(window):
        message = (
            f"{window.queue} was deleted and created again. This window does not know the new one."
        )
        return (Incident("queue_gone", window.queue, message),)
    own: frozenset[str] = frozenset()
    if not window.change_set.is_draft:
        items = window.change_set.changes
        own = frozenset(item.name for item in items if item.kind == QUEUE)
    return incidents_in(window.queue, window.states_before, tree, own)


def _crossings_of_revert(window: SafeWindow) -> tuple[Crossing, ...]:
    change_set = window.change_set
    if change_set.state != SetState.APPLIED.value or is_reverted(change_set):
        return ()
    return crossings_of(tuple(item.reversed for item in change_set.changes))


def _queues_in(queue: str, tree: QueueTree) -> tuple[str, ...]:
    if queue not in tree:
        return ()
    return tuple(tree.subtree_names(queue))


def _last_command(queue: str) -> Command | None:
    orders = Command.objects.filter(target_kind="Queue", target_name=queue, result=Command.DONE)
    return orders.first()


def resumption_of(change_set: ChangeSet | None) -> ChangeItem | None:
    """How the open window of a set will give its queue back; None where there is none."""
    if change_set is None:
        return None
    window = window_of_set(change_set)
    if window is None or not window.is_open:
        return None
    now = manifests_now([(QUEUE, window.queue)]).get((QUEUE, window.queue))
    return resumption(window.queue, now, window.requested_before)
