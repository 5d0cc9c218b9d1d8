"""/api/v1/cluster/fragmentation/, /api/v1/cluster/largest-gangs/ and /api/v1/nodes/NAME/waiting/:
how what is free is spread, and which gangs would start in it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.filters import one_of
from dashboard.api.framework import permissions
from dashboard.api.framework.endpoint import Endpoint
from dashboard.api.framework.errors import bad_parameter
from dashboard.api.framework.pagination import page_size
from dashboard.api.loans import queue_in
from dashboard.api.objects import record_object
from dashboard.api.schema.openapi import Operation, Operations, query_parameter
from dashboard.http.visibility import Visibility
from dashboard.present.queue_page import chosen_resource
from dashboard.present.room import (
    BadShape,
    first_resource,
    fit_counts,
    largest_object,
    read_shape,
    resources_of,
    spread_object,
    spreads,
    usual_shapes,
    waiting_object,
    waiting_rows,
)
from scheduler.domain.node_fit import Fit
from scheduler.domain.resources import Resources
from scheduler.selectors.cluster.nodes import node_rows
from scheduler.services.cluster.room import largest_gangs, waiting_at

_LONGEST_NUMBER = 7
_FITS = [fit.value for fit in Fit]
WAITING = Operation(
    schema.NodeWaiting,
    errors=(404,),
    summary="Which waiting gangs could start on this node, and what keeps them",
    parameters=(
        query_parameter(
            "fit", "Only gangs whose `fit` is this.", {"type": "string", "enum": _FITS}
        ),
        query_parameter("start", "How many gangs to leave out: status.next of the page before."),
        query_parameter("page_size", "How many gangs, from 1 to 1000. 100 where none is given."),
    ),
)


class ClusterFragmentation(Endpoint):
    """How much of each resource is free, and in which sizes."""

    basename = "cluster_fragmentation"
    rules: ClassVar[permissions.Rules] = {"get": permissions.MEMBER}
    operations: ClassVar[Operations] = {
        "get": Operation(schema.Fragmentation, summary="How what is free is spread over nodes")
    }

    def get(self, request: Request) -> Response:
        status = {"resources": [spread_object(found) for found in spreads(node_rows())]}
        return self.response_with(record_object("Fragmentation", "cluster", None, {}, status))


class ClusterLargestGangs(Endpoint):
    """Tried out on a copy of the cluster: nothing is written."""

    basename = "cluster_largest_gangs"
    parameters = frozenset({"queue", "resource", "shape"})
    rules: ClassVar[permissions.Rules] = {"get": permissions.MEMBER}
    operations: ClassVar[Operations] = {
        "get": Operation(
            schema.LargestGangs,
            summary="The largest gang that would start now, by what one pod asks for",
            parameters=(
                query_parameter("queue", "In this queue, within its limits."),
                query_parameter("resource", "Pods that ask for 1, 2, 4 and 8 of it."),
                query_parameter("shape", "What one pod asks for: gpu=2,cpu=8,memory=32Gi."),
            ),
        )
    }

    def get(self, request: Request) -> Response:
        given = request.query_params
        queue = queue_in((given.get("queue") or "").strip(), Visibility(self.access.visible))
        shapes = _shapes(given.get("resource") or "", given.get("shape") or "")
        found = largest_gangs(shapes, queue, by=self.actor)
        status = {"queue": queue, "gangs": [largest_object(one, queue) for one in found]}
        name = queue or "cluster"
        return self.response_with(record_object("LargestGangs", name, None, {}, status))


def _shapes(resource: str, shape: str) -> list[Resources]:
    """The one that is given, else the usual ones of a resource. Raises `Refusal`."""
    resources = resources_of(node_rows())
    if shape.strip():
        try:
            return [read_shape(shape, resources)]
        except BadShape as problem:
            raise bad_parameter("shape", str(problem)) from None
    wanted = resource.strip()
    chosen = chosen_resource(wanted, resources) or first_resource(resources)
    if wanted and not chosen_resource(wanted, resources):
        chosen = one_of("resource", wanted, resources)
    if not chosen:
        return []
    return usual_shapes(chosen)


def waiting_page(request: Request, node: str, visible: Collection[str] | None) -> dict[str, Any]:
    """The gangs that the reader may see, those that fit best first."""
    given = request.query_params
    wanted = given.get("fit") or ""
    fit = Fit(one_of("fit", wanted, _FITS)) if wanted else None
    found = waiting_at(node, visible, fit=fit, start=_start(given), size=page_size(request))
    status: dict[str, Any] = {"counts": [], "hidden": 0, "next": None, "gangs": []}
    if found is not None:
        status = {
            "counts": fit_counts(found),
            "hidden": found.hidden,
            "next": found.next or None,
            "gangs": [waiting_object(row) for row in waiting_rows(found)],
        }
    return record_object("NodeWaiting", node, None, {}, status)


def _start(given: Any) -> int:
    text = given.get("start") or "0"
    if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER):
        raise bad_parameter("start", f"start is “{text[:20]}”; it must be a number from 0 on.")
    return int(text)
