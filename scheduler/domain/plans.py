"""What a queue command would cause, in figures and in words.

It is worked out before anything is written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from scheduler.domain.lifecycle import DerivedState, QueueCommand, derive, judge
from scheduler.domain.queues import DEFAULT, QueueState, QueueTree

_NAMES_SHOWN = 5
_CLOSED = (QueueState.CLOSING, QueueState.CLOSED)
DEFAULT_CLOSES = "Jobs that name no queue go to default. They are refused while it is closed."


@dataclass(frozen=True, slots=True)
class Load:
    """What a queue holds: its podgroups that are not Completed, their pods and their owners."""

    running: int = 0
    waiting: int = 0
    pods_running: int = 0
    pods_waiting: int = 0
    users: frozenset[str] = frozenset()

    @property
    def live(self) -> int:
        return self.running + self.waiting

    @property
    def waits(self) -> bool:
        return self.waiting > 0 or self.pods_waiting > 0

    def __add__(self, other: Load) -> Load:
        return Load(
            self.running + other.running,
            self.waiting + other.waiting,
            self.pods_running + other.pods_running,
            self.pods_waiting + other.pods_waiting,
            self.users | other.users,
        )


NO_LOAD = Load()


@dataclass(frozen=True, slots=True)
class Change:
    """One queue before and after, with a sentence that says what happened to it and why."""

    name: str
    before: DerivedState
    after: DerivedState
    sentence: str

    @property
    def changes_state(self) -> bool:
        return self.before.state is not self.after.state

    @property
    def is_felt(self) -> bool:
        """Whether the work in the queue notices."""
        return self.changes_state or self.before.is_scheduled is not self.after.is_scheduled


@dataclass(frozen=True, slots=True)
class Caution:
    """Something the user should know before the act."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The effect of one command. `requested` is None when nothing is to be written."""

    command: QueueCommand
    queue: str
    requested: QueueState | None
    message: str
    changes: tuple[Change, ...] = ()
    load: Load = NO_LOAD
    warnings: tuple[Caution, ...] = ()

    @property
    def changed(self) -> bool:
        return self.requested is not None

    @property
    def state_changes(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.changes_state)


def plan(
    tree: QueueTree,
    name: str,
    command: QueueCommand,
    *,
    loads: Mapping[str, Load],
    unknown: Collection[str] = frozenset(),
) -> Plan:
    """What the command would do.

    Raises `NotAllowed`, which names the ancestor to open or resume first.
    """
    live = {}
    for queue, load in loads.items():
        live[queue] = load.live
    if name in tree:
        tree = tree.realm(name)
    before = derive(tree, live, unknown)
    judgement = judge(tree, before, name, command, live=live, unknown=unknown)
    if judgement.refusal:
        raise judgement.refusal
    if judgement.requested is None:
        return Plan(command, name, None, judgement.nothing_because)
    return _planned_effect(tree, name, command, judgement.requested, before, loads, unknown)


@dataclass(frozen=True, slots=True)
class _Scene:
    """The tree with the new requested state in it, and every queue before and after."""

    tree: QueueTree
    name: str
    before: Mapping[str, DerivedState]
    after: Mapping[str, DerivedState]
    loads: Mapping[str, Load]

    @property
    def keeps_state(self) -> bool:
        return self.before[self.name].state is self.after[self.name].state

    def waiting_in_subtree(self) -> list[str]:
        """The queues at and below the target in which something waits."""
        subtree = self.tree.subtree_names(self.name)
        waiting: list[str] = []
        for queue in subtree:
            if self.loads.get(queue, NO_LOAD).waits:
                waiting.append(queue)
        return waiting


def _planned_effect(
    tree: QueueTree,
    name: str,
    command: QueueCommand,
    requested: QueueState,
    before: Mapping[str, DerivedState],
    loads: Mapping[str, Load],
    unknown: Collection[str],
) -> Plan:
    changed_tree = tree.with_queue(replace(tree[name], state=requested))
    after = derive(
        changed_tree,
        {queue: load.live for queue, load in loads.items()},
        set(unknown) - {name},
    )
    scene = _Scene(changed_tree, name, before, after, loads)
    changes = changes_between(before, after, changed_tree, loads)
    felt = [change.name for change in changes if change.is_felt]
    return Plan(
        command=command,
        queue=name,
        requested=requested,
        message=" ".join(_message_parts(scene, changes)),
        changes=changes,
        load=sum((loads.get(queue, NO_LOAD) for queue in felt), NO_LOAD),
        warnings=tuple(_cautions(scene, command)),
    )


def changes_between(
    before: Mapping[str, DerivedState],
    after: Mapping[str, DerivedState],
    tree: QueueTree,
    loads: Mapping[str, Load],
) -> tuple[Change, ...]:
    """Every queue that is no longer what it was, parents first."""
    found: list[Change] = []
    for name, standing in after.items():
        if name in before and before[name] != standing:
            found.append(
                Change(
                    name,
                    before[name],
                    standing,
                    describe(tree, name, before[name], standing, loads),
                )
            )
    return tuple(found)


def describe(
    tree: QueueTree,
    name: str,
    before: DerivedState,
    after: DerivedState,
    loads: Mapping[str, Load],
) -> str:
    """One sentence on what the queue became and why."""
    if before.state is after.state:
        return _same_state(name, before, after)
    if before.state is QueueState.CLOSING and after.state is QueueState.CLOSED:
        if tree.children(name):
            below = " and every queue below it is Closed"
        else:
            below = ""
        return f"{name} is now Closed: nothing is left in it{below}."
    meaning = _meaning_of_state(tree, name, after, loads)
    return f"{name} is now {after.state}{_held_because(after)}: {meaning}."


def _same_state(name: str, before: DerivedState, after: DerivedState) -> str:
    if before.closed_by != after.closed_by or before.suspended_by != after.suspended_by:
        source = after.closed_by or after.suspended_by
        if source:
            return f"{name} stays {after.state}, now because of {source}."
        return f"{name} stays {after.state}, now by its own request."
    if after.held_by:
        return (
            f"{name} stays {after.state}; its pods are held because {after.held_by} is suspended."
        )
    return f"{name} stays {after.state}; its pods are scheduled again."


def _held_because(standing: DerivedState) -> str:
    source = standing.closed_by or standing.suspended_by
    if source:
        return f" because {source} is"
    return ""


def _meaning_of_state(
    tree: QueueTree,
    name: str,
    standing: DerivedState,
    loads: Mapping[str, Load],
) -> str:
    if standing.state is QueueState.CLOSING:
        return f"it takes no new jobs and is Closed when {_what_is_left(tree, name, loads)}"
    return _MEANINGS[standing.state]


_MEANINGS = {
    QueueState.OPEN: "it takes jobs and they are scheduled",
    QueueState.CLOSED: "it takes no jobs and has none left",
    QueueState.SUSPENDED: (
        "it takes jobs but starts none until it is resumed; what runs goes on running"
    ),
    QueueState.UNKNOWN: "its state came from outside and is not known; open, close or suspend it",
}


def _what_is_left(tree: QueueTree, name: str, loads: Mapping[str, Load]) -> str:
    live = loads.get(name, NO_LOAD).live
    children = len(tree.children(name))
    parts = []
    if live:
        parts.append(f"{counted(live, 'podgroup has', 'podgroups have')} finished")
    if children:
        parts.append(f"{counted(children, 'child is', 'children are')} Closed")
    return " and ".join(parts) or "nothing is left in it"


def counted(number: int, one: str, many: str = "") -> str:
    """ "1 podgroup", "3 podgroups"."""
    if number == 1:
        return f"1 {one}"
    return f"{number} {many or one + 's'}"


def listed(names: Iterable[str], one: str = "", many: str = "") -> str:
    """The first few names, how many more there are, and what one or several of them do."""
    all_names = list(names)
    words = ", ".join(all_names[:_NAMES_SHOWN])
    more = len(all_names) - _NAMES_SHOWN
    if more > 0:
        words += f" and {more} more"
    if len(all_names) == 1:
        return f"{words} {one}".rstrip()
    return f"{words} {many}".rstrip()


def _message_parts(scene: _Scene, changes: tuple[Change, ...]) -> Iterator[str]:
    name = scene.name
    standing = scene.after[scene.name]
    if scene.keeps_state:
        yield _wish_only(scene.tree, name, standing)
    else:
        yield (
            f"{name} is now {standing.state}{_held_because(standing)}: "
            f"{_meaning_of_state(scene.tree, name, standing, scene.loads)}."
        )
    yield from _followers_sentence(name, changes)
    yield from _unchanged_sentence(scene)


def _wish_only(tree: QueueTree, name: str, standing: DerivedState) -> str:
    if tree[name].state is QueueState.OPEN:
        if standing.held_by:
            held = f"; its pods stay held because {standing.held_by} is suspended"
        else:
            held = "; its waiting pods may start"
        return f"{name} is no longer suspended by its own request and stays {standing.state}{held}."
    return (
        f"{name} stays {standing.state}, now by its own request: it remains so when the queues "
        "above it are opened or resumed."
    )


def _followers_sentence(name: str, changes: tuple[Change, ...]) -> Iterator[str]:
    by_state: dict[QueueState, list[str]] = {}
    for change in changes:
        if change.changes_state and change.name != name:
            by_state.setdefault(change.after.state, []).append(change.name)
    for state, names in by_state.items():
        yield f"{listed(names, 'becomes', 'become')} {state} with it."


def _unchanged_sentence(scene: _Scene) -> Iterator[str]:
    """The queues below that keep their state although the one above changed.

    Users asked for these states themselves.
    """
    wilful = []
    for queue in scene.tree.descendants(scene.name):
        if queue.state is not QueueState.OPEN:
            wilful.append(queue.name)
    kept = []
    for name in wilful:
        if scene.before[name].state is scene.after[name].state:
            kept.append(name)
    if kept and not scene.keeps_state:
        yield listed(
            kept, "stays as it is, by its own request.", "stay as they are, by their own request."
        )


def _cautions(scene: _Scene, command: QueueCommand) -> Iterator[Caution]:
    if command is QueueCommand.SUSPEND and scene.before[scene.name].state is QueueState.CLOSING:
        message = (
            f"{scene.name} was draining: suspending it cancels the close, it takes jobs again, and "
            "a resume makes it Open."
        )
        yield Caution("drain_cancelled", message)
    if command is QueueCommand.CLOSE:
        yield from _default_closes(scene)
        yield from _starting_jobs(scene)
        yield from _held_jobs(scene)


def _default_closes(scene: _Scene) -> Iterator[Caution]:
    """By its own name, or with a queue above it."""
    before = scene.before.get(DEFAULT)
    after = scene.after.get(DEFAULT)
    if (
        before is not None
        and after is not None
        and before.state not in _CLOSED
        and after.state in _CLOSED
    ):
        yield Caution("default_closes", DEFAULT_CLOSES)


def _starting_jobs(scene: _Scene) -> Iterator[Caution]:
    freed = []
    for queue in scene.waiting_in_subtree():
        if scene.before[queue].held_by and not scene.after[queue].held_by:
            freed.append(queue)
    if freed:
        waiting = sum((scene.loads[queue] for queue in freed), NO_LOAD)
        amount = (
            f"{counted(waiting.waiting, 'waiting podgroup')} "
            f"({counted(waiting.pods_waiting, 'pod')}) in {listed(freed)}"
        )
        yield Caution(
            "pending_jobs_start",
            f"Closing ends the suspension: {amount} may start, because a Closing queue is "
            "scheduled.",
        )


def _held_jobs(scene: _Scene) -> Iterator[Caution]:
    held = []
    for queue in scene.waiting_in_subtree():
        if scene.after[queue].held_by:
            held.append(queue)
    above = scene.after[scene.name].held_by
    if held and above:
        what = f"{above} is suspended, so what waits in {listed(held)} is held"
        yield Caution(
            "held_above", f"{what} and {scene.name} cannot finish closing: resume {above}."
        )
    elif held:
        holders = dict.fromkeys(scene.after[queue].held_by for queue in held)
        amount = counted(
            sum(scene.loads[queue].waiting for queue in held),
            "podgroup that waits",
            "podgroups that wait",
        )
        one = "is suspended by its own request and holds"
        several = "are suspended by their own request and hold"
        what = f"{listed(holders, one, several)} {amount}"
        yield Caution(
            "held_below",
            f"{what}: {scene.name} cannot finish closing until {listed(holders, 'is', 'are')} "
            "resumed.",
        )
