"""`vcctl pod list`: the pods of jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from dashboard.cli import amounts, output
from dashboard.cli.client import api, path
from dashboard.cli.commands import command, new_app
from dashboard.cli.names import (
    AllNamespaces,
    Namespace,
    QueueFilter,
    complete_job,
)
from dashboard.cli.output import Format, Output
from dashboard.cli.problems import usage
from dashboard.cli.tables import Table
from dashboard.cli.watching import DEFAULT_INTERVAL, Interval, Watch, draw_or_watch

pods = new_app("Pods of jobs.")

Row = Mapping[str, Any]


def pod_table(found: Sequence[Row], wide: bool, namespaces: bool) -> Table:
    columns = ["Name", "Ready", "Status", "Restart", "Age"]
    if namespaces:
        columns.insert(0, "Namespace")
    if wide:
        columns += ["Node", "Queue", "Requests"]
    return Table(columns, [_pod_row(pod, wide, namespaces) for pod in found])


def _pod_row(pod: Row, wide: bool, namespaces: bool) -> list[object]:
    metadata = pod["metadata"]
    status = pod["status"]
    ready = "0/1"
    if status["phase"] == "Running":
        ready = "1/1"
    age = output.age(metadata["creationTimestamp"])
    row: list[object] = [metadata["name"], ready, status["phase"], 0, age]
    if namespaces:
        row.insert(0, metadata["namespace"])
    if wide:
        row += [status["node"] or "-", status["queue"], amounts.joined(_pod_requests(pod))]
    return row


def _pod_requests(pod: Row) -> Mapping[str, str]:
    containers = pod["spec"]["containers"]
    if not containers:
        return {}
    requests: Mapping[str, str] = containers[0].get("resources", {}).get("requests", {})
    return requests


@command(
    pods,
    "list",
    "vcctl pod list",
    "vcctl pod list --job train",
    "vcctl pod list -A --queue team-a -o wide",
)
def list_pods(
    queue: QueueFilter = "",
    job: Annotated[
        str,
        typer.Option(
            "--job",
            "-j",
            metavar="JOB",
            help="Only pods of this job.",
            autocompletion=complete_job,
        ),
    ] = "",
    namespace: Namespace = "default",
    everywhere: AllNamespaces = False,
    form: Output = Format.TABLE,
    stay: Watch = False,
    interval: Interval = DEFAULT_INTERVAL,
) -> None:
    """Pods of a namespace, a job or a queue; node and requests with -o wide."""
    if job and queue:
        _check_job_in_queue(namespace, job, queue)

    where = namespace
    if everywhere:
        where = ""

    def draw() -> None:
        found = api().all("pods/", queue=queue, podgroup=job, namespace=where, ordering="name")
        output.show(found, form, lambda rows, wide: pod_table(rows, wide, everywhere))

    draw_or_watch(draw, stay, interval)


def _check_job_in_queue(namespace: str, job: str, queue: str) -> None:
    its_queue = api().get(path("jobs", namespace, job))["spec"]["queue"]
    if its_queue == queue:
        return
    for one in api().all("jobs/", queue=queue, namespace=namespace):
        if one["metadata"]["name"] == job:
            return
    raise usage(
        f"The job {job} is not in the queue {queue}; it is in {its_queue}. Leave --queue out, or "
        "name that one."
    )
