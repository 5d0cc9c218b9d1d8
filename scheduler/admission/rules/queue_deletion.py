"""May this queue be deleted, with what is in it and below it?"""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.admission.facts import Facts
from scheduler.admission.violations import (
    Verdict,
    Violation,
)
from scheduler.domain.plans import counted, listed
from scheduler.domain.queues import DEFAULT, ROOT, QueueState, QueueTree


def check_delete(name: str, tree: QueueTree, facts: Facts, *, cascade: bool = False) -> Verdict:
    """Everything that prevents deleting the queue.

    With `cascade`, also what prevents deleting any queue below it.
    """
    if name not in tree and name not in PROTECTED:
        message = f"There is no queue {name} to delete."
        return Verdict((Violation("queue_not_found", name, "metadata.name", message),))
    doomed = [name]
    if cascade and name not in PROTECTED:
        doomed = deletion_order(name, tree)
    blockers: list[Violation] = []
    for queue in doomed:
        blockers += _deletion_blockers(queue, tree, facts, cascade)
    return Verdict(tuple(blockers))


def deletion_order(name: str, tree: QueueTree) -> list[str]:
    """The queue and all below it, children before their parents."""
    return [*(queue.name for queue in reversed(tree.descendants(name))), name]


def _deletion_blockers(
    name: str,
    tree: QueueTree,
    facts: Facts,
    cascade: bool,
) -> Iterator[Violation]:
    if name in PROTECTED:  # nothing else is said: whatever one does about it, it stays
        yield Violation("protected_queue", name, "metadata.name", _NEEDED[name])
        return
    children = [child.name for child in tree.children(name)]
    if children and not cascade:
        message = f"{name} has {counted(len(children), 'child', 'children')} ({listed(children)})."
        yield Violation(
            "has_children",
            name,
            "metadata.name",
            message,
            "delete the children first, or the whole subtree at once (cascade=true)",
        )
    state = facts.states.get(name, QueueState.OPEN)
    if state is not QueueState.CLOSED:
        message = f"{name} is {state}; only a Closed queue can be deleted."
        yield Violation(
            "queue_not_closed",
            name,
            "status.state",
            message,
            f"close {name} and wait until it is Closed",
        )
    yield from _work_in(name, tree, facts)


def _work_in(name: str, tree: QueueTree, facts: Facts) -> Iterator[Violation]:
    live = facts.live_podgroups.get(name, 0)
    if live:
        message = f"{name} has {counted(live, 'podgroup')} not Completed."
        yield Violation(
            "has_podgroups", name, "status", message, "let them finish, or cancel their jobs"
        )
    pods = facts.allocated_pods.get(name, 0)
    if pods and tree.is_leaf(name):  # a parent's allocated pods are those of its children
        yield Violation(
            "has_allocated_pods",
            name,
            "status.allocated.pods",
            f"{name} has {counted(pods, 'allocated pod')}.",
            "let them end",
        )


PROTECTED = (ROOT, DEFAULT)

_NEEDED = {
    ROOT: "root cannot be deleted: all other queues are below it.",
    DEFAULT: "default cannot be deleted: jobs that name no queue go there.",
}
