"""The life of a queue.

Its state follows from the states that users asked for in the tree (the requested states). A
command changes one of them.

`derive` is the whole model of states; `judge` says what a command would mean for one queue; `plan`
(in `plans.py`) what it would cause.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from scheduler.domain.queues import ROOT, QueueSpec, QueueState, QueueTree

CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"

REQUESTABLE_STATES = (QueueState.OPEN, QueueState.CLOSED, QueueState.SUSPENDED)
TAKES_WORK = frozenset({QueueState.OPEN, QueueState.SUSPENDED})


class QueueCommand(StrEnum):
    OPEN = "OpenQueue"
    CLOSE = "CloseQueue"
    SUSPEND = "SuspendQueue"
    RESUME = "ResumeQueue"

    @property
    def verb(self) -> str:
        return self.value.removesuffix("Queue").lower()


_COMMANDS: dict[str, QueueCommand] = {}
"""By every spelling: `CloseQueue`, `Close`, `close`."""

for _command in QueueCommand:
    _COMMANDS[_command.value] = _command
    _COMMANDS[_command.value.removesuffix("Queue")] = _command
    _COMMANDS[_command.verb] = _command


def command_named(text: object) -> QueueCommand | None:
    """The command for "OpenQueue", or its short forms "Open" and "open"."""
    if isinstance(text, str):
        return _COMMANDS.get(text)
    return None


class NotAllowed(Exception):
    """The state of the queue or of an ancestor forbids the command.

    `first` names the queue to open or resume before.
    """

    def __init__(
        self,
        message: str,
        *,
        rule_id: str,
        queue: str,
        first: str = "",
        fix: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.rule_id = rule_id
        self.queue = queue
        self.first = first
        self.fix = fix


@dataclass(frozen=True, slots=True)
class DerivedState:
    """What a queue is.

    `closed_by` and `suspended_by` name the ancestor a state is inherited from, "" where it is the
    queue's own request.

    `held_by` names the topmost queue, itself included, whose suspension keeps its pods from being
    scheduled.
    """

    state: QueueState
    closed_by: str = ""
    suspended_by: str = ""
    held_by: str = ""

    @property
    def is_scheduled(self) -> bool:
        return self.state is not QueueState.UNKNOWN and not self.held_by


_OPEN = DerivedState(QueueState.OPEN)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The topmost queue, from the root down to this one, that is to be Closed.

    And the topmost one that is to be Suspended.
    """

    closed: str = ""
    suspended: str = ""


_NOTHING_WANTED = _Wanted()


def derive(
    tree: QueueTree,
    live: Mapping[str, int],
    unknown: Collection[str] = frozenset(),
) -> dict[str, DerivedState]:
    """The state of every queue.

    It follows from what users asked for, from the number of own podgroups that are not Completed,
    and from which queues are stored as Unknown.
    """
    order = _parents_first(tree)
    wanted: dict[str, _Wanted] = {}
    for name in order:
        wanted[name] = _wanted_below(tree, name, wanted.get(tree.parent_of(name), _NOTHING_WANTED))
    standings: dict[str, DerivedState] = {}
    for name in reversed(order):
        above = wanted.get(tree.parent_of(name), _NOTHING_WANTED)
        state = _derive_state(tree, name, wanted[name], live, unknown, standings)
        standings[name] = _derived_state(tree[name].state, state, above, wanted[name])
    return {name: standings[name] for name in order}


def derived_state_of(
    tree: QueueTree,
    name: str,
    live: Mapping[str, int],
    unknown: Collection[str] = frozenset(),
) -> DerivedState:
    """What one queue is: as `derive` has it, looking only at the way up and at what is below."""
    return derive(tree.branch(name), live, unknown)[name]


def _parents_first(tree: QueueTree) -> list[str]:
    """Every queue after its parent.

    A ring of parents, which only broken data has, is entered at its first name.
    """
    tops = []
    for queue in tree:
        if tree.parent_of(queue.name) not in tree:
            tops.append(queue.name)
    starts = [*tops, *(ring[0] for ring in tree.cycles())]
    order: dict[str, None] = {}
    for start in starts:
        order.setdefault(start)
        order.update(dict.fromkeys(queue.name for queue in tree.descendants(start)))
    return list(order)


def _wanted_below(tree: QueueTree, name: str, above: _Wanted) -> _Wanted:
    requested = tree[name].state
    if requested is QueueState.CLOSED and not above.closed:
        return _Wanted(name, above.suspended)
    if requested is QueueState.SUSPENDED and not above.suspended:
        return _Wanted(above.closed, name)
    return above


def _derive_state(
    tree: QueueTree,
    name: str,
    wanted: _Wanted,
    live: Mapping[str, int],
    unknown: Collection[str],
    below: Mapping[str, DerivedState],
) -> QueueState:
    if wanted.closed:
        children_closed = all(_is_closed(below.get(child.name)) for child in tree.children(name))
        if children_closed and not live.get(name, 0):
            return QueueState.CLOSED
        return QueueState.CLOSING
    # closing beats it, so that an ancestor can finish closing; it shows again when that goes away
    if name in unknown:
        return QueueState.UNKNOWN
    if wanted.suspended:
        return QueueState.SUSPENDED
    return QueueState.OPEN


def _is_closed(standing: DerivedState | None) -> bool:
    return standing is None or standing.state is QueueState.CLOSED


def _derived_state(
    requested: QueueState,
    state: QueueState,
    above: _Wanted,
    wanted: _Wanted,
) -> DerivedState:
    closed_by = ""
    if wanted.closed and requested is not QueueState.CLOSED:
        closed_by = above.closed
    suspended_by = ""
    if state is QueueState.SUSPENDED and requested is not QueueState.SUSPENDED:
        suspended_by = above.suspended
    return DerivedState(state, closed_by, suspended_by, held_by=wanted.suspended)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a command means for a queue: a new requested state, a reason for none, or a refusal."""

    requested: QueueState | None = None
    nothing_because: str = ""
    refusal: NotAllowed | None = None


@dataclass(frozen=True, slots=True)
class _Case:
    """One queue as a command finds it.

    The ancestors are the topmost ones with that requested state; `first_above` the topmost with
    either.
    """

    name: str
    requested: QueueState
    standing: DerivedState
    is_unknown: bool
    closed_above: str
    suspended_above: str
    first_above: str
    live: int


def judge(
    tree: QueueTree,
    standings: Mapping[str, DerivedState],
    name: str,
    command: QueueCommand,
    *,
    live: Mapping[str, int],
    unknown: Collection[str] = frozenset(),
) -> Judgement:
    """Whether the command changes the queue's requested state, and if not why not.

    Cheap: looks at the queue and the way up only.
    """
    if name not in tree:
        return Judgement(
            refusal=NotAllowed(f"There is no queue {name}.", rule_id="queue_not_found", queue=name)
        )
    if name == ROOT:
        return _judge_root(command)
    return _JUDGES[command](_case_of(tree, standings, name, live, unknown))


def _names_in_state(queues: Iterable[QueueSpec], state: QueueState) -> list[str]:
    return [queue.name for queue in queues if queue.state is state]


def _case_of(
    tree: QueueTree,
    standings: Mapping[str, DerivedState],
    name: str,
    live: Mapping[str, int],
    unknown: Collection[str],
) -> _Case:
    above = []
    for ancestor in reversed(tree.ancestors(name)):
        above.append(tree[ancestor])
    closed = _names_in_state(above, QueueState.CLOSED)
    suspended = _names_in_state(above, QueueState.SUSPENDED)
    either = [queue.name for queue in above if queue.state is not QueueState.OPEN]
    return _Case(
        name=name,
        requested=tree[name].state,
        standing=standings.get(name, _OPEN),
        is_unknown=name in unknown,
        closed_above=_first_name(closed),
        suspended_above=_first_name(suspended),
        first_above=_first_name(either),
        live=live.get(name, 0),
    )


def _first_name(names: list[str]) -> str:
    if names:
        return names[0]
    return ""


def _judge_root(command: QueueCommand) -> Judgement:
    if command in (QueueCommand.OPEN, QueueCommand.RESUME):
        return Judgement(nothing_because="root is always Open, so there is nothing to do.")
    message = (
        f"root cannot be {_PARTICIPLE[command]}: it holds all other queues. "
        f"{command.verb.capitalize()} the queues below it instead."
    )
    return Judgement(refusal=NotAllowed(message, rule_id="protected_queue", queue=ROOT))


_PARTICIPLE = {
    QueueCommand.CLOSE: "closed",
    QueueCommand.SUSPEND: "suspended",
    QueueCommand.OPEN: "opened",
    QueueCommand.RESUME: "resumed",
}


def _judge_open(case: _Case) -> Judgement:
    if case.first_above:
        return _parent_first(
            case,
            QueueCommand.OPEN,
            case.first_above,
            case.first_above == case.closed_above,
        )
    if case.requested is QueueState.OPEN and not case.is_unknown:
        return Judgement(nothing_because=f"{case.name} is already Open.")
    return Judgement(requested=QueueState.OPEN)


def _judge_close(case: _Case) -> Judgement:
    if case.requested is not QueueState.CLOSED:
        return Judgement(requested=QueueState.CLOSED)
    if case.standing.state is QueueState.CLOSED:
        return Judgement(nothing_because=f"{case.name} is already Closed.")
    return Judgement(
        nothing_because=f"{case.name} is already Closing; {_podgroups_left(case.live)}."
    )


def _podgroups_left(live: int) -> str:
    if not live:
        return "its children are not Closed yet"
    if live == 1:
        return "1 podgroup is left in it"
    return f"{live} podgroups are left in it"


def _judge_suspend(case: _Case) -> Judgement:
    if case.closed_above:
        return _parent_first(case, QueueCommand.SUSPEND, case.closed_above, ancestor_is_closed=True)
    if case.standing.state is QueueState.CLOSED:
        return Judgement(
            nothing_because=(
                f"{case.name} is Closed, and a Closed queue ignores a suspend; open it first."
            )
        )
    if case.requested is QueueState.SUSPENDED:
        return Judgement(nothing_because=f"{case.name} is already Suspended.")
    return Judgement(requested=QueueState.SUSPENDED)


def _judge_resume(case: _Case) -> Judgement:
    inherits = (
        bool(case.suspended_above)
        and not case.closed_above
        and case.requested is not QueueState.CLOSED
    )
    if inherits:
        return _parent_first(
            case, QueueCommand.RESUME, case.suspended_above, ancestor_is_closed=False
        )
    if case.requested is QueueState.SUSPENDED:
        return Judgement(requested=QueueState.OPEN)
    return Judgement(
        nothing_because=(
            f"{case.name} is {case.standing.state}, not Suspended, so there is nothing to resume."
        )
    )


def _parent_first(
    case: _Case,
    command: QueueCommand,
    ancestor: str,
    ancestor_is_closed: bool,
) -> Judgement:
    condition = "suspended"
    remedy = "resume"
    if ancestor_is_closed:
        condition = "closed"
        remedy = "open"
    message = (
        f"{case.name} cannot be {_PARTICIPLE[command]} while {ancestor} above it is {condition}: "
        f"{remedy} {ancestor} first."
    )
    fix = f"{remedy} {ancestor} first"
    return Judgement(
        refusal=NotAllowed(
            message,
            rule_id="parent_not_open",
            queue=case.name,
            first=ancestor,
            fix=fix,
        )
    )


_JUDGES: dict[QueueCommand, Callable[[_Case], Judgement]] = {
    QueueCommand.OPEN: _judge_open,
    QueueCommand.CLOSE: _judge_close,
    QueueCommand.SUSPEND: _judge_suspend,
    QueueCommand.RESUME: _judge_resume,
}


def obstacles(
    tree: QueueTree,
    standings: Mapping[str, DerivedState],
    name: str,
    *,
    live: Mapping[str, int],
    unknown: Collection[str] = frozenset(),
) -> dict[QueueCommand, str]:
    """For each command why it would do nothing, "" where it would: what a disabled button says."""
    return dict(_obstacles_to_commands(tree, standings, name, live, unknown))


def _obstacles_to_commands(
    tree: QueueTree,
    standings: Mapping[str, DerivedState],
    name: str,
    live: Mapping[str, int],
    unknown: Collection[str],
) -> Iterator[tuple[QueueCommand, str]]:
    for command in QueueCommand:
        judgement = judge(tree, standings, name, command, live=live, unknown=unknown)
        if judgement.refusal:
            yield command, judgement.refusal.message
        else:
            yield command, judgement.nothing_because


def command_for(requested: QueueState, before: QueueState) -> QueueCommand:
    """The command that a change of `spec.state` stands for."""
    if requested is QueueState.OPEN:
        if before is QueueState.SUSPENDED:
            return QueueCommand.RESUME
        return QueueCommand.OPEN
    if requested is QueueState.CLOSED:
        return QueueCommand.CLOSE
    return QueueCommand.SUSPEND


def state_named(text: str) -> QueueState | None:
    """The state that a stored text stands for.

    An empty one is Open, one that does not exist None.
    """
    if text == "":
        return QueueState.OPEN
    return next((state for state in QueueState if state.value == text), None)


_REQUESTED_BY_STATUS = {
    "": QueueState.OPEN,
    "Open": QueueState.OPEN,
    "Closing": QueueState.CLOSED,
    "Closed": QueueState.CLOSED,
    "Suspended": QueueState.SUSPENDED,
    "Unknown": QueueState.OPEN,
}


def requested_state_of(state: str, annotations: Mapping[str, str]) -> QueueState | None:
    """The requested state behind a `status.state` that came without a `spec.state`.

    None for a state that does not exist.

    The mark that a queue was closed by its parent means that nobody asked for it on this queue.
    """
    requested = _REQUESTED_BY_STATUS.get(state)
    if requested is QueueState.CLOSED and annotations.get(CLOSED_BY_PARENT) == "true":
        return QueueState.OPEN
    return requested
