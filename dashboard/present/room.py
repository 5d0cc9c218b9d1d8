"""Free room in words and figures: how it is spread, and which gangs would start in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dashboard.present.amounts import in_page_order, short_name, shown, with_unit
from scheduler.domain.node_fit import TITLES, Fit, NodeVerdict
from scheduler.domain.plans import counted
from scheduler.domain.resources import (
    QuantityError,
    Resources,
    format_quantity,
    is_accelerator,
    is_bytes,
    parse_quantity,
    units_per_one,
)
from scheduler.models import PodGroup
from scheduler.selectors.cluster.nodes import Fragmentation, NodeRow, fragmentation
from scheduler.selectors.jobs.listing import WAITING
from scheduler.services.cluster.room import LargestGang, NodeWaiting

SIZES: Final = (1, 2, 4, 8)
"""Whole devices, or cores, that one pod asks for."""
GANGS: Final = (2, 4, 8)
"""Pods of the gangs that are counted."""
_MOST_IN_SHAPE = 8
_GIBI = 2**30


class BadShape(ValueError):
    """A shape that cannot be read. The message says what to write."""


# How what is free is spread


def spread_words(found: Fragmentation) -> str:
    """How much is free and in which sizes: "16 GPU free, no node with 8"."""
    resource = found.resource
    if not found.free:
        return f"no {short_name(resource)} free on any node that takes pods"
    words = f"{with_unit(resource, found.free)} free"
    missing = [size for size, nodes in found.room_for if not nodes]
    if missing and found.free >= missing[0]:
        return f"{words}, no node with {shown(resource, missing[0])}"
    return f"{words}, up to {shown(resource, found.largest)} on one node"


def present_spread(found: Fragmentation) -> dict[str, Any]:
    resource = found.resource
    room = []
    for size, nodes in found.room_for:
        room.append({"size": with_unit(resource, size), "nodes": nodes})
    return {
        "title": short_name(resource),
        "words": spread_words(found),
        "warning": found.is_fragmented,
        "room": room,
        "whole": with_unit(resource, found.whole),
    }


def spreads(rows: Sequence[NodeRow]) -> list[Fragmentation]:
    """Of every resource that any node has, in the order of pages."""
    return [fragmentation(rows, name) for name in resources_of(rows)]


def resources_of(rows: Iterable[NodeRow]) -> list[str]:
    names: set[str] = set()
    for allocatable in {row.allocatable for row in rows}:
        names.update(allocatable)
    return in_page_order(names)


def spread_object(found: Fragmentation) -> dict[str, Any]:
    resource = found.resource
    rooms = []
    for size, nodes in found.room_for:
        rooms.append({"size": format_quantity(resource, size), "nodes": nodes})
    return {
        "resource": resource,
        "total": format_quantity(resource, found.whole),
        "free": format_quantity(resource, found.free),
        "largest": format_quantity(resource, found.largest),
        "fragmented": found.is_fragmented,
        "message": spread_words(found),
        "room": rooms,
    }


# Shapes of pods


def usual_shapes(resource: str) -> list[Resources]:
    """Pods that ask for 1, 2, 4 and 8 of it and nothing else; of bytes, so many Gi."""
    unit = units_per_one(resource)
    if is_bytes(resource):
        unit = _GIBI
    return [Resources({resource: size * unit}) for size in SIZES]


def first_resource(resources: Sequence[str]) -> str:
    """What gangs are counted in where nobody says anything: accelerators, else the first."""
    for name in resources:
        if is_accelerator(name):
            return name
    return next(iter(resources), "")


def read_shape(text: str, resources: Sequence[str]) -> Resources:
    """What one pod asks for: "gpu=2,cpu=8,memory=32Gi". Raises `BadShape`."""
    amounts: dict[str, int] = {}
    for part in text.split(","):
        name, sign, quantity = part.strip().partition("=")
        if not sign or not name.strip():
            raise BadShape("Write what one pod asks for as gpu=2,cpu=8,memory=32Gi.")
        known = _resource_called(name.strip(), resources)
        if known in amounts:
            raise BadShape(f"{name.strip()[:80]} is given twice.")
        amounts[known] = _amount(known, quantity.strip())
    if len(amounts) > _MOST_IN_SHAPE:
        raise BadShape(f"A shape has at most {_MOST_IN_SHAPE} resources.")
    return Resources(amounts)


def _resource_called(name: str, resources: Sequence[str]) -> str:
    for known in resources:
        if name.lower() in (known.lower(), short_name(known).lower()):
            return known
    raise BadShape(f"The cluster has no {name[:80]}. It has {', '.join(resources)}.")


def _amount(resource: str, quantity: str) -> int:
    try:
        amount = parse_quantity(resource, quantity)
    except QuantityError as error:
        raise BadShape(f"{error}.") from None
    if amount <= 0:
        raise BadShape(f"A pod must ask for more than 0 {short_name(resource)}.")
    return amount


def shape_words(shape: Mapping[str, int]) -> str:
    """ "8 GPU, 16 CPU"; bytes carry the resource's name."""
    parts = []
    for resource in in_page_order(shape):
        amount = shape[resource]
        if is_bytes(resource):
            parts.append(f"{shown(resource, amount)} {short_name(resource).lower()}")
        else:
            parts.append(with_unit(resource, amount))
    return ", ".join(parts)


# The largest gang


def largest_words(found: LargestGang, queue: str) -> str:
    """One sentence: "A gang of up to 6 pods of 8 GPU each would start now in vision." """
    where = f" in {queue}" if queue else ""
    each = f"{shape_words(found.shape)} each"
    if not found.pods:
        return f"Not even one pod of {shape_words(found.shape)} would start now{where}."
    if found.is_capped:
        return f"A gang of {found.pods} pods of {each} would start now{where}; no larger was tried."
    size = counted(found.pods, "pod")
    return f"A gang of up to {size} of {each} would start now{where}."


def gangs_that_fit(found: LargestGang) -> list[tuple[int, int]]:
    """How many gangs of 2, 4 and 8 such pods there is room for, one beside the other."""
    return [(pods, found.pods // pods) for pods in GANGS]


def present_largest(found: LargestGang, queue: str) -> dict[str, Any]:
    return {
        "shape": shape_words(found.shape),
        "pods": found.pods,
        "is_capped": found.is_capped,
        "whole": shape_words(found.shape * found.pods) if found.pods else "",
        "words": largest_words(found, queue),
        "why": found.why,
        "gangs": gangs_that_fit(found),
    }


def largest_object(found: LargestGang, queue: str) -> dict[str, Any]:
    gangs = []
    for pods, number in gangs_that_fit(found):
        gangs.append({"pods": pods, "gangs": number})
    return {
        "shape": found.shape.to_quantities(),
        "pods": found.pods,
        "capped": found.is_capped,
        "message": largest_words(found, queue),
        "why": found.why,
        "gangs": gangs,
    }


# Waiting gangs at a node


def waiting_rows(found: NodeWaiting) -> list[dict[str, Any]]:
    """Each gang with the node's verdict, and what else keeps it. One query."""
    stored = _stored_gangs(found)
    rows = []
    for gang, verdict in found.rows:
        row = stored.get(gang.key)
        if row is not None:  # it may have ended since
            rows.append(_waiting_row(verdict, row))
    return rows


def _stored_gangs(found: NodeWaiting) -> dict[str, PodGroup]:
    keys = {gang.key for gang, _ in found.rows}
    names = {key.partition("/")[2] for key in keys}
    namespaces = {key.partition("/")[0] for key in keys}
    rows = PodGroup.objects.filter(namespace__in=namespaces, name__in=names, phase__in=WAITING)
    known = {}
    for row in rows.select_related("queue"):
        known[f"{row.namespace}/{row.name}"] = row
    return known


def _waiting_row(verdict: NodeVerdict, row: PodGroup) -> dict[str, Any]:
    return {
        "namespace": row.namespace,
        "name": row.name,
        "queue": row.queue.name,
        "user": row.owner,
        "min_member": row.min_member,
        "created": row.created_at,
        "fit": verdict.fit.value,
        "title": TITLES[verdict.fit],
        "words": verdict.words,
        "pods": verdict.pods,
        "places": verdict.places,
        "short": verdict.shortages,
        "reason": row.reason_code,
        "why": row.reason_message,
    }


def waiting_object(row: Mapping[str, Any]) -> dict[str, Any]:
    short = []
    for item in row["short"]:
        name = item.resource
        short.append(
            {
                "resource": name,
                "need": format_quantity(name, item.need),
                "free": format_quantity(name, item.free),
                "limit": format_quantity(name, item.whole),
                "short": format_quantity(name, item.short),
            }
        )
    return {
        "namespace": row["namespace"],
        "name": row["name"],
        "queue": row["queue"],
        "user": row["user"],
        "minMember": row["min_member"],
        "fit": row["fit"],
        "message": row["words"],
        "pods": row["pods"],
        "places": row["places"],
        "short": short,
        "reason": row["reason"],
        "reasonMessage": row["why"],
    }


def fit_counts(found: NodeWaiting) -> list[dict[str, Any]]:
    """How many gangs stand how to the node, those that there are."""
    counts = []
    for fit in Fit:
        if found.counts[fit]:
            counts.append({"fit": fit.value, "title": TITLES[fit], "gangs": found.counts[fit]})
    return counts
