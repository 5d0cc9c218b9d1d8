"""Nodes as values, and as one table of whole numbers: nodes by resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import Final

import numpy as np
import numpy.typing as npt

from scheduler.domain.pod_rules import ForeignPods
from scheduler.domain.resources import NOTHING, Resources

Amounts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NO_POD_LIMIT: Final = 1_000_000
"""Allocatable `pods` of a node that names none."""


@dataclass(frozen=True, slots=True, order=True)
class Taint:
    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Node:
    """One node. A node that is not ready keeps its row, but counts for nothing and takes nobody.

    `foreign` are pods of others on it, given only while rules between pods look at them.
    """

    name: str
    allocatable: Resources = NOTHING
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    foreign: tuple[ForeignPods, ...] = ()


def without_taken(allocatable: Resources, taken: Resources) -> Resources:
    """What a node has left for pods of ours. A resource that it does not name stays unnamed."""
    if not taken:
        return allocatable
    left: dict[str, int] = {}
    for name, amount in allocatable.items():
        left[name] = max(0, amount - taken.amount(name))
    return Resources(left)


@dataclass(eq=False, slots=False)
class NodeTable:
    """All nodes, **in the order of their names**.

    The row number is the last tie-break between nodes.

    `labels` and `taints` are per row; `allocatable` has one column per resource of the snapshot.
    """

    names: list[str]
    allocatable: Amounts
    ready: Mask
    unschedulable: Mask
    labels: list[Mapping[str, str]]
    taints: list[tuple[Taint, ...]]
    foreign: list[tuple[ForeignPods, ...]] = field(default_factory=list)  # empty: there are none

    def __post_init__(self) -> None:
        if any(left >= right for left, right in pairwise(self.names)):
            raise ValueError("nodes must come in the order of their names, each once")

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def rows(self) -> dict[str, int]:
        """Row number by name."""
        return {name: row for row, name in enumerate(self.names)}

    @cached_property
    def has_taints(self) -> bool:
        """Whether any node has one."""
        return any(self.taints)

    @classmethod
    def build(cls, nodes: Iterable[Node], resources: Sequence[str]) -> NodeTable:
        ordered = sorted(nodes, key=attrgetter("name"))
        ready = [node.ready for node in ordered]
        unschedulable = [node.unschedulable for node in ordered]
        return cls(
            names=[node.name for node in ordered],
            allocatable=allocatable_matrix([node.allocatable for node in ordered], resources),
            ready=np.array(ready, dtype=np.bool_),
            unschedulable=np.array(unschedulable, dtype=np.bool_),
            labels=[node.labels for node in ordered],
            taints=[tuple(node.taints) for node in ordered],
            foreign=_foreign_pods(ordered),
        )


def _foreign_pods(nodes: Sequence[Node]) -> list[tuple[ForeignPods, ...]]:
    if not any(node.foreign for node in nodes):
        return []
    return [node.foreign for node in nodes]


def allocatable_matrix(amounts: Sequence[Mapping[str, int]], resources: Sequence[str]) -> Amounts:
    """One row per node; a node that does not name `pods` takes as many as there is room for."""
    unnamed = {"pods": NO_POD_LIMIT}
    rows = []
    for row in amounts:
        rows.append([row.get(name, unnamed.get(name, 0)) for name in resources])
    return np.array(rows, dtype=np.int64).reshape(len(amounts), len(resources))
