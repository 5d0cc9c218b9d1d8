"""The objects of a file: read, put in order, and what came of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from scheduler.admission.reading.queue import name_of, place_of
from scheduler.admission.violations import Notice, Rejected, Violation
from scheduler.domain.access import Forbidden

MOST_OBJECTS: Final = 5000


NAMESPACED: Final = ("PodGroup", "Job", "Pod")


APPLY_ORDER: Final = (
    "Namespace",
    "PriorityClass",
    "Group",
    "User",
    "Node",
    "Queue",
    "Grant",
    "GroupMapping",
    "Cluster",
    "Policy",
    "PriceList",
    "NoticeRule",
    "ChangeSet",
    "ChangePlan",
    "PodGroup",
    "Job",
    "Pod",
    "Command",
)


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
    contradicts: int | None = None  # the place of another document for the same object


def read_items(documents: Iterable[object]) -> list[Item]:
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
    return sorted(items, key=_place_in_order)


def _place_in_order(item: Item) -> int:
    """What has no place comes first: it is refused."""
    if item.kind in APPLY_ORDER:
        return APPLY_ORDER.index(item.kind)
    return -1


def name_and_namespace(manifest: Mapping[str, Any]) -> tuple[str, str]:
    return place_of(manifest)[0], name_of(manifest)


def _mark_contradictions(items: list[Item]) -> None:
    """Two different documents for one object cannot both be kept: the file would change it back and
    forth whenever it is applied.
    """
    first: dict[tuple[str, str, str], Item] = {}
    for item in items:
        if item.kind == "Command" or not item.name:
            continue
        known = first.setdefault((item.kind, *place_of_item(item)), item)
        if known.manifest != item.manifest:
            item.contradicts = known.index


def place_of_item(item: Item) -> tuple[str, str]:
    """Namespace and name; the namespace says nothing where the kind has none."""
    namespace, name = name_and_namespace(item.manifest)
    return (namespace if item.kind in NAMESPACED else "", name)


def _kind_of(manifest: object) -> str:
    if isinstance(manifest, Mapping):
        kind = manifest.get("kind")
    else:
        kind = None
    if isinstance(kind, str):
        return kind
    return ""


def raise_if_any(items: list[Item]) -> None:
    refused = [item for item in items if item.violations]
    refused.sort(key=lambda item: item.index)
    if not refused:
        return
    if all(item.forbidden for item in refused):
        assert refused[0].forbidden is not None
        raise refused[0].forbidden
    violations: list[Violation] = []
    for item in refused:
        for violation in item.violations:
            if len(items) > 1:
                field = f"[{item.index}].{violation.field}".rstrip(".")
                violation = replace(violation, field=field)
            violations.append(violation)
    notices: list[Notice] = []
    for item in items:
        notices += item.notices
    raise Rejected(violations, notices, by_state=all(item.by_state for item in refused))
