"""Queues as pages and the API show them, in three queries.

Specification, figures of the last session, and counts of gangs.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import add
from typing import Any

from django.db.models import Count, TextField
from django.db.models.functions import Cast

from scheduler.domain.queue_fields import TREE_FIELDS, names_of
from scheduler.domain.queues import ROOT
from scheduler.domain.resources import NOTHING, Resources
from scheduler.models import ClusterState, PodGroup, Queue

PHASES = ("Pending", "Inqueue", "Running", "Unknown", "Completed")
Counts = tuple[int, int, int, int, int]  # in the order of PHASES
_NONE: Counts = (0, 0, 0, 0, 0)

_PLAIN = (
    "id",
    "name",
    "parent_id",
    "weight",
    "priority",
    "reclaimable",
    "wish",
    "state",
    "closed_by",
    "suspended_by",
    "state_since",
    "planned_deletion",
    *names_of(TREE_FIELDS),
)
_SPEC_AMOUNTS = ("capability", "deserved", "guarantee")
_FIGURES = ("allocated", "leaving", "promised", "asked", "lacking", "deserved", "real_capability")


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One queue at one moment.

    `figures` are None until a session has looked at it: unknown, which is not zero.
    """

    name: str
    parent: str
    depth: int
    is_leaf: bool
    weight: int
    priority: int
    reclaimable: bool
    wish: str
    state: str
    closed_by: str
    suspended_by: str
    state_since: Any
    drain_total: int | None  # how many gangs there were to drain when it began to close
    is_doomed: bool  # to be deleted when it has drained
    warnings: tuple[Mapping[str, Any], ...]
    capability: Resources
    deserved: Resources
    guarantee: Resources
    figures: QueueFiguresRow | None
    own: Counts
    subtree: Counts
    texts: Mapping[str, str]  # the fields of the table that each row of the tree shows


@dataclass(frozen=True, slots=True)
class QueueFiguresRow:
    """What the last session found: sums over the queue and everything below it."""

    allocated: Resources  # what pods hold on nodes: bound, running or leaving
    leaving: Resources
    promised: Resources
    asked: Resources  # what pods wait for, in suspended queues too, without jobs that can never run
    lacking: Resources
    deserved: Resources
    real_capability: Resources | None


@dataclass(frozen=True, slots=True)
class QueueBoard:
    """All queues in the order of the tree, root first, siblings by name.

    `total` is what the whole cluster has.
    """

    rows: tuple[QueueRow, ...]
    total: Resources

    def row(self, name: str) -> QueueRow:
        """Raises `KeyError` for a queue that is not on the board."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    def visible_to(self, names: Collection[str] | None) -> QueueBoard:
        """Only these queues; all of them for None."""
        if names is None:
            return self
        return QueueBoard(tuple(row for row in self.rows if row.name in names), self.total)


def queue_rows() -> QueueBoard:
    """The whole tree as it is now.

    The number of queries does not depend on the number of queues.
    """
    raw = _read_queues()
    own = _gang_counts()
    children = _children(raw)
    ordered = list(_in_tree_order(raw, children))
    subtree = _rolled_up(ordered, own)
    names = {}
    for queue in raw:
        names[queue["id"]] = queue["name"]
    rows = []
    for queue, depth in ordered:
        parent = names.get(queue["parent_id"], "")
        is_leaf = queue["id"] not in children
        rows.append(_row(queue, depth, parent, is_leaf, own, subtree))
    return QueueBoard(tuple(rows), cluster_total())


def cluster_total() -> Resources:
    """What the nodes have together as the last session saw them; nothing before the first one."""
    state = ClusterState.objects.only("total").first()
    if state is None:
        return NOTHING
    total: Resources = state.total
    return total


def _read_queues() -> list[dict[str, Any]]:
    """Amounts come as the text they are stored as.

    Most of them repeat. Reading each text once is what makes this fast.
    """
    texts = {}
    for name in _SPEC_AMOUNTS:
        texts[f"spec_{name}"] = Cast(name, TextField())
    texts |= {f"now_{name}": Cast(f"figures__{name}", TextField()) for name in _FIGURES}
    texts |= {
        "warning_text": Cast("warnings", TextField()),
        "condition_text": Cast("conditions", TextField()),
    }
    return list(Queue.objects.order_by("name").annotate(**texts).values(*_PLAIN, *texts))


@lru_cache(maxsize=16_384)
def _amounts(text: str | None) -> Resources:
    if text and text != "null":
        return Resources(json.loads(text))
    return NOTHING


@lru_cache(maxsize=4_096)
def _warnings(text: str | None) -> tuple[Mapping[str, Any], ...]:
    if text and text != "null":
        return tuple(json.loads(text))
    return ()


@lru_cache(maxsize=4_096)
def _drain_total(text: str | None) -> int | None:
    if not text or text == "null":
        return None
    for condition in json.loads(text):
        if condition.get("type") == "Draining":
            return condition.get("total")  # type: ignore[no-any-return]
    return None


def _gang_counts() -> dict[int, Counts]:
    counts: dict[int, list[int]] = {}
    gangs = PodGroup.objects.order_by().values_list("queue_id", "phase")
    for queue_id, phase, count in gangs.annotate(count=Count("id")):
        of_queue = counts.setdefault(queue_id, [0] * len(PHASES))
        of_queue[PHASES.index(phase)] = count
    return {queue_id: tuple(numbers) for queue_id, numbers in counts.items()}  # type: ignore[misc]


def _children(raw: Iterable[dict[str, Any]]) -> dict[int | None, list[dict[str, Any]]]:
    children: dict[int | None, list[dict[str, Any]]] = {}
    for queue in raw:
        children.setdefault(queue["parent_id"], []).append(queue)
    return children


def _in_tree_order(
    raw: Iterable[dict[str, Any]], children: Mapping[int | None, list[dict[str, Any]]]
) -> Iterable[tuple[dict[str, Any], int]]:
    """Parents before their children.

    What hangs in a ring of parents comes last, at depth 1, so that nothing is hidden.
    """
    seen: set[int] = set()
    stack = [(queue, 0) for queue in reversed(children.get(None, []))]
    while stack:
        queue, depth = stack.pop()
        seen.add(queue["id"])
        yield queue, depth
        for child in reversed(children.get(queue["id"], [])):
            stack.append((child, depth + 1))
    for queue in raw:
        if queue["id"] not in seen:
            yield queue, 1


def _rolled_up(
    ordered: list[tuple[dict[str, Any], int]], own: Mapping[int, Counts]
) -> dict[int, Counts]:
    sums = {}
    for queue, _ in ordered:
        sums[queue["id"]] = own.get(queue["id"], _NONE)
    for queue, _ in reversed(ordered):  # children before their parents
        parent = queue["parent_id"]
        if parent in sums:
            sums[parent] = tuple(map(add, sums[parent], sums[queue["id"]]))
    return sums


def _row(
    queue: dict[str, Any],
    depth: int,
    parent: str,
    is_leaf: bool,
    own: Mapping[int, Counts],
    subtree: Mapping[int, Counts],
) -> QueueRow:
    return QueueRow(
        name=queue["name"],
        parent=parent,
        depth=depth,
        is_leaf=is_leaf and queue["name"] != ROOT,
        weight=queue["weight"],
        priority=queue["priority"],
        reclaimable=queue["reclaimable"],
        wish=queue["wish"],
        state=queue["state"],
        closed_by=queue["closed_by"],
        suspended_by=queue["suspended_by"],
        state_since=queue["state_since"],
        drain_total=_drain_total(queue["condition_text"]),
        is_doomed=queue["planned_deletion"] is not None,
        warnings=_warnings(queue["warning_text"]),
        capability=_amounts(queue["spec_capability"]),
        deserved=_amounts(queue["spec_deserved"]),
        guarantee=_amounts(queue["spec_guarantee"]),
        figures=_figures(queue),
        own=own.get(queue["id"], _NONE),
        subtree=subtree[queue["id"]],
        texts={field.name: queue[field.name] for field in TREE_FIELDS},
    )


def _figures(queue: dict[str, Any]) -> QueueFiguresRow | None:
    if queue["now_allocated"] is None:
        return None
    limit = queue["now_real_capability"]
    return QueueFiguresRow(
        allocated=_amounts(queue["now_allocated"]),
        leaving=_amounts(queue["now_leaving"]),
        promised=_amounts(queue["now_promised"]),
        asked=_amounts(queue["now_asked"]),
        lacking=_amounts(queue["now_lacking"]),
        deserved=_amounts(queue["now_deserved"]),
        real_capability=None if limit in (None, "null") else _amounts(limit),
    )
