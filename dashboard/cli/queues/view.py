"""`vcctl queue view`: one queue in full."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dashboard.cli import amounts, output
from dashboard.cli.client import api, path
from dashboard.cli.problems import ExitCode, Problem
from dashboard.cli.queues.fields import shown_limits, shown_texts
from dashboard.cli.tables import Table

Row = Mapping[str, Any]
_LABEL = 18
_EVENTS = 8


def print_queue(queue: Row) -> None:
    way = _way_up(queue)
    for section in (_identity(queue, way), _spec(queue), _state(queue), _counts(queue)):
        for label, value in section:
            output.line(f"{label + ':':<{_LABEL}}{value}".rstrip())
    _resources(queue)
    _conditions(queue["status"])
    _events(queue["metadata"]["name"])


def _identity(queue: Row, way: Mapping[str, Row]) -> Iterable[tuple[str, str]]:
    metadata = queue["metadata"]
    yield "Name", metadata["name"]
    yield "Path", " / ".join(reversed(list(way)))
    created = metadata["creationTimestamp"]
    yield "Created", f"{output.clock(created)} ({output.age(created)} ago)"
    for title in ("labels", "annotations"):
        pairs = metadata.get(title)
        if pairs:
            yield title.capitalize(), ",".join(f"{key}={pairs[key]}" for key in sorted(pairs))


def _way_up(queue: Row) -> dict[str, Row]:
    """The queue and those above it by name, with their specs.

    A queue that may not be seen is the last, and without any.
    """
    found: dict[str, Row] = {queue["metadata"]["name"]: queue["spec"]}
    parent = queue["spec"]["parent"]
    while parent and parent not in found:
        found[parent] = _spec_above(parent)
        parent = found[parent].get("parent")
    return found


def _spec_above(name: str) -> Row:
    try:
        spec: Row = api().get(path("queues", name), fields="spec")["spec"]
    except Problem as problem:
        if problem.code not in (ExitCode.NOT_FOUND, ExitCode.NOT_ALLOWED):
            raise
        return {}
    return spec


def _spec(queue: Row) -> Iterable[tuple[str, str]]:
    spec = queue["spec"]
    yield "Weight", spec["weight"]
    yield "Priority", spec["priority"]
    if spec["reclaimable"]:
        yield "Reclaimable", "yes"
    else:
        yield "Reclaimable", "no"
    yield "Dequeue strategy", spec["dequeueStrategy"]
    yield "Minimum run", _min_run_time(queue)
    limits = queue["status"].get("limits") or ()
    yield from shown_limits(queue["metadata"]["name"], limits)
    yield from shown_texts(spec)


def _min_run_time(queue: Row) -> str:
    """Its own, that of the nearest queue above, or the policy's."""
    words = f"{queue['status']['minRunSeconds']} s"
    source = queue["status"]["minRunSecondsFrom"]
    if not source:
        return f"{words}, as the policy says"
    if source != queue["metadata"]["name"]:
        return f"{words}, inherited from {source}"
    return words


def _state(queue: Row) -> Iterable[tuple[str, str]]:
    spec = queue["spec"]
    status = queue["status"]
    inherited = status["closedBy"] or status["suspendedBy"]
    state = status["state"]
    if inherited:
        state += f", inherited from {inherited}"
    yield "State", state
    if spec["state"] != status["state"]:
        yield "Requested state", spec["state"]
    last = _last_command(inherited or queue["metadata"]["name"])
    if last:
        yield "Since", _since(last)
    else:
        created = queue["metadata"]["creationTimestamp"]
        yield "Since", f"{output.clock(created)} ({output.age(created)} ago), its creation"


def _last_command(name: str) -> Row | None:
    """The command that made its state what it is."""
    done = api().all("commands/", limit=1, queue=name, result="Done")
    if done:
        return done[0]
    return None


def _since(command: Row) -> str:
    spec = command["spec"]
    status = command["status"]
    when = status["executedAt"] or command["metadata"]["creationTimestamp"]
    reason = ""
    if spec["reason"]:
        reason = f": {spec['reason']}"
    return (
        f"{output.clock(when)} ({output.age(when)} ago), {spec['action']} by {status['actor']} "
        f"({status['door']}){reason}"
    )


def _counts(queue: Row) -> Iterable[tuple[str, str]]:
    status = queue["status"]
    jobs = status["jobs"]
    kinds = ("pending", "inqueue", "running", "unknown", "completed")
    yield (
        "Jobs",
        f"{sum(jobs.values())} in all: "
        + ", ".join(f"{count} {kind}" for kind, count in jobs.items()),
    )
    yield "Gangs", ", ".join(f"{status[kind]} {kind}" for kind in kinds)
    if any(status["subtree"][kind] != status[kind] for kind in kinds):
        yield "With those below", ", ".join(f"{status['subtree'][kind]} {kind}" for kind in kinds)


def _resources(queue: Row) -> None:
    spec = queue["spec"]
    status = queue["status"]
    figures = {"Allocated": status["allocated"]}
    if status.get("promised"):
        figures["Promised"] = status["promised"]
    figures |= {
        "Deserved": status["deserved"],
        "Guarantee": spec["guarantee"]["resource"],
        "Capability": spec["capability"],
        "Real capability": status["realCapability"] or {},
        "Requested": status["request"],
    }
    if status.get("held"):  # what waits in suspended queues is not part of the request
        figures["Held"] = status["held"]
    names: set[str] = set()
    for figure in figures.values():
        names.update(figure)
    rows: list[Sequence[object]] = []
    for name in amounts.in_order(names):
        rows.append([name, *(figure.get(name, "-") for figure in figures.values())])
    if rows:
        output.line()
        Table(("Resource", *figures), rows).print()


def _conditions(status: Row) -> None:
    for condition in status["conditions"]:
        since = ""
        if condition.get("lastTransitionTime"):
            since = f" since {output.clock(condition['lastTransitionTime'])}"
        output.line(
            f"Condition: {condition['type']} is {condition['status']}{since}. "
            f"{condition['reason']}: {condition['message']}"
        )
    for warning in status["warnings"]:
        output.line(f"Warning: {warning['message']}")


def _events(name: str) -> None:
    events = []
    for event in api().all("events/", limit=_EVENTS, kind="Queue", name=name):
        events.append(event["spec"])
    output.line()
    if not events:
        output.line("Events: none")
        return
    rows = []
    for event in events:
        rows.append(
            [
                output.age(event["lastAt"]),
                event["type"],
                event["reason"],
                event["count"],
                event["message"],
            ]
        )
    Table(("Age", "Type", "Reason", "Count", "Event"), rows).print()
