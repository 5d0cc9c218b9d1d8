"""Volcano's short programs: `vsub vjobs vqueues vcancel vsuspend vresume`.

In them -n is the name and -N the namespace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import typer

from dashboard.cli import output
from dashboard.cli.asking import DryRun, Reason, Yes
from dashboard.cli.client import api, path
from dashboard.cli.commands import command, new_app
from dashboard.cli.jobs import run
from dashboard.cli.jobs.commands import command_job, delete_job
from dashboard.cli.jobs.read import NameLike, Scheduler, job_table, matching_jobs
from dashboard.cli.names import (
    AllNamespaces,
    QueueArgument,
    QueueFilter,
    QueueOption,
    complete_job,
    job_name,
    queue_name,
)
from dashboard.cli.output import Format, Output
from dashboard.cli.queues.read import queue_row
from dashboard.cli.tables import Table

Job = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="The job.",
        autocompletion=complete_job,
        show_default=False,
    ),
]
Name = Annotated[
    str,
    typer.Option(
        "--name",
        "-n",
        metavar="NAME",
        help="The job.",
        autocompletion=complete_job,
        show_default=False,
    ),
]
Place = Annotated[
    str, typer.Option("--namespace", "-N", metavar="NAMESPACE", help="The job's namespace.")
]
PlaceOfJob = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-N",
        metavar="NAMESPACE",
        help="The job's namespace.",
        show_default="default",
    ),
]
_COLUMNS = ("Name", "Weight", "State", "Inqueue", "Pending", "Running", "Unknown")

PROGRAMS: Final[dict[str, typer.Typer]] = {
    name: new_app(f"Volcano's {name}.")
    for name in ("vsub", "vjobs", "vqueues", "vcancel", "vsuspend", "vresume")
}


@command(PROGRAMS["vsub"], "vsub", "vsub -n train -q team-a -r 4 -m 4", "vsub -f job.yaml")
def vsub(
    name: Name = "",
    namespace: PlaceOfJob = "",
    queue: run.Queue = "",
    image: run.Image = "",
    min_available: run.Min = None,
    replicas: run.Replicas = None,
    requests: run.Requests = "",
    limits: run.Limits = "",
    scheduler: run.SchedulerOfJob = "",
    priority_class: run.PriorityClass = "",
    file: run.File = "",
    dry_run: DryRun = False,
    form: Output = Format.TABLE,
) -> None:
    """Submit a job; vcctl job run in short."""
    run.run_job(**dict(locals()))


@command(PROGRAMS["vjobs"], "vjobs", "vjobs", "vjobs -N research -q team-a", "vjobs -A -o wide")
def vjobs(
    namespace: Place = "default",
    everywhere: AllNamespaces = False,
    queue: QueueFilter = "",
    scheduler: Scheduler = "",
    like: NameLike = "",
    form: Output = Format.TABLE,
) -> None:
    """List jobs; vcctl job list in short."""
    found = matching_jobs(queue, namespace, everywhere, "", scheduler, like)
    output.show(found, form, lambda jobs, wide: job_table(jobs, wide, everywhere))


@command(PROGRAMS["vqueues"], "vqueues", "vqueues", "vqueues -n team-a", "vqueues -o json")
def vqueues(
    argument: QueueArgument = "",
    option: QueueOption = "",
    form: Output = Format.TABLE,
) -> None:
    """List queues, or one; vcctl queue list in short, without Parent and Completed."""
    one = argument or option
    if one:
        found = [api().get(path("queues", queue_name(argument, option, "list")))]
    else:
        found = api().all("queues/")
    output.show(found, form, _queues_table)


def _queues_table(queues: Sequence[Mapping[str, Any]], _wide: bool) -> Table:
    rows = []
    for queue in queues:
        row = queue_row(queue)
        rows.append([row[index] for index in (0, 1, 2, 4, 5, 6, 7)])
    return Table(_COLUMNS, rows, (25, *(8,) * 6))


@command(PROGRAMS["vcancel"], "vcancel", "vcancel -n train", "vcancel -n train -N research --yes")
def vcancel(
    job: Job = "",
    name: Name = "",
    namespace: Place = "default",
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """End a job and remove it, as Volcano's vcancel does; vcctl job delete in short.

    Asks first, unless you give --yes.
    """
    delete_job(*job_name(job, name, namespace, "cancel"), dry_run, yes)


@command(PROGRAMS["vsuspend"], "vsuspend", "vsuspend -n train", "vsuspend -n train -N research")
def vsuspend(
    job: Job = "",
    name: Name = "",
    namespace: Place = "default",
    reason: Reason = "",
    dry_run: DryRun = False,
) -> None:
    """Stop a job's pods and keep the job; vcctl job suspend in short."""
    command_job(*job_name(job, name, namespace, "suspend"), "suspend", reason, dry_run, yes=True)


@command(PROGRAMS["vresume"], "vresume", "vresume -n train", "vresume -n train -N research")
def vresume(
    job: Job = "",
    name: Name = "",
    namespace: Place = "default",
    reason: Reason = "",
    dry_run: DryRun = False,
) -> None:
    """Let a suspended job go on; vcctl job resume in short."""
    command_job(*job_name(job, name, namespace, "resume"), "resume", reason, dry_run, yes=True)
