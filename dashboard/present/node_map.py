"""The cluster as a map: nodes as cells, side by side with those that share a label.

Cells are put together from prepared pieces: a template loop over 5,000 nodes takes seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final
from urllib.parse import quote

from django.utils.safestring import SafeString, mark_safe

from dashboard.present.amounts import short_name, shown, with_unit
from dashboard.present.room import spread_words
from scheduler.domain.plans import counted
from scheduler.selectors.cluster.nodes import NodeRow, fragmentation

KIND: Final = "kind"
"""Grouped by the node's own kind, where no label says more."""
UNLABELLED: Final = "without this label"
LARGE: Final = 600
"""With more nodes, cells are small and show no text; their names are in their descriptions."""
MOST_GROUPS: Final = 500
"""Nodes of further groups, by name, are gathered in one."""
_MOST_KEYS = 60
_FIRST_KEYS = ("rack", "zone", "gpu", "instance-type", "kind")


def label_keys(rows: Iterable[NodeRow]) -> list[str]:
    """What nodes can be grouped by: racks, zones and models of GPUs first, then by name."""
    keys: set[str] = set()
    kinds = False
    for row in rows:
        keys.update(row.labels)
        kinds = kinds or bool(row.kind)
    if kinds:
        keys.add(KIND)
    return sorted(keys, key=_key_rank)[:_MOST_KEYS]


def _key_rank(key: str) -> tuple[int, str]:
    for number, word in enumerate(_FIRST_KEYS):
        if word in key.lower():
            return number, key
    return len(_FIRST_KEYS), key


def grouped(rows: Sequence[NodeRow], key: str) -> list[tuple[str, list[NodeRow]]]:
    """By the value of the label, those without it last. One group where there is no key."""
    if not key:
        return [("", list(rows))]
    groups: defaultdict[str, list[NodeRow]] = defaultdict(list)
    for row in rows:
        groups[_value_of(row, key)].append(row)
    lacking = groups.pop("", [])
    ordered = sorted(groups.items())
    rest = lacking
    if len(ordered) > MOST_GROUPS:
        for _, more in ordered[MOST_GROUPS:]:
            rest = [*rest, *more]
        return [*ordered[:MOST_GROUPS], ("further values", rest)]
    if rest:
        ordered.append((UNLABELLED, rest))
    return ordered


def _value_of(row: NodeRow, key: str) -> str:
    value = row.labels.get(key, "")
    if not value and key == KIND:
        return row.kind
    return value


def present_groups(rows: Sequence[NodeRow], key: str, resource: str) -> list[dict[str, Any]]:
    is_large = len(rows) > LARGE
    cells = _Cells(resource, is_large=is_large)
    groups = []
    for name, members in grouped(rows, key):
        groups.append(
            {
                "name": name,
                "summary": group_summary(members, resource),
                "cells": cells.html(members),
                "is_large": is_large,
            }
        )
    return groups


def group_summary(rows: Sequence[NodeRow], resource: str) -> str:
    """ "8 nodes, 34 of 64 GPU in use; 30 GPU free, no node with 8; 1 cordoned"."""
    words = counted(len(rows), "node")
    if resource:
        used = sum(row.used.amount(resource) for row in rows)
        whole = sum(row.allocatable.amount(resource) for row in rows)
        if whole:
            words += f", {shown(resource, used)} of {with_unit(resource, whole)} in use; "
            words += spread_words(fragmentation(rows, resource))
        else:
            words += f", none with {short_name(resource)}"
    for state in ("Cordoned", "Not ready"):
        number = sum(row.state == state for row in rows)
        if number:
            words += f"; {number} {state.lower()}"
    return words


# Cells


class _Cells:
    """Draws the cells of one resource. Nodes that are as full as another share its words."""

    def __init__(self, resource: str, *, is_large: bool) -> None:
        self.resource = resource
        self._draw = self._small if is_large else self._whole
        self._known: dict[tuple[int, int, int, str], tuple[str, str]] = {}

    def html(self, rows: Iterable[NodeRow]) -> SafeString:
        return mark_safe("".join(map(self._draw, rows)))  # noqa: S308 - escaped below

    def _whole(self, row: NodeRow) -> str:
        classes, words = self._looks(row)
        name = escape(row.name)
        state = ""
        if row.state != "Ready":
            state = f'<span class="heat-state">{row.state}</span>'
        return (
            f'<li><a class="{classes}" href="/nodes/{quote(row.name)}/" title="{name}: {words}">'
            f'<span class="heat-figures">{escape(figures(row, self.resource))}</span>'
            f'<span class="heat-name">{name}</span>{state}</a></li>'
        )

    def _small(self, row: NodeRow) -> str:
        """Without words of its own it needs a label; node-map.js shows that beside the pointer."""
        classes, words = self._looks(row)
        return (
            f'<li><a class="{classes}" href="/nodes/{quote(row.name)}/" '
            f'aria-label="{escape(row.name)}: {words}">{_MARKS[row.state]}</a></li>'
        )

    def _looks(self, row: NodeRow) -> tuple[str, str]:
        """The classes, and the sentence behind the name."""
        used = row.used.amount(self.resource)
        key = (row.allocatable.amount(self.resource), used, row.free(self.resource), row.state)
        found = self._known.get(key)
        if found is None:
            off = "" if row.takes_pods else " heat-off"
            classes = f"heat heat-{heat(row, self.resource)}{off}"
            found = self._known[key] = (classes, escape(cell_words(row, self.resource)))
        return found


_MARKS = {"Ready": "", "Cordoned": "/", "Not ready": "×"}


def heat(row: NodeRow, resource: str) -> str:
    """From 0, idle, to 10, full; "none" where the node has none of it."""
    has = row.allocatable.get(resource)
    if not has:
        return "none"
    return str(min(10, -(-row.used.amount(resource) * 10 // has)))


def figures(row: NodeRow, resource: str) -> str:
    has = row.allocatable.get(resource)
    if not has:
        return "–"
    return f"{shown(resource, row.used.amount(resource))}/{shown(resource, has)}"


def cell_words(row: NodeRow, resource: str) -> str:
    """What a cell says behind the node's name: how full it is, and its state unless Ready."""
    state = ""
    if row.state != "Ready":
        state = f", {row.state.lower()}"
    has = row.allocatable.get(resource)
    if not has:
        return f"{_lacks(resource)}{state}"
    used = row.used.amount(resource)
    in_use = f"{shown(resource, used)} of {with_unit(resource, has)} in use"
    return f"{in_use}, {free_words(row, resource)}{state}"


def free_words(row: NodeRow, resource: str) -> str:
    if not row.ready:
        return "nothing free while it is not ready"
    words = f"{with_unit(resource, row.free(resource))} free"
    if row.unschedulable and row.free(resource):
        return f"{words} once it is uncordoned"
    return words


def _lacks(resource: str) -> str:
    if not resource:
        return "has nothing"
    return f"has no {short_name(resource)}"
