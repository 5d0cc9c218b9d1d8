"""Documents, forms and files read into the items of a change set.

Only the shape of an object is judged here. The rules judge the whole set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from scheduler.admission.defaults import queue_defaults
from scheduler.admission.reading.cluster import read_node
from scheduler.admission.reading.queue import name_of, queue_manifest, read_queue
from scheduler.admission.violations import Notice, Rejected, Violation
from scheduler.domain.change_sets import (
    KINDS,
    NODE,
    POLICY,
    POLICY_TEXT,
    QUEUE,
    THE_POLICY,
    ChangeItem,
    Manifest,
    with_item,
)
from scheduler.models import Node
from scheduler.selectors.change_sets.objects import Key, manifests_now
from scheduler.selectors.files.manifests import stored_node
from scheduler.services.cluster.nodes import node_columns
from scheduler.services.files.apply_kinds import merged_over
from scheduler.services.files.items import Item, read_items
from scheduler.services.files.merge import readable
from scheduler.services.sessions.policies import check_policy
from scheduler.services.sessions.presets import preset_text

PATCH: Final = "$patch"
DELETE: Final = "delete"
"""A document with `$patch: delete` names an object that is to go, as in a patch of Kubernetes."""
MOST_ITEMS: Final = 2000


def items_from(
    documents: Iterable[object], items: tuple[ChangeItem, ...] = ()
) -> tuple[ChangeItem, ...]:
    """These items, and what the documents ask for over them.

    Raises `Rejected` with every flaw of shape.
    """
    return items_read(read_items(documents), items)


def items_read(given: Sequence[Item], items: tuple[ChangeItem, ...] = ()) -> tuple[ChangeItem, ...]:
    """The same, of documents that were read already."""
    keys = [(item.kind, _name_in(item.kind, item.manifest)) for item in given]
    now = manifests_now([*keys, *(item.key for item in items)])
    problems: list[Violation] = []
    for document, key in zip(given, keys, strict=True):
        place = ""
        if len(given) > 1:
            place = f"[{document.index}]."
        try:
            if document.contradicts is not None:
                raise _refusal(
                    "named_twice", "metadata.name", f"{key[1]} is named twice.", "keep one"
                )
            items = with_item(items, _item_of(key, document.manifest, items, now))
        except Rejected as refusal:
            problems += [_placed(violation, place) for violation in refusal.violations]
    if len(items) > MOST_ITEMS:
        message = f"A change set holds at most {MOST_ITEMS} objects, not {len(items)}."
        problems.append(Violation("too_many", "", "", message, "split it"))
    if problems:
        raise Rejected(problems)
    return items


def remarks_on(documents: Iterable[object]) -> tuple[Notice, ...]:
    """Fields of these documents that nobody knows. They are left out, so it must be told."""
    found = []
    for document in read_items(documents):
        for notice in _notices_of(document):
            if notice.code == "unknown_field" and notice.field != PATCH:
                words = f"{document.kind} {document.name}: {notice.message}"
                found.append(replace(notice, message=words))
    return tuple(found)


def _notices_of(document: Item) -> tuple[Notice, ...]:
    if document.kind == QUEUE:
        return read_queue(document.manifest, imported=True).notices
    if document.kind == NODE:
        return read_node(document.manifest).notices
    return ()


def _placed(violation: Violation, place: str) -> Violation:
    return Violation(
        violation.rule_id,
        violation.queue,
        f"{place}{violation.field}",
        violation.message,
        violation.fix,
    )


def _refusal(rule_id: str, field: str, message: str, fix: str = "") -> Rejected:
    return Rejected([Violation(rule_id, "", field, message, fix)])


def _name_in(kind: str, manifest: Any) -> str:
    if kind == POLICY:
        return THE_POLICY
    return name_of(manifest)


def _item_of(
    key: Key,
    manifest: Any,
    items: tuple[ChangeItem, ...],
    now: Mapping[Key, Manifest],
) -> ChangeItem:
    kind, name = key
    if kind not in KINDS:
        message = f"A change set holds {', '.join(KINDS)}; “{kind[:40]}” it cannot hold."
        raise _refusal("invalid_kind", "kind", message, f"write one of {', '.join(KINDS)}")
    if not name:
        raise _refusal("name_required", "metadata.name", "metadata.name must be given.")
    earlier = next((item for item in items if item.key == key), None)
    base = now.get(key)
    present = base
    if earlier is not None:
        base = earlier.base
        present = earlier.wanted
    wanted = _wanted(kind, name, manifest, present)
    if base is None and wanted is None:
        raise _refusal("not_found", "metadata.name", f"There is no {kind} {name} to delete.")
    return ChangeItem(kind, name, base, wanted)


def _wanted(kind: str, name: str, manifest: Any, present: Manifest | None) -> Manifest | None:
    if isinstance(manifest, Mapping) and PATCH in manifest:
        if manifest[PATCH] != DELETE:
            message = f"{PATCH} is {str(manifest[PATCH])[:40]}; only {DELETE} is known."
            raise _refusal("invalid_value", PATCH, message, f"write {DELETE}")
        if kind == POLICY:
            raise _refusal("invalid_value", PATCH, "There is always a policy.")
        return None
    if kind == QUEUE:
        return _wanted_queue(manifest, present)
    if kind == NODE:
        return _wanted_node(name, manifest, present)
    return _wanted_policy(manifest)


def _wanted_queue(manifest: Any, present: Manifest | None) -> Manifest:
    if present is None:
        return queue_manifest(readable(read_queue(manifest, imported=True)).spec)
    merged = merged_over(present, manifest, queue_defaults(manifest))
    return written_queue(merged, present)


def written_queue(manifest: object, present: Manifest | None) -> Manifest:
    """A manifest as the server writes it: 1000m is 1."""
    old = None
    if present is not None:
        known = read_queue(present, imported=True).value
        if known is not None:
            old = known.spec
    return queue_manifest(readable(read_queue(manifest, old)).spec)


def _wanted_node(name: str, manifest: Any, present: Manifest | None) -> Manifest:
    if present is not None:
        given = manifest
        if isinstance(manifest, Mapping) and manifest.get("status") is None:
            given = {**manifest, "status": present["status"]}
        manifest = merged_over(present, given)
    return written_node(name, manifest)


def written_node(name: str, manifest: object) -> Manifest:
    value = readable(read_node(manifest), name)
    return stored_node(Node(name=name, **node_columns(value)))


def _wanted_policy(manifest: Any) -> Manifest:
    text = _policy_text(manifest.get("spec"))
    check_policy(text)
    return {POLICY_TEXT: text}


def _policy_text(spec: object) -> str:
    """As a PUT of the policy takes it: the text, or the name of a preset."""
    given: Mapping[str, Any] = {}
    if isinstance(spec, Mapping):
        given = spec
    text = given.get(POLICY_TEXT)
    preset = given.get("preset")
    if text is None and isinstance(preset, str):
        return preset_text(preset)
    if isinstance(text, str) and preset is None:
        return text
    message = (
        "A policy needs either spec.policy, its text, or spec.preset, the name of a preset: one "
        "of them, as text."
    )
    raise _refusal("invalid_value", "spec.policy", message, "write one of the two")


def written(kind: str, name: str, manifest: Manifest, present: Manifest | None) -> Manifest:
    """A merged manifest as the server writes it."""
    if kind == QUEUE:
        return written_queue(manifest, present)
    if kind == NODE:
        return written_node(name, manifest)
    return manifest
