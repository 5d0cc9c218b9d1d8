"""/api/v1/queuefigures/: queues by their figures, side by side, or only those that changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.filters import age_in
from dashboard.api.framework import permissions
from dashboard.api.framework.endpoint import Endpoint
from dashboard.api.framework.errors import bad_parameter
from dashboard.api.objects import iso_time, record_object
from dashboard.api.schema.openapi import Operation, Operations, query_parameter
from dashboard.present.queue_comparison import MOST, queues_below
from dashboard.present.queue_page import chosen_resource
from dashboard.present.queue_sorting import FIGURES, PLAIN, is_sortable, sorted_rows
from dashboard.present.queues import page_resources, present_queues
from scheduler.selectors.queues.changes import queues_changed_since
from scheduler.selectors.queues.listing import QueueBoard, queue_rows
from scheduler.selectors.queues.page import waiting_by_reason, waits

_QUEUE = query_parameter(
    "queue", f"Only these, up to {MOST} names joined by commas, in this order and with their waits."
)
_SORT = query_parameter(
    "sort",
    f"By {', '.join(PLAIN)}, by a resource (what is allocated of it), or by one of "
    f"{', '.join(FIGURES)} of it, such as -pending:cpu. A minus puts the largest first.",
)
_CHANGED = query_parameter(
    "changedWithin", "Only queues whose figures, quota or state changed in the last 30m, 1h, 2d …"
)


class QueueFigures(Endpoint):
    """The figures of all queues that may be seen, as the page of queues has them."""

    basename = "queuefigures"
    parameters = frozenset({"queue", "sort", "changedWithin"})
    rules: ClassVar[permissions.Rules] = {"get": permissions.signed_in}
    operations: ClassVar[Operations] = {
        "get": Operation(
            schema.QueueFigures,
            summary="Queues by their figures: sorted, only those that changed, or side by side",
            parameters=(_QUEUE, _SORT, _CHANGED),
        )
    }

    def get(self, request: Request) -> Response:
        board = queue_rows()
        visible = board.visible_to(self.access.visible)
        rows = present_queues(board)
        names = self._names(visible)
        changed = self._changed()
        sort = self._sort(page_resources(board))
        chosen = [rows[row.name] for row in visible.rows]
        ordered: list[Mapping[str, Any]] = list(chosen)
        if sort:
            ordered = sorted_rows(board, list(chosen), sort)
        if names:
            ordered = [rows[name] for name in names]
        if changed is not None:
            ordered = [row for row in ordered if row["name"] in changed]
        queues = []
        for row in ordered:
            entry = _figures_object(row, (changed or {}).get(row["name"], []))
            if names:
                entry["waits"] = _waits_object(board, row["name"])
            queues.append(entry)
        status = {"sort": sort, "queues": queues}
        return self.response_with(record_object("QueueFigures", "queues", None, {}, status))

    def _names(self, visible: QueueBoard) -> list[str]:
        given = str(self.request.query_params.get("queue") or "")
        names = list(dict.fromkeys(name for name in given.split(",") if name))
        if len(names) > MOST:
            raise bad_parameter("queue", f"queue has {len(names)} names; {MOST} are the most.")
        known = {row.name for row in visible.rows}
        for name in names:
            if name not in known:
                message = f"There is no queue “{name[:253]}” that you may see."
                raise bad_parameter("queue", message)
        return names

    def _sort(self, resources: list[str]) -> str:
        """With the full name of the resource, for a short one too."""
        given = str(self.request.query_params.get("sort") or "")
        figure, colon, short = given.removeprefix("-").rpartition(":")
        full = chosen_resource(short, resources) or short
        sort = f"{'-' * given.startswith('-')}{figure}{colon}{full}"
        if given and not is_sortable(sort, resources):
            known = [*PLAIN, *resources, *(f"{figure}:cpu" for figure in FIGURES)]
            message = f"Queues cannot be sorted by “{given[:80]}”."
            raise bad_parameter("sort", message, f"one of {', '.join(known)}")
        return sort

    def _changed(self) -> dict[str, list[str]] | None:
        """What changed in each queue; None where nobody asks."""
        given = str(self.request.query_params.get("changedWithin") or "")
        if not given:
            return None
        return queues_changed_since(timezone.now() - age_in("changedWithin", given))


def _figures_object(row: Mapping[str, Any], changed: list[str]) -> dict[str, Any]:
    resources = {}
    for name, quota in row["resources"].items():
        resources[name] = {figure: quota[figure] for figure in FIGURES}
    return {
        "name": row["name"],
        "parent": row["parent"],
        "state": row["state"],
        "weight": row["weight"],
        "priority": row["priority"],
        "running": row["subtree"]["running"],
        "waiting": row["subtree"]["pending"] + row["subtree"]["inqueue"],
        "resources": resources,
        "changed": changed,
    }


def _waits_object(board: QueueBoard, name: str) -> dict[str, Any]:
    below = queues_below(board, name)
    found = waits(below)
    return {
        "oldestSince": iso_time(found.oldest_since),
        "medianSeconds": found.median_seconds,
        "starts": found.starts,
        "finished24h": found.finished_24h,
        "reasons": waiting_by_reason(below),
    }
