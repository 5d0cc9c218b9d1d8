"""What the OpenAPI document says about the operations at queues."""

from __future__ import annotations

from collections.abc import Mapping

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample

from dashboard.api import schema
from dashboard.api.queues.samples import MOST_SAMPLES, STEPS
from dashboard.api.schema.openapi import Operation, query_parameter
from dashboard.api.watch.endpoint import WATCH_PARAMETERS

_EXAMPLE = OpenApiExample(
    "A team's queue",
    request_only=True,
    value={
        "metadata": {"name": "team-a"},
        "spec": {
            "parent": "root",
            "weight": 4,
            "deserved": {"cpu": "64", "nvidia.com/gpu": "8"},
            "guarantee": {"resource": {"cpu": "8"}},
        },
    },
)


_COMMAND = Operation(
    schema.CommandAnswer,
    takes=schema.Reason,
    errors=(404, 409, 412),
    optional_body=True,
)
_READ = Operation(schema.Queue)
_DELETE = Operation(
    schema.DeletedQueues,
    otherwise=schema.CloseFirst,
    later=schema.CloseFirst,
    summary="Delete it now, or close it and delete it when it has drained",
    parameters=(
        query_parameter(
            "cascade", "Delete everything below it too, children first.", OpenApiTypes.BOOL
        ),
        query_parameter(
            "close_first",
            "Close it, and delete it when what is in it has ended: 202 while that takes.",
            OpenApiTypes.BOOL,
        ),
        query_parameter(
            "shown",
            "The queues that a dry run said would go, joined by commas: 409 where it would be "
            "others by now.",
        ),
    ),
)


OPERATIONS: Mapping[str, Operation] = {
    "list": Operation(
        schema.Queue,
        many=True,
        summary="All queues that you may see",
        errors=(410,),
        parameters=WATCH_PARAMETERS,
        streams=True,
    ),
    "retrieve": _READ,
    "create": Operation(
        schema.saved(schema.Queue),
        schema.QueueManifest,
        201,
        bulk=True,
        examples=(_EXAMPLE,),
    ),
    "update": Operation(schema.saved(schema.Queue), schema.QueueManifest),
    "partial_update": Operation(schema.saved(schema.Queue), schema.QueueManifest),
    "destroy": _DELETE,
    "deletion": Operation(
        schema.Deletion,
        summary=("Whether it will be deleted when it has drained, with what, and who asked for it"),
    ),
    "keep": Operation(schema.Kept, summary="Take that back: the queue stays, closed as it is"),
    "open": _COMMAND,
    "close": _COMMAND,
    "suspend": _COMMAND,
    "resume": _COMMAND,
    "children": Operation(schema.Queue, many=True),
    "tree": Operation(
        schema.QueueTree,
        otherwise=schema.FlatTree,
        parameters=(
            query_parameter(
                "flat",
                "One flat list instead of nested objects: `{results: […]}`.",
                OpenApiTypes.BOOL,
            ),
        ),
    ),
    "history": Operation(
        schema.History,
        summary="What it had, oldest first; as CSV with `Accept: text/csv`",
        parameters=(
            query_parameter(
                "step",
                "How fine.",
                {"type": "string", "enum": list(STEPS), "default": "minute"},
            ),
            query_parameter(
                "limit",
                "How many samples, the newest, at most.",
                {"type": "integer", "minimum": 1, "maximum": MOST_SAMPLES},
            ),
        ),
    ),
    "export": Operation(
        schema.Export, summary="The queue and everything below it, to be applied elsewhere"
    ),
}
