"""`vcctl mcp`: a server for assistants (Model Context Protocol), which only reads.

It speaks over standard input and output. Each tool asks the API with the token of this command, so
an assistant sees what the person behind it may see, and reads the same reasons as the pages have.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import typer

from dashboard.cli import VERSION
from dashboard.cli.amounts import written
from dashboard.cli.client import api, path
from dashboard.cli.commands import command
from dashboard.cli.problems import ExitCode, Problem, usage

Row = Mapping[str, Any]

_INSTRUCTIONS: Final = (
    "Reads a Fumarole installation: queues, jobs, why they wait, when they start, and what a "
    "change would do. Nothing can be changed here. Give the reasons as they are written."
)
_MOST_ROWS: Final = 200
_LONGEST_DOCUMENTS: Final = 200_000
_ENDED: Final = ("Done", "Refused", "Cancelled", "Failed")
_PATIENCE_SECONDS: Final = 120.0
_PAUSE: Final = 0.5
_MOST_COUNTED: Final = 5000
_AMOUNTS: Final = frozenset(
    (
        "admitted",
        "allocated",
        "deserved",
        "excess",
        "free",
        "freeInAll",
        "guarantee",
        "largest",
        "leaving",
        "limit",
        "need",
        "promised",
        "reserved",
        "short",
        "used",
    )
)
"""Figures that are amounts of the resource beside them. All others count something."""


def register(app: typer.Typer) -> None:
    command(app, "mcp", "vcctl mcp")(serve)


def serve() -> None:
    """Answer an assistant over standard input and output (Model Context Protocol).

    It starts this command itself, and only reads. Needs the package mcp.
    """
    server = make_server()
    api().get("users/~/")  # who cannot sign in is told so at once, not with the first question
    server.run("stdio")


def make_server() -> Any:
    """Raises `Problem` where the package is missing."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp_types import ToolAnnotations
    except ImportError:
        raise Problem(
            "vcctl mcp needs the package mcp. Install it: pip install 'fumarole[mcp]', or "
            "pip install -r requirements-mcp.txt in an installation.",
            ExitCode.USAGE,
        ) from None
    server = MCPServer("fumarole", instructions=_INSTRUCTIONS, version=VERSION, log_level="ERROR")
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    for tool in TOOLS:
        server.add_tool(_with_sentences(tool), annotations=reads)
    return server


def _with_sentences(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """A refusal is an answer that says what is wrong, not a crash."""

    @functools.wraps(tool)
    def run(**given: Any) -> dict[str, Any]:
        from mcp.server.mcpserver.exceptions import ToolError

        try:
            return tool(**given)
        except Problem as problem:
            raise ToolError(str(problem)) from None

    return run


# What can be asked. The words of each are what the assistant reads.


def explain_job(name: str, namespace: str = "default") -> dict[str, Any]:
    """Why a job waits, in words and figures: its place in line, the checks that it fails, why it
    takes no room from others, and when it is expected to start. For a job that runs or has ended,
    what it does.
    """
    found: dict[str, Any] = _with_quantities(
        api().get(path("podgroups", namespace, name, "explain"))
    )
    return found


def job_timeline(name: str, namespace: str = "default") -> dict[str, Any]:
    """What happened to a job, step by step, and what the time in between was spent on."""
    found: dict[str, Any] = _with_quantities(
        api().get(path("podgroups", namespace, name, "timeline"))
    )
    return found


def list_jobs(
    queue: str = "",
    namespace: str = "",
    phase: str = "",
    user: str = "",
    labels: str = "",
    limit: int = 50,
    cursor: str = "",
) -> dict[str, Any]:
    """Jobs, newest first, with phase, queue, owner and the reason why a waiting one waits.

    `total` is how many there are; `next` is the cursor that gives the jobs after these.

    `queue` takes in the queues below it. `phase` is one or several of Pending, Running, Completed,
    Failed, Aborted and so on, separated by commas. `labels` is a selector such as a=b,c!=d.
    """
    wanted = {"queue": queue, "namespace": namespace, "phase": phase, "user": user, "label": labels}
    jobs, counts = _listed("jobs/", limit, cursor, wanted)
    return {"jobs": [_job_line(job) for job in jobs], **counts}


def start_times(queue: str = "", limit: int = 50, cursor: str = "") -> dict[str, Any]:
    """When waiting jobs are expected to start: a range for each, and what it waits for.

    Oldest first. `queue` takes in the queues below it. `total` is how many wait; `next` is the
    cursor that gives the jobs after these.
    """
    wanted = {"queue": queue, "phase": "Pending,Inqueue", "ordering": "created"}
    waiting, counts = _listed("podgroups/", limit, cursor, wanted)
    return {"waiting": [_waiting_line(group) for group in waiting], **counts}


def list_queues(
    parent: str = "", state: str = "", labels: str = "", cursor: str = ""
) -> dict[str, Any]:
    """Queues with their state, their parent, how many gangs wait and run, and what is allocated of
    what they deserve. `state` is one or several of Open, Closing, Closed and Suspended.

    `total` is how many there are; `next` is the cursor that gives the queues after these.
    """
    wanted = {"parent": parent, "state": state, "label": labels}
    queues, counts = _listed("queues/", _MOST_ROWS, cursor, wanted)
    return {"queues": [_queue_line(queue) for queue in queues], **counts}


def queue_tree(name: str = "root") -> dict[str, Any]:
    """A queue and all queues below it, each with its children."""
    found: dict[str, Any] = _branch(api().get(path("queues", name, "tree")), [_MOST_ROWS])
    return found


def get_queue(name: str) -> dict[str, Any]:
    """One queue whole: settings, state and why, figures, conditions, warnings."""
    found: dict[str, Any] = api().get(path("queues", name))
    return found


def usage_report(
    by: str = "queue", window: str = "", queue: str = "", user: str = "", resource: str = ""
) -> dict[str, Any]:
    """Resource-hours: used, deserved, borrowed, lent, waited for, lost and idle.

    `by` is queue, user, namespace or job.
    """
    found: dict[str, Any] = _if_there(
        "usage/", "usage", by=by, window=window, queue=queue, user=user, resource=resource
    )
    return found


def node_fragmentation() -> dict[str, Any]:
    """What is free on the nodes, and how much of it is of no use because it is in pieces."""
    found: dict[str, Any] = _if_there("cluster/fragmentation/", "figures of fragmentation")
    return found


def what_if(
    documents: str = "", lost_nodes: list[str] | None = None, minutes: int = 60
) -> dict[str, Any]:
    """What a change would do, tried out on a copy of the cluster. Nothing is changed.

    `documents` is YAML: manifests of queues, nodes or the policy with the fields that are to
    change, or jobs as if they were submitted now. `lost_nodes` are tried out as lost.
    """
    if len(documents) > _LONGEST_DOCUMENTS:
        raise usage(f"documents is longer than {_LONGEST_DOCUMENTS:,} characters.")
    body: dict[str, Any] = {"minutes": minutes, "lostNodes": lost_nodes or []}
    if documents.strip():
        from dashboard.cli.files.documents import Source, documents_of

        body["documents"] = documents_of([Source("documents", documents)])
    made = api().post("previews/", body)
    found = _wait_for(made["metadata"]["name"])
    status: dict[str, Any] = found["status"]
    if status["state"] != "Done":
        raise Problem(status["message"] or status["state"])
    return {
        "takenAt": status["takenAt"],
        "warnings": made["warnings"],
        **_with_quantities(_cut(status["result"])),
    }


TOOLS: Final = (
    explain_job,
    job_timeline,
    list_jobs,
    start_times,
    list_queues,
    queue_tree,
    get_queue,
    usage_report,
    node_fragmentation,
    what_if,
)


def _listed(
    where: str, limit: int, cursor: str, wanted: Mapping[str, str]
) -> tuple[list[Row], dict[str, Any]]:
    """Some rows of a list, and of how many: from the first on, or from a cursor on."""
    size = max(1, min(limit, _MOST_ROWS))
    page = api().get(where, page_size=size, cursor=cursor, **wanted)
    after = _cursor_of(page)
    counts: dict[str, Any] = {"next": after or None}
    if not cursor:
        total = len(page["results"])
        while after and total < _MOST_COUNTED:
            others = api().get(
                where, page_size=1000, cursor=after, fields="metadata.name", **wanted
            )
            total += len(others["results"])
            after = _cursor_of(others)
        counts["total"] = f"more than {total}" if after else total
    return page["results"], counts


def _cursor_of(page: Row) -> str:
    """Of the page after it; "" where there is none."""
    return "".join(parse_qs(urlsplit(page["next"] or "").query).get("cursor", []))


def _with_quantities(value: Any, resource: str = "") -> Any:
    """Reasons and checks count in thousandths and bytes of the resource that they name: here each
    amount has its unit.
    """
    if isinstance(value, list):
        return [_with_quantities(each, resource) for each in value]
    if not isinstance(value, dict):
        return value
    named = value.get("resource")
    if isinstance(named, str):
        resource = named
    return {name: _figure(name, each, resource) for name, each in value.items()}


def _figure(name: str, value: Any, resource: str) -> Any:
    if resource and name in _AMOUNTS and type(value) is int:
        return f"{written(resource, value)} {resource}"
    return _with_quantities(value, resource)


def _if_there(where: str, what: str, **parameters: Any) -> Any:
    """Older servers do not have it."""
    try:
        return api().get(where, **parameters)
    except Problem as problem:
        if problem.code is ExitCode.NOT_FOUND and "at this address" in str(problem):
            raise Problem(f"This server has no {what}.", problem.code) from None
        raise


def _wait_for(number: str) -> Any:
    ends_at = time.monotonic() + _PATIENCE_SECONDS
    while True:
        found = api().get(path("previews", number))
        if found["status"]["state"] in _ENDED:
            return found
        if time.monotonic() > ends_at:
            api().delete(path("previews", number))
            raise Problem(
                f"The preview was not ready after {_PATIENCE_SECONDS:.0f} s and was cancelled. "
                "Try fewer minutes."
            )
        time.sleep(_PAUSE)


def _cut(result: Row) -> dict[str, Any]:
    """Long lists are cut, and say so."""
    shown = {}
    for name, value in result.items():
        if isinstance(value, list) and len(value) > _MOST_ROWS:
            shown[f"{name}LeftOut"] = len(value) - _MOST_ROWS
            value = value[:_MOST_ROWS]
        shown[name] = value
    return shown


def _job_line(job: Row) -> dict[str, Any]:
    status = job["status"]
    return {
        "namespace": job["metadata"]["namespace"],
        "name": job["metadata"]["name"],
        "queue": job["spec"]["queue"],
        "phase": status["state"]["phase"],
        "message": status["state"]["message"],
        "owner": status["owner"],
        "created": job["metadata"]["creationTimestamp"],
        "pods": {phase: status[phase] for phase in ("pending", "running", "succeeded", "failed")},
        "waitsFor": _with_quantities((status["podgroup"] or {}).get("reason")),
        "expectedStart": status["expectedStart"],
    }


def _waiting_line(group: Row) -> dict[str, Any]:
    named = group["status"]["job"] or group["metadata"]
    return {
        "namespace": named["namespace"],
        "name": named["name"],
        "queue": group["spec"]["queue"],
        "created": group["metadata"]["creationTimestamp"],
        "waitsFor": _with_quantities(group["status"]["reason"]),
        "expectedStart": group["status"]["expectedStart"],
    }


def _queue_line(queue: Row) -> dict[str, Any]:
    status = queue["status"]
    counts = ("pending", "inqueue", "running", "unknown", "completed")
    return {
        "name": queue["metadata"]["name"],
        "parent": queue["spec"]["parent"],
        "state": status["state"],
        "weight": queue["spec"]["weight"],
        "gangs": {name: status[name] for name in counts},
        "allocated": status["allocated"],
        "deserved": status["deserved"],
        "overused": status["overused"],
        "warnings": status["warnings"],
    }


def _branch(queue: Row, left: list[int]) -> dict[str, Any]:
    """`left` is how many queues may still be shown."""
    left[0] -= 1
    children: list[Any] = []
    shown = {**_queue_line(queue), "children": children}
    for child in queue["children"]:
        if left[0] <= 0:
            shown["leftOut"] = "More queues are below; ask for one of them."
            break
        children.append(_branch(child, left))
    return shown
