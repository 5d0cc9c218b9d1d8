"""A file of objects made true: created or updated, all or nothing.

And the same as a question, with every violation as the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction
from django.db.models import QuerySet

from scheduler.admission.defaults import Path, queue_defaults
from scheduler.admission.reading.queue import name_of, place_of, queue_manifest
from scheduler.admission.reading.workload import read_pod
from scheduler.admission.violations import Notice, Rejected, Violation
from scheduler.domain.access import Access, Forbidden, OutOfSight, Permission
from scheduler.domain.jobs import NotPossible
from scheduler.domain.lifecycle import NotAllowed
from scheduler.domain.plans import counted
from scheduler.models import Job, Namespace, Node, Pod, PodGroup, PriorityClass, Queue
from scheduler.selectors.files import manifests
from scheduler.selectors.queues.facts import queue_tree
from scheduler.services.accounts import access
from scheduler.services.accounts.access import require_job_command
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.cluster import nodes
from scheduler.services.files import catalog
from scheduler.services.jobs import changes, podgroups, submit
from scheduler.services.locks import alone_with_pods, lock_tree
from scheduler.services.queues import create_update, orders
from scheduler.services.queues.transaction import TreeWork
from scheduler.services.queues.warnings import warnings_wait

MOST_OBJECTS: Final = 5000
_NAMESPACED: Final = ("PodGroup", "Job", "Pod")
_PRUNED: Final[dict[str, Any]] = {
    "Queue": Queue,
    "Job": Job,
    "PodGroup": PodGroup,
    "Node": Node,
    "Namespace": Namespace,
    "PriorityClass": PriorityClass,
}
_ORDER: Final = ("Namespace", "PriorityClass", "Node", "Queue", "PodGroup", "Job", "Pod", "Command")


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one object. `diff` holds (field, before, after)."""

    index: int
    kind: str
    name: str
    operation: str  # created, updated, unchanged, executed, deleted
    message: str = ""
    diff: tuple[tuple[str, Any, Any], ...] = ()
    notices: tuple[Notice, ...] = ()

    @property
    def changed(self) -> bool:
        return self.operation != "unchanged"


@dataclass(slots=True)
class Item:
    """One object on its way in, and what stands against it so far."""

    index: int
    manifest: Any
    kind: str
    name: str
    done: Applied | None = None
    violations: tuple[Violation, ...] = ()
    notices: tuple[Notice, ...] = ()
    by_state: bool = False
    forbidden: Forbidden | None = None
    contradicts: int | None = None  # the place of another wish for the same object


def apply_documents(
    documents: Iterable[object],
    *,
    by: Actor = SYSTEM,
    dry_run: bool = False,
    prune: str = "",
    shown: Iterable[str] | None = None,
) -> list[Applied]:
    """Create or update every object, or none.

    `prune` is a label: objects of the file's kinds that wear it and are not named go.

    `shown` are those that the caller was shown beforehand, such as "queue/team-a": where others
    would go now, nothing is done. Raises `Rejected` with all violations of all objects, each with
    the place of its document in front of the field.
    """
    items = _read_items(documents)
    with transaction.atomic():
        run = _Run(by, with_pods=_moves_pods(items, prune))
        with warnings_wait() as asked:
            _apply_rounds(items, run)
            _raise_if_any(items)
            done = [item.done for item in items if item.done is not None]
            done += _prune_unnamed(items, prune, run, shown) if prune else []
        run.finish(warns=bool(asked))
        transaction.set_rollback(dry_run)
    return done


def check_documents(documents: Iterable[object], *, by: Actor = SYSTEM) -> list[Item]:
    """The same without writing: each object with what stands against it, the others of the set
    taken as there.
    """
    items = _read_items(documents)
    with transaction.atomic():
        with warnings_wait():
            _apply_rounds(items, _Run(by, with_pods=_moves_pods(items)))
        transaction.set_rollback(True)
    return items


def _moves_pods(items: list[Item], prune: str = "") -> bool:
    """Whether the tree and the pods may both be needed: they are taken in this order, whatever the
    order of the documents.
    """
    kinds = {item.kind for item in items}
    return bool(prune) or (kinds != {"Queue"} and bool(kinds & {"Queue", "Node", "Command"}))


class _Run:
    """One file on its way in: who brings it, and the work at the tree, as long as only queues are
    looked at.
    """

    def __init__(self, by: Actor, *, with_pods: bool) -> None:
        self.by = by
        self._work: TreeWork | None = None
        if with_pods:
            lock_tree()
            alone_with_pods()

    @property
    def work(self) -> TreeWork:
        if self._work is None:
            self._work = TreeWork(with_pods=True)
            self._work.expect_many()
        return self._work

    def put_down(self) -> None:
        """What was done to queues is written: others are about to read it, or to change what was
        read.
        """
        if self._work is not None:
            self._work.settle()
            self._work = None

    def finish(self, *, warns: bool) -> None:
        if warns:
            self.work.warns = True
        self.put_down()


def _read_items(documents: Iterable[object]) -> list[Item]:
    flat: list[object] = []
    for document in documents:
        if isinstance(document, Mapping) and document.get("kind") == "List":
            inner = document.get("items")
            flat += inner if isinstance(inner, list) else [document]
        elif isinstance(document, list):
            flat += document
        elif document is not None:
            flat.append(document)
    if not flat:
        raise Rejected(
            [
                Violation(
                    "nothing_given",
                    "",
                    "",
                    "There is no object in the request.",
                    "send at least one",
                )
            ]
        )
    if len(flat) > MOST_OBJECTS:
        raise Rejected(
            [
                Violation(
                    "too_many",
                    "",
                    "",
                    f"There are {len(flat)} objects; {MOST_OBJECTS} at once are the most.",
                    "split it",
                )
            ]
        )
    items = []
    for index, manifest in enumerate(flat):
        items.append(Item(index, manifest, _kind_of(manifest), name_of(manifest)))
    _mark_contradictions(items)
    return sorted(items, key=lambda item: _ORDER.index(item.kind) if item.kind in _ORDER else -1)


def _mark_contradictions(items: list[Item]) -> None:
    """Of two different wishes for one object none could be kept: the file would change it back and
    forth whenever it is applied.
    """
    first: dict[tuple[str, str, str], Item] = {}
    for item in items:
        if item.kind == "Command" or not item.name:
            continue
        known = first.setdefault((item.kind, *_place_of(item)), item)
        if known.manifest != item.manifest:
            item.contradicts = known.index


def _place_of(item: Item) -> tuple[str, str]:
    """Namespace and name; the namespace says nothing where the kind has none."""
    namespace, name = _name_and_namespace(item.manifest)
    return (namespace if item.kind in _NAMESPACED else "", name)


def _kind_of(manifest: object) -> str:
    if isinstance(manifest, Mapping):
        kind = manifest.get("kind")
    else:
        kind = None
    if isinstance(kind, str):
        return kind
    return ""


def _apply_rounds(items: list[Item], run: _Run) -> None:
    """Again and again while something succeeds: a child may stand before its parent, a quota may
    need another to change first.
    """
    waiting = items
    while waiting:
        for item in waiting:
            _try_item(item, run)
        failed = [item for item in waiting if item.done is None]
        if len(failed) == len(waiting):
            return
        waiting = failed


def _try_item(item: Item, run: _Run) -> None:
    item.violations = ()
    item.by_state = False
    item.forbidden = None
    try:
        item.done = _apply_one(item, run)
        item.notices = item.done.notices
    except Rejected as refusal:
        item.violations = refusal.violations
        item.notices = refusal.notices
        item.by_state = refusal.by_state
    except NotAllowed as refusal:
        item.violations = (
            Violation(refusal.rule_id, refusal.queue, "spec.state", refusal.message, refusal.fix),
        )
        item.by_state = True
    except NotPossible as refusal:
        item.violations = (Violation("not_possible", "", "action", f"{item.name}: {refusal}.", ""),)
        item.by_state = True
    except Forbidden as refusal:
        item.violations = (Violation("permission_missing", refusal.queue, "", str(refusal), ""),)
        item.forbidden = refusal
    except (OutOfSight, ObjectDoesNotExist):
        item.violations = (
            Violation(
                "queue_not_found",
                item.name,
                "metadata.name",
                f"There is no {item.kind} {item.name}.",
                "",
            ),
        )


def _apply_one(item: Item, run: _Run) -> Applied:
    if not isinstance(item.manifest, Mapping):
        raise Rejected(
            [
                Violation(
                    "invalid_value",
                    "",
                    "",
                    "An object with apiVersion, kind and metadata was expected.",
                    "",
                )
            ]
        )
    if item.kind not in _ORDER:
        if item.kind:
            message = f"kind is “{item.kind[:40]}”; these are known: {', '.join(_ORDER)}."
        else:
            message = "kind must be given."
        raise Rejected(
            [Violation("invalid_kind", "", "kind", message, f"write one of {', '.join(_ORDER)}")]
        )
    if item.contradicts is not None:
        message = (
            f"{item.kind} {item.name} stands in this file twice, and document {item.contradicts} "
            "says something else of it."
        )
        raise Rejected(
            [Violation("named_twice", "", "metadata.name", message, "leave one of them out")]
        )
    if item.kind in _IN_THE_TREE and not (
        item.kind == "Command" and orders.is_for_job(item.manifest)
    ):
        # decided in memory: what is refused leaves nothing behind
        return _IN_THE_TREE[item.kind](item, run)
    run.put_down()
    with transaction.atomic():
        return _HANDLERS[item.kind](item, run.by)


def _raise_if_any(items: list[Item]) -> None:
    refused = sorted((item for item in items if item.violations), key=lambda item: item.index)
    if not refused:
        return
    if all(item.forbidden for item in refused):
        assert refused[0].forbidden is not None
        raise refused[0].forbidden
    several = len(items) > 1
    violations = [
        replace(
            violation,
            field=f"[{item.index}].{violation.field}".rstrip(".") if several else violation.field,
        )
        for item in refused
        for violation in item.violations
    ]
    raise Rejected(
        violations,
        [notice for item in items for notice in item.notices],
        by_state=all(item.by_state for item in refused),
    )


# One kind after the other


def _name_and_namespace(manifest: Mapping[str, Any]) -> tuple[str, str]:
    return place_of(manifest)[0], name_of(manifest)


def _visible_row(rows: QuerySet[Any], by: Actor) -> Any:
    """The stored object, or None.

    One out of sight is not there: whoever may make one of its name finds that taken, and nobody
    else.
    """
    row = rows.first()
    if row is not None and _is_in_sight(row, access.access_for(by)):
        return row
    return None


def _merged_over(
    stored: Mapping[str, Any],
    given: Mapping[str, Any],
    defaults: Sequence[tuple[Path, object]] = (),
) -> dict[str, Any]:
    """What the file names replaces what is stored, field by field of the spec.

    What it leaves out stays.

    What creation would fill in by `defaults` counts as left out, and a file says nothing by what
    some server stamped on its object.
    """
    merged: dict[str, Any] = {**given, "spec": given.get("spec")}
    if isinstance(given.get("spec"), Mapping) or given.get("spec") is None:
        filled_in = {path[1] for path, _ in defaults if path[0] == "spec" and len(path) == 2}
        merged["spec"] = {
            **stored["spec"],
            **{
                key: value
                for key, value in (given.get("spec") or {}).items()
                if key not in filled_in
            },
        }
    if isinstance(given.get("metadata"), Mapping):
        own = {key: value for key, value in given["metadata"].items() if key != "uid"}
        kept = {
            key: stored["metadata"][key]
            for key in ("labels", "annotations")
            if own.get(key) is None
        }
        merged["metadata"] = {**own, **kept}
    return merged


def _differences(before: Any, after: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        keys = sorted({*before, *after}, key=str)
        result: list[tuple[str, Any, Any]] = []
        for key in keys:
            for found in _differences(
                before.get(key), after.get(key), f"{path}.{key}" if path else str(key)
            ):
                result.append(found)
        return result
    if before == after:
        return []
    return [(path, before, after)]


def _updated_result(
    item: Item, name: str, before: Any, after: Any, notices: tuple[Notice, ...], message: str = ""
) -> Applied:
    diff = tuple(_differences(before, after))
    if diff:
        operation = "updated"
    else:
        operation = "unchanged"
    return Applied(
        item.index, item.kind, name, operation, message or f"{name} is {operation}.", diff, notices
    )


def _created_result(
    item: Item, name: str, after: Any, notices: tuple[Notice, ...], message: str = ""
) -> Applied:
    return Applied(
        item.index,
        item.kind,
        name,
        "created",
        message or f"{name} is created.",
        tuple(_differences({}, after)),
        notices,
    )


def _apply_queue(item: Item, run: _Run) -> Applied:
    name = name_of(item.manifest)
    work = run.work
    # as `_visible_row`
    if name not in work.tree or not access.access_for(work.seen_by(run.by)).may(
        Permission.VIEW, name
    ):
        made = create_update.create_in(work, item.manifest, run.by, imported=True)
        return _created_result(
            item, name, queue_manifest(work.tree[name]), made.notices, made.message
        )
    before = queue_manifest(work.tree[name])
    spec: Any = before["spec"]
    # a state left out is not asked for
    stored = {
        **before,
        "spec": {key: value for key, value in spec.items() if key != "state"},
    }
    saved = create_update.update_in(
        work, name, _merged_over(stored, item.manifest, queue_defaults(item.manifest)), run.by
    )
    return _updated_result(
        item, name, before, queue_manifest(work.tree[name]), saved.notices, saved.message
    )


def _apply_job(item: Item, by: Actor) -> Applied:
    namespace, name = _name_and_namespace(item.manifest)
    row = _visible_row(
        Job.objects.select_related("queue").filter(namespace=namespace, name=name), by
    )
    if row is None:
        made = submit.submit_job(item.manifest, by=by)
        return _created_result(
            item, f"{namespace}/{name}", manifests.stored_job(made.job), made.notices
        )
    before = manifests.stored_job(row)
    saved = changes.update_job(namespace, name, _merged_over(before, item.manifest), by=by)
    return _updated_result(
        item, f"{namespace}/{name}", before, manifests.stored_job(saved.job), saved.notices
    )


def _apply_podgroup(item: Item, by: Actor) -> Applied:
    namespace, name = _name_and_namespace(item.manifest)
    row = _visible_row(
        PodGroup.objects.select_related("queue").filter(namespace=namespace, name=name), by
    )
    if row is None:
        made = podgroups.submit_podgroup(item.manifest, by=by)
        return _created_result(
            item, f"{namespace}/{name}", manifests.stored_podgroup(made.podgroup), made.notices
        )
    before = manifests.stored_podgroup(row)
    saved = podgroups.update_podgroup(namespace, name, _merged_over(before, item.manifest), by=by)
    return _updated_result(
        item,
        f"{namespace}/{name}",
        before,
        manifests.stored_podgroup(saved.podgroup),
        saved.notices,
    )


def _apply_pod(item: Item, by: Actor) -> Applied:
    namespace, name = _name_and_namespace(item.manifest)
    if not name:
        message = (
            "metadata.name must be given: a file that is applied again must find what it made."
        )
        raise Rejected(
            [
                Violation(
                    "name_required",
                    "",
                    "metadata.name",
                    message,
                    "write a name instead of generateName",
                )
            ]
        )
    row = _visible_row(
        Pod.objects.select_related("podgroup__queue").filter(namespace=namespace, name=name), by
    )
    if row is not None:
        require_job_command(by, row.podgroup.queue.place, row.podgroup.owner)
        message = f"{namespace}/{name} is there; a pod cannot be changed."
        notices = read_pod(item.manifest).notices
        return Applied(
            item.index, item.kind, f"{namespace}/{name}", "unchanged", message, notices=notices
        )
    made = podgroups.submit_pod(item.manifest, by=by)
    return _created_result(item, f"{namespace}/{name}", {}, made.notices)


def _apply_node(item: Item, by: Actor) -> Applied:
    name = name_of(item.manifest)
    row = Node.objects.filter(name=name).first()
    if row is None:
        made = nodes.create_node(item.manifest, by=by)
        return _created_result(item, name, manifests.stored_node(made.node), made.notices)
    before = manifests.stored_node(row)
    if item.manifest.get("status") is not None:
        given = item.manifest
    else:
        given = {**item.manifest, "status": before["status"]}
    saved = nodes.update_node(name, _merged_over(before, given), by=by)
    return _updated_result(item, name, before, manifests.stored_node(saved.node), saved.notices)


def _apply_catalog(kind: catalog.Kind) -> Callable[[Item, Actor], Applied]:
    def handle(item: Item, by: Actor) -> Applied:
        name = name_of(item.manifest)
        row = kind.model.objects.filter(name=name).first()
        if row is None:
            made = catalog.create_entry(kind, item.manifest, by=by)
            return _created_result(item, name, kind.stored(made.row), made.notices)
        before = kind.stored(row)
        saved = catalog.update_entry(
            kind, name, _merged_over(before, kind.shaped(item.manifest)), by=by
        )
        return _updated_result(item, name, before, kind.stored(saved.row), saved.notices)

    return handle


def _job_command(item: Item, by: Actor) -> Applied:
    return _executed_result(item, orders.give_order(item.manifest, by=by))


def _queue_command(item: Item, run: _Run) -> Applied:
    return _executed_result(item, orders.give_order_in(run.work, item.manifest, run.by))


def _executed_result(item: Item, ordered: orders.Ordered) -> Applied:
    if ordered.changed:
        operation = "executed"
    else:
        operation = "unchanged"
    return Applied(
        item.index,
        item.kind,
        f"{ordered.order.action} {ordered.order.name}",
        operation,
        ordered.message,
        notices=ordered.notices,
    )


_IN_THE_TREE: Final[dict[str, Callable[[Item, _Run], Applied]]] = {
    "Queue": _apply_queue,
    "Command": _queue_command,
}
_HANDLERS: Final[dict[str, Callable[[Item, Actor], Applied]]] = {
    "Job": _apply_job,
    "PodGroup": _apply_podgroup,
    "Pod": _apply_pod,
    "Node": _apply_node,
    "Namespace": _apply_catalog(catalog.NAMESPACES),
    "PriorityClass": _apply_catalog(catalog.PRIORITY_CLASSES),
    "Command": _job_command,
}


# Pruning


def _prune_unnamed(
    items: list[Item], label: str, run: _Run, shown: Iterable[str] | None
) -> list[Applied]:
    """Objects of the file's kinds that wear the label and that the file does not name.

    Queues leaf-first.
    """
    run.put_down()
    doomed = _rows_not_named(items, label, run.by)
    if shown is not None and set(shown) != {_deletion_message(kind, row) for kind, row in doomed}:
        message = (
            f"What wears {label} has changed since it was shown: {counted(len(doomed), 'object')} "
            "would be deleted now."
        )
        raise Rejected(
            [Violation("tree_changed", "", "prune", message, "look again, and decide anew")],
            by_state=True,
        )
    for kind, row in doomed:
        _delete_row(kind, row, run)
    return [
        Applied(
            -1,
            kind,
            _deletion_message(kind, row).partition("/")[2],
            "deleted",
            f"{row} wore {label} and is not in the file; it was deleted.",
        )
        for kind, row in doomed
    ]


def _delete_row(kind: str, row: Any, run: _Run) -> None:
    if kind == "Queue":
        create_update.delete_in(run.work, row.name, run.by)
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
    named = {(item.kind, *_place_of(item)) for item in items if isinstance(item.manifest, Mapping)}
    seen = access.access_for(by)
    found: list[tuple[str, Any]] = []
    for kind in sorted(
        {item.kind for item in items} & _PRUNED.keys(), key=_ORDER.index, reverse=True
    ):
        for row in _rows_with_label(_PRUNED[kind], key, value):
            if (kind, getattr(row, "namespace", ""), row.name) not in named and _is_in_sight(
                row, seen
            ):
                found.append((kind, row))
    return found


def _is_in_sight(row: Any, seen: Access) -> bool:
    """What the caller may not see is not there for them.

    What belongs to no queue is for those who may delete it, who see everything.
    """
    if isinstance(row, Pod):
        gang = row.podgroup
    else:
        gang = row
    queue = getattr(gang, "queue", None)
    if isinstance(row, Queue):
        queue = row
    return queue is None or seen.may(Permission.VIEW, queue.place)


def _deletion_message(kind: str, row: Any) -> str:
    """ "queue/team-a", "job/default/train": as `shown` names it."""
    if kind in _NAMESPACED:
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
