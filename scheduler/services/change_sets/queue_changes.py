"""The queues of a change set: rights, the rules over the whole, and then every step.

Nothing of it is written before everything is admitted (`TreeEdit`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from scheduler.admission.facts import Facts
from scheduler.admission.reading.queue import QueueReading, read_queue
from scheduler.admission.rules.change_sets import QueueChanges, check_changes
from scheduler.admission.rules.queues import raise_if_refused
from scheduler.admission.violations import Notice, Verdict
from scheduler.domain.change_sets import ChangeItem
from scheduler.domain.lifecycle import NotAllowed, QueueCommand, command_for
from scheduler.domain.queues import ROOT, QueueSpec, QueueState, QueueTree
from scheduler.domain.resources import Resources
from scheduler.models import Queue
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import Actor
from scheduler.services.cluster.queue_writes import are_queues_in_cluster
from scheduler.services.cluster.server_refusals import Attempt
from scheduler.services.files.merge import readable
from scheduler.services.queues.commands import QueueOrder, carry_out_order
from scheduler.services.queues.create_update import make_in, respecify_in
from scheduler.services.queues.deletion import delete_in
from scheduler.services.queues.transaction import TreeEdit


@dataclass(frozen=True, slots=True)
class _Wishes:
    """The queues of a set, read."""

    made: tuple[QueueReading, ...]
    changed: tuple[QueueSpec, ...]
    gone: tuple[str, ...]

    @property
    def changes(self) -> QueueChanges:
        made = [reading.spec for reading in self.made]
        return QueueChanges([*made, *self.changed], self.gone)


def change_queues(items: tuple[ChangeItem, ...], by: Actor) -> tuple[Notice, ...]:
    """Inside of a `tree_transaction`.

    Raises `Forbidden`, `OutOfSight`, `NotAllowed`, and `Rejected` with every violation.
    """
    if are_queues_in_cluster():
        _close_in_cluster(items, by)
    edit = TreeEdit(with_pods=True)
    verdict = _change_in(edit, edit.facts, items, by)
    edit.settle()
    return verdict.notices


def _close_in_cluster(items: tuple[ChangeItem, ...], by: Actor) -> None:
    """Queues that are to go are closed first, in a step of their own: a cluster deletes only
    queues that it knows to be closed. Whoever closes them may be slow: then `ClusterAway` is
    raised, and the set can be applied again.
    """
    doomed = [item.name for item in items if item.wanted is None]
    if not doomed:
        return
    edit = TreeEdit(with_pods=True)
    for item in items:
        if item.wanted is None and edit.tree[item.name].state is not QueueState.CLOSED:
            carry_out_order(edit, _closing(item.name, by), by)
    edit.settle()
    for name in _not_closed(doomed):
        message = f"The cluster has not told yet that the queue {name} is closed."
        raise Attempt("queue", name, "deleted", name).away(message)


def _not_closed(names: list[str]) -> list[str]:
    open_ones = Queue.objects.filter(name__in=names).exclude(state=QueueState.CLOSED.value)
    return list(open_ones.order_by("name").values_list("name", flat=True))


@dataclass(frozen=True, slots=True)
class PlannedQueues:
    """The tree as it would be, what was known about its queues, and what is worth knowing."""

    tree: QueueTree
    facts: Facts
    notices: tuple[Notice, ...]


def plan_queues(items: tuple[ChangeItem, ...], by: Actor, total: Resources | None) -> PlannedQueues:
    """The tree as the items would make it, without a lock and without writing anything.

    `total` is what the cluster would have then. Raises what `change_queues` raises.
    """
    edit = TreeEdit(locks=False)
    verdict = _change_in(edit, replace(edit.facts, total=total), items, by)
    return PlannedQueues(edit.tree, edit.facts, verdict.notices)


def _change_in(edit: TreeEdit, facts: Facts, items: tuple[ChangeItem, ...], by: Actor) -> Verdict:
    edit.expect_many()
    wishes = _read(items, edit.tree)
    _require_rights(edit, wishes, by)
    verdict = _verdict_on(wishes, edit.tree, facts)
    raise_if_refused(verdict)
    _make(edit, wishes, by)
    _change(edit, wishes, by)
    _delete(edit, wishes, by)
    return verdict


def _read(items: tuple[ChangeItem, ...], tree: QueueTree) -> _Wishes:
    made = []
    changed = []
    gone = []
    for item in items:
        if item.wanted is None:
            gone.append(item.name)
        elif item.base is None:
            made.append(readable(read_queue(item.wanted, imported=True)))
        else:
            changed.append(readable(read_queue(item.wanted, tree[item.name])).spec)
    return _Wishes(tuple(made), tuple(changed), tuple(gone))


def _require_rights(edit: TreeEdit, wishes: _Wishes, by: Actor) -> None:
    """On the tree as it is, with the new queues in it: whoever makes one has it."""
    seen = edit.seen_by(by)
    mine = access.access_for(seen)
    parents = dict(mine.parents)
    for reading in wishes.made:
        parents[reading.spec.name] = reading.spec.parent or ROOT
    mine = replace(mine, parents=parents)
    seen = replace(seen, access=mine)
    for reading in wishes.made:
        access.require_to_create_queue(seen, reading.spec.parent or ROOT)
    for spec in wishes.changed:
        old = edit.tree[spec.name]
        access.require_to_touch_queue(seen, spec.name, old.parent or ROOT)
        access.require_queue_change(mine, old, spec)
    for name in wishes.gone:
        access.require_to_delete_queue(seen, name, edit.tree[name].parent or ROOT)


def _verdict_on(wishes: _Wishes, tree: QueueTree, facts: Facts) -> Verdict:
    whole = Verdict()
    for verdict in check_changes(wishes.changes, tree, facts).values():
        whole = whole + verdict
    return whole


def _make(edit: TreeEdit, wishes: _Wishes, by: Actor) -> None:
    """Parents before their children."""
    after = wishes.changes.tree_after(edit.tree)
    for reading in sorted(wishes.made, key=lambda reading: after.depth(reading.spec.name)):
        make_in(edit, reading, by)


def _change(edit: TreeEdit, wishes: _Wishes, by: Actor) -> None:
    """Every field, and then the requested states as the commands that they are."""
    orders = []
    for spec in wishes.changed:
        old = edit.tree[spec.name]
        respecify_in(edit, old, spec, by)
        if spec.state is not old.state:
            orders += _orders(spec, old, by)
    _give(edit, orders, by)


def _orders(spec: QueueSpec, old: QueueSpec, by: Actor) -> list[QueueOrder]:
    """A Closed queue must be opened before it can be suspended."""
    reason = by.reason or "spec.state was changed"
    commands = [command_for(spec.state, old.state)]
    if old.state is QueueState.CLOSED and spec.state is QueueState.SUSPENDED:
        commands = [QueueCommand.OPEN, QueueCommand.SUSPEND]
    return [QueueOrder(spec.name, command, reason) for command in commands]


def _give(edit: TreeEdit, orders: list[QueueOrder], by: Actor) -> None:
    """Again and again while one succeeds: a parent may have to be opened before its child.

    Orders to the same queue keep their order. Raises `NotAllowed` of the first that is left.
    """
    waiting = orders
    while waiting:
        refused: list[tuple[QueueOrder, NotAllowed]] = []
        held = set()
        for order in waiting:
            problem = None
            if order.name in held:
                problem = NotAllowed("It waits.", rule_id="not_allowed", queue=order.name)
            else:
                problem = _give_one(edit, order, by)
            if problem is not None:
                held.add(order.name)
                refused.append((order, problem))
        if len(refused) == len(waiting):
            raise refused[0][1]
        waiting = [order for order, _ in refused]


def _give_one(edit: TreeEdit, order: QueueOrder, by: Actor) -> NotAllowed | None:
    try:
        carry_out_order(edit, order, by)
    except NotAllowed as problem:
        return problem
    return None


def _delete(edit: TreeEdit, wishes: _Wishes, by: Actor) -> None:
    """Children first. A queue that is not closed yet is closed: one without work is then Closed."""
    if not wishes.gone:
        return
    doomed = sorted(wishes.gone, key=edit.tree.depth, reverse=True)
    for name in reversed(doomed):
        if edit.tree[name].state is not QueueState.CLOSED and not edit.is_in_cluster:
            carry_out_order(edit, _closing(name, by), by)
    edit.renew_states()
    for name in doomed:
        delete_in(edit, name, by)


def _closing(name: str, by: Actor) -> QueueOrder:
    return QueueOrder(name, QueueCommand.CLOSE, by.reason or "it is deleted")
