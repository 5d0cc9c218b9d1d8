"""Names on the command line, as arguments or as options.

The shell can complete them from the server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from dashboard.cli import client
from dashboard.cli.problems import ExitCode, Problem, usage
from dashboard.cli.target import ConnectionOptions

_COMPLETION_SECONDS = 3.0  # a Tab must not hang
_MOST = 500
_ROOT = "root"


def _make_completer(collection: str, namespaced: bool = False) -> Callable[..., list[str]]:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        found: list[str] = []
        for name in _names_to_complete(collection, namespaced, ctx.params, incomplete):
            if name.startswith(incomplete):
                found.append(name)
        return found

    return complete


def _names_to_complete(
    collection: str,
    namespaced: bool,
    given: dict[str, Any],
    incomplete: str,
) -> list[str]:
    """What is there.

    Nothing where the server cannot be asked, since a completion has no place for an error.
    """
    options = {}
    for name in ("server", "context", "token_file", "ca_cert", "insecure"):
        if given.get(name):
            options[name] = given[name]
    client.use(ConnectionOptions(**{**options, "timeout": _COMPLETION_SECONDS}))
    if namespaced:
        wanted = {"namespace": given.get("namespace") or "default"}
    else:
        wanted = {}
    try:
        found = client.api().all(
            f"{collection}/",
            limit=_MOST,
            search=incomplete,
            fields="metadata.name",
            **wanted,
        )
    except Problem:
        return []
    return sorted(row["metadata"]["name"] for row in found)


complete_queue = _make_completer("queues")
complete_job = _make_completer("jobs", namespaced=True)
complete_node = _make_completer("nodes")

QueueArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="The queue.",
        autocompletion=complete_queue,
        show_default=False,
    ),
]
QueueOption = Annotated[
    str,
    typer.Option(
        "--name",
        "-n",
        metavar="NAME",
        help="The queue, as in Volcano's commands.",
        autocompletion=complete_queue,
        show_default=False,
    ),
]
JobArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="The job, or NAMESPACE/NAME.",
        autocompletion=complete_job,
        show_default=False,
    ),
]
JobOption = Annotated[
    str,
    typer.Option(
        "--name",
        "-N",
        metavar="NAME",
        help="The job, as in Volcano's commands.",
        autocompletion=complete_job,
        show_default=False,
    ),
]
Namespace = Annotated[
    str, typer.Option("--namespace", "-n", metavar="NAMESPACE", help="The job's namespace.")
]
NodeArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="The node.",
        autocompletion=complete_node,
        show_default=False,
    ),
]
QueueFilter = Annotated[
    str,
    typer.Option(
        "--queue",
        "-q",
        metavar="QUEUE",
        help="Only in this queue and the queues below it.",
        autocompletion=complete_queue,
        show_default=False,
    ),
]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="In every namespace.")]


def queue_name(argument: str, option: str, doing: str) -> str:
    """With or without the kind, which `-o name` writes before it."""
    return _exactly_one("queue", argument.removeprefix("queue/"), option, doing, "--name")


def job_name(argument: str, option: str, namespace: str, doing: str) -> tuple[str, str]:
    """Namespace and name; `team/train` names both, and so does `job/team/train` of `-o name`."""
    name = _exactly_one("job", argument, option, doing, "--name")
    if name.count("/") == 2:
        name = name.removeprefix("job/")
    before, slash, after = name.partition("/")
    if slash:
        return (before, after)
    return (namespace, name)


def _exactly_one(kind: str, argument: str, option: str, doing: str, flag: str) -> str:
    if argument and option and argument != option:
        raise usage(
            f"{kind.capitalize()} {argument} or {option}? Give the name once, as argument or with "
            f"{flag}."
        )
    name = argument or option
    if not name:
        raise usage(f"Which {kind} to {doing}? The name must be given, as argument or with {flag}.")
    if name in (".", "..") or not name.isprintable() or (kind == "queue" and "/" in name):
        raise usage(f"“{name}” is no name of a {kind}.")
    return name


def topmost_queues() -> list[str]:
    """Root for who may see it; else the queues that one may see and nothing above them.

    Raises `Problem` where there are none.
    """
    try:
        client.api().get(client.path("queues", _ROOT), fields="metadata.name")
        return [_ROOT]
    except Problem as problem:
        if problem.code is not ExitCode.NOT_FOUND:
            raise
    found = client.api().all("queues/", fields="metadata.name,spec.parent")
    parents = {}
    for row in found:
        parents[row["metadata"]["name"]] = row["spec"]["parent"]
    if not parents:
        raise Problem(
            "You may not see any queue. Ask an admin for a role on one.", ExitCode.NOT_ALLOWED
        )
    queues: list[str] = []
    for name, parent in parents.items():
        if parent not in parents:
            queues.append(name)
    return sorted(queues)
