"""How an object of each kind is created or updated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django.db import transaction

from scheduler.admission.defaults import Path, queue_defaults
from scheduler.admission.reading.queue import name_of, queue_manifest
from scheduler.admission.reading.workload import read_pod
from scheduler.admission.violations import Notice, Rejected, Violation
from scheduler.domain.access import Permission
from scheduler.models import Job, Node, Pod, PodGroup
from scheduler.selectors.files import manifests
from scheduler.services.accounts import access
from scheduler.services.accounts.access import require_job_command
from scheduler.services.cluster import nodes
from scheduler.services.cluster.job_writes import are_jobs_in_cluster
from scheduler.services.files import catalog
from scheduler.services.files.apply_run import ApplyRun, visible_row
from scheduler.services.files.configuration import WRITTEN, write_configuration
from scheduler.services.files.items import APPLY_ORDER, Applied, Item, name_and_namespace
from scheduler.services.jobs import changes, podgroups, single_pods, submit
from scheduler.services.queues import create_update, orders


def apply_item(item: Item, run: ApplyRun) -> Applied:
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
    if item.kind not in APPLY_ORDER:
        if item.kind:
            message = f"kind is “{item.kind[:40]}”; these are known: {', '.join(APPLY_ORDER)}."
        else:
            message = "kind must be given."
        raise Rejected(
            [
                Violation(
                    "invalid_kind", "", "kind", message, f"write one of {', '.join(APPLY_ORDER)}"
                )
            ]
        )
    if item.contradicts is not None:
        message = (
            f"{item.kind} {item.name} stands in this file twice, and document {item.contradicts} "
            "says something else about it."
        )
        raise Rejected(
            [Violation("named_twice", "", "metadata.name", message, "leave one of them out")]
        )
    if is_in_the_tree(item):
        # decided in memory: what is refused leaves nothing behind
        return _IN_THE_TREE[item.kind](item, run)
    if run.is_rehearsal:
        return _HANDLERS[item.kind](item, run)
    run.put_down()
    if item.kind in ("Job", "Command") and are_jobs_in_cluster():
        run.send()
        return _HANDLERS[item.kind](item, run)  # the API server is part of no transaction
    with transaction.atomic():
        return _HANDLERS[item.kind](item, run)


def is_in_the_tree(item: Item) -> bool:
    """A queue, or a command to one."""
    if item.kind == "Command":
        return not orders.is_for_job(item.manifest)
    return item.kind in _IN_THE_TREE


def merged_over(
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
        filled_in = set()
        for path, _ in defaults:
            if path[0] == "spec" and len(path) == 2:
                filled_in.add(path[1])
        merged["spec"] = {
            **stored["spec"],
            **{
                key: value
                for key, value in (given.get("spec") or {}).items()
                if key not in filled_in
            },
        }
    if isinstance(given.get("metadata"), Mapping):
        own = {}
        for key, value in given["metadata"].items():
            if key != "uid":
                own[key] = value
        kept = {}
        for key in ("labels", "annotations"):
            if own.get(key) is None:
                kept[key] = stored["metadata"][key]
        merged["metadata"] = {**own, **kept}
    return merged


def _differences(before: Any, after: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    if before == after:
        return []
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return [(path, before, after)]
    found: list[tuple[str, Any, Any]] = []
    for key in sorted({*before, *after}, key=str):
        inner = str(key)
        if path:
            inner = f"{path}.{key}"
        found.extend(_differences(before.get(key), after.get(key), inner))
    return found


def _updated_result(
    item: Item,
    name: str,
    before: Any,
    after: Any,
    notices: tuple[Notice, ...],
    message: str = "",
) -> Applied:
    diff = tuple(_differences(before, after))
    if diff:
        operation = "updated"
    else:
        operation = "unchanged"
    return Applied(
        item.index,
        item.kind,
        name,
        operation,
        message or f"{name} is {operation}.",
        diff,
        notices,
    )


def _created_result(
    item: Item,
    name: str,
    after: Any,
    notices: tuple[Notice, ...],
    message: str = "",
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


def _apply_queue(item: Item, run: ApplyRun) -> Applied:
    name = name_of(item.manifest)
    edit = run.edit
    # as `visible_row`
    mine = access.access_for(edit.seen_by(run.by))
    if name not in edit.tree or not mine.may(Permission.VIEW, name):
        made = create_update.create_in(edit, item.manifest, run.by, imported=True)
        after = queue_manifest(edit.tree[name])
        return _created_result(item, name, after, made.notices, made.message)
    before = queue_manifest(edit.tree[name])
    spec: Any = before["spec"]
    # a state left out is not asked for
    stored = {
        **before,
        "spec": {key: value for key, value in spec.items() if key != "state"},
    }
    wanted = merged_over(stored, item.manifest, queue_defaults(item.manifest))
    saved = create_update.update_in(edit, name, wanted, run.by)
    after = queue_manifest(edit.tree[name])
    return _updated_result(item, name, before, after, saved.notices, saved.message)


def _apply_job(item: Item, run: ApplyRun) -> Applied:
    namespace, name = name_and_namespace(item.manifest)
    row = visible_row(
        Job.objects.select_related("queue").filter(namespace=namespace, name=name), run.by
    )
    if row is None:
        made = submit.submit_job(item.manifest, by=run.by, dry_run=run.is_rehearsal)
        return _created_result(
            item,
            f"{namespace}/{name}",
            manifests.stored_job(made.job),
            made.notices,
        )
    before = manifests.stored_job(row)
    wanted = merged_over(before, item.manifest)
    saved = changes.update_job(namespace, name, wanted, by=run.by, dry_run=run.is_rehearsal)
    return _updated_result(
        item,
        f"{namespace}/{name}",
        before,
        manifests.stored_job(saved.job),
        saved.notices,
    )


def _apply_podgroup(item: Item, run: ApplyRun) -> Applied:
    namespace, name = name_and_namespace(item.manifest)
    row = visible_row(
        PodGroup.objects.select_related("queue").filter(namespace=namespace, name=name), run.by
    )
    if row is None:
        made = podgroups.submit_podgroup(item.manifest, by=run.by)
        return _created_result(
            item,
            f"{namespace}/{name}",
            manifests.stored_podgroup(made.podgroup),
            made.notices,
        )
    before = manifests.stored_podgroup(row)
    wanted = merged_over(before, item.manifest)
    saved = podgroups.update_podgroup(namespace, name, wanted, by=run.by)
    return _updated_result(
        item,
        f"{namespace}/{name}",
        before,
        manifests.stored_podgroup(saved.podgroup),
        saved.notices,
    )


def _apply_pod(item: Item, run: ApplyRun) -> Applied:
    namespace, name = name_and_namespace(item.manifest)
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
    row = visible_row(
        Pod.objects.select_related("podgroup__queue").filter(namespace=namespace, name=name), run.by
    )
    if row is not None:
        require_job_command(run.by, row.podgroup.queue.place, row.podgroup.owner)
        message = f"{namespace}/{name} is there; a pod cannot be changed."
        notices = read_pod(item.manifest).notices
        return Applied(
            item.index,
            item.kind,
            f"{namespace}/{name}",
            "unchanged",
            message,
            notices=notices,
        )
    made = single_pods.submit_pod(item.manifest, by=run.by)
    return _created_result(item, f"{namespace}/{name}", {}, made.notices)


def _apply_node(item: Item, run: ApplyRun) -> Applied:
    name = name_of(item.manifest)
    row = Node.objects.filter(name=name).first()
    if row is None:
        made = nodes.create_node(item.manifest, by=run.by, dry_run=run.is_rehearsal)
        return _created_result(item, name, manifests.stored_node(made.node), made.notices)
    before = manifests.stored_node(row)
    if item.manifest.get("status") is not None:
        given = item.manifest
    else:
        given = {**item.manifest, "status": before["status"]}
    wanted = merged_over(before, given)
    saved = nodes.update_node(name, wanted, by=run.by, dry_run=run.is_rehearsal)
    return _updated_result(item, name, before, manifests.stored_node(saved.node), saved.notices)


def _apply_catalog(kind: catalog.Kind) -> Callable[[Item, ApplyRun], Applied]:
    def handle(item: Item, run: ApplyRun) -> Applied:
        name = name_of(item.manifest)
        row = kind.model.objects.filter(name=name).first()
        if row is None:
            made = catalog.create_entry(kind, item.manifest, by=run.by, dry_run=run.is_rehearsal)
            return _created_result(item, name, kind.stored(made.row), made.notices)
        before = kind.stored(row)
        wanted = merged_over(before, kind.shaped(item.manifest))
        saved = catalog.update_entry(kind, name, wanted, by=run.by, dry_run=run.is_rehearsal)
        return _updated_result(item, name, before, kind.stored(saved.row), saved.notices)

    return handle


def _apply_configuration(item: Item, run: ApplyRun) -> Applied:
    outcome = write_configuration(item.kind, item.manifest, run.by)
    if outcome.before is None:
        return _created_result(item, outcome.name, {"spec": outcome.after}, ())
    before = {"spec": outcome.before}
    return _updated_result(item, outcome.name, before, {"spec": outcome.after}, ())


def _job_command(item: Item, run: ApplyRun) -> Applied:
    ordered = orders.give_order(item.manifest, by=run.by, dry_run=run.is_rehearsal)
    return _executed_result(item, ordered)


def _queue_command(item: Item, run: ApplyRun) -> Applied:
    return _executed_result(item, orders.give_order_in(run.edit, item.manifest, run.by))


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


_IN_THE_TREE: Final[dict[str, Callable[[Item, ApplyRun], Applied]]] = {
    "Queue": _apply_queue,
    "Command": _queue_command,
}


_HANDLERS: Final[dict[str, Callable[[Item, ApplyRun], Applied]]] = {
    "Job": _apply_job,
    "PodGroup": _apply_podgroup,
    "Pod": _apply_pod,
    "Node": _apply_node,
    "Namespace": _apply_catalog(catalog.NAMESPACES),
    "PriorityClass": _apply_catalog(catalog.PRIORITY_CLASSES),
    "Command": _job_command,
    **dict.fromkeys(WRITTEN, _apply_configuration),
}
