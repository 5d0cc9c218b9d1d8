"""Deleting what a file no longer names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.plans import counted
from scheduler.models import Job, Namespace, Node, PodGroup, PriorityClass, Queue
from scheduler.selectors.queues.facts import queue_tree
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import Actor
from scheduler.services.cluster import nodes
from scheduler.services.files import catalog
from scheduler.services.files.apply_run import ApplyRun, is_in_sight
from scheduler.services.files.items import APPLY_ORDER, NAMESPACED, Applied, Item, place_of_item
from scheduler.services.jobs import changes, podgroups
from scheduler.services.queues import deletion

_PRUNED: Final[dict[str, Any]] = {
    "Queue": Queue,
    "Job": Job,
    "PodGroup": PodGroup,
    "Node": Node,
    "Namespace": Namespace,
    "PriorityClass": PriorityClass,
}


def prune_unnamed(
    items: list[Item],
    label: str,
    run: ApplyRun,
    shown: Iterable[str] | None,
) -> list[Applied]:
    """Deletes objects of the file's kinds that have the label and that the file does not name.

    Of queues the leaves go first.
    """
    run.put_down()
    doomed = _rows_not_named(items, label, run.by)
    named = {_deletion_message(kind, row) for kind, row in doomed}
    if shown is not None and set(shown) != named:
        message = (
            f"The objects with the label {label} are not those that were shown: "
            f"{counted(len(doomed), 'object')} would be deleted now."
        )
        raise Rejected(
            [Violation("tree_changed", "", "prune", message, "look again, then decide")],
            by_state=True,
        )
    for kind, row in doomed:
        _delete_row(kind, row, run)
    deleted: list[Applied] = []
    for kind, row in doomed:
        name = _deletion_message(kind, row).partition("/")[2]
        message = f"{row} has the label {label} and is not in the file. It was deleted."
        deleted.append(Applied(-1, kind, name, "deleted", message))
    return deleted


def _delete_row(kind: str, row: Any, run: ApplyRun) -> None:
    if kind == "Queue":
        deletion.delete_in(run.edit, row.name, run.by)
    else:
        run.put_down()
        _PRUNERS[kind](row, run.by)


def _rows_not_named(items: list[Item], label: str, by: Actor) -> list[tuple[str, Any]]:
    key, equals, value = label.partition("=")
    if not equals or not key:
        raise Rejected(
            [
                Violation(
                    "invalid_parameter",
                    "",
                    "prune",
                    f"“{label[:80]}” is not a label.",
                    "write key=value",
                )
            ]
        )
    named = set()
    for item in items:
        if isinstance(item.manifest, Mapping):
            named.add((item.kind, *place_of_item(item)))
    seen = access.access_for(by)
    found: list[tuple[str, Any]] = []
    kinds = {item.kind for item in items} & _PRUNED.keys()
    for kind in sorted(kinds, key=APPLY_ORDER.index, reverse=True):
        for row in _rows_with_label(_PRUNED[kind], key, value):
            is_named = (kind, getattr(row, "namespace", ""), row.name) in named
            if not is_named and is_in_sight(row, seen):
                found.append((kind, row))
    return found


def _deletion_message(kind: str, row: Any) -> str:
    """ "queue/team-a", "job/default/train": as `shown` names it."""
    if kind in NAMESPACED:
        place = f"{row.namespace}/"
    else:
        place = ""
    return f"{kind.lower()}/{place}{row.name}"


def _rows_with_label(model: Any, key: str, value: str) -> list[Any]:
    """The objects with this label, newest first; of queues those below before those above."""
    found = model.objects.filter(labels__icontains=key).order_by("-id")
    if model in (Job, PodGroup):
        found = found.select_related("queue")
    rows = [row for row in found if row.labels.get(key) == value]
    if model is not Queue or not rows:
        return rows
    tree = queue_tree()
    return sorted(rows, key=lambda row: tree.depth(row.name), reverse=True)


_PRUNERS: Final[dict[str, Callable[[Any, Actor], object]]] = {
    "Job": lambda row, by: changes.delete_job(row.namespace, row.name, by=by),
    "PodGroup": lambda row, by: podgroups.delete_podgroup(row.namespace, row.name, by=by),
    "Node": lambda row, by: nodes.delete_node(row.name, by=by),
    "Namespace": lambda row, by: catalog.delete_entry(catalog.NAMESPACES, row.name, by=by),
    "PriorityClass": lambda row, by: catalog.delete_entry(
        catalog.PRIORITY_CLASSES, row.name, by=by
    ),
}
