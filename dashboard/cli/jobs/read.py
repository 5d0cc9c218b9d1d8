"""`vcctl job list|view|explain|watch`: looking at jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Annotated, Any

import typer

from dashboard.cli import amounts, output
from dashboard.cli.client import api, path
from dashboard.cli.commands import command, new_app
from dashboard.cli.jobs.groups import GroupBy, query_words, show_groups
from dashboard.cli.jobs.pods import pod_table
from dashboard.cli.names import (
    AllNamespaces,
    JobArgument,
    JobOption,
    Namespace,
    QueueFilter,
    job_name,
)
from dashboard.cli.output import Format, Output
from dashboard.cli.problems import usage
from dashboard.cli.tables import Table
from dashboard.cli.watching import DEFAULT_INTERVAL, Interval, Watch, draw_or_watch, watch

app = new_app("Jobs: submit them, look at them, ask why they wait, stop and start them.")

Row = Mapping[str, Any]
ENDED = ("Completed", "Failed", "Aborted", "Terminated")
PHASES = (
    "Pending",
    "Running",
    "Restarting",
    "Aborting",
    "Aborted",
    "Completing",
    "Completed",
    "Terminating",
    "Terminated",
    "Failed",
)
_LABEL = 18
_COLUMNS = (
    "Name",
    "Creation",
    "Phase",
    "JobType",
    "Replicas",
    "Min",
    "Pending",
    "Running",
    "Succeeded",
    "Failed",
    "Unknown",
    "RetryCount",
)
# Volcano's; names are as wide as they are, and 3
_WIDTHS = (
    15,
    12,
    12,
    12,
    6,
    10,
    10,
    12,
    10,
    12,
    10,
)
_CHECK_FIGURES = ("need", "limit", "used", "promised", "admitted", "leaving", "free", "short")
_TYPE_LABEL = "volcano.sh/job-type"
Scheduler = Annotated[
    str, typer.Option("--scheduler", "-S", metavar="NAME", help="Only jobs of this scheduler.")
]
NameLike = Annotated[
    str, typer.Option("--selector", metavar="TEXT", help="Only jobs whose name contains this.")
]

Labels = Annotated[
    str,
    typer.Option(
        "--label-selector",
        "-l",
        metavar="SELECTOR",
        help="Only jobs with these labels: a=b,c!=d,e in (x,y),f notin (z),g,!h.",
    ),
]


def job_row(job: Row) -> list[object]:
    """Volcano's columns."""
    metadata = job["metadata"]
    spec = job["spec"]
    status = job["status"]
    return [
        metadata["name"],
        (metadata["creationTimestamp"] or "")[:10],
        status["state"]["phase"],
        metadata["labels"].get(_TYPE_LABEL, "Batch"),
        sum(task.get("replicas", 1) for task in spec["tasks"]),
        spec.get("minAvailable", 0),
        *(status[kind] for kind in ("pending", "running", "succeeded", "failed", "unknown")),
        status["retryCount"],
    ]


def job_table(jobs: Sequence[Row], wide: bool, namespaces: bool = False) -> Table:
    rows = [job_row(job) for job in jobs]
    columns = list(_COLUMNS)
    widths = [_column_width("Name", [row[0] for row in rows]), *_WIDTHS]
    if wide:
        columns += ["Queue", "User", "Age", "Waits for", "Starts"]
        rows = [[*row, *_wide_cells(job)] for row, job in zip(rows, jobs, strict=True)]
        widths = []
    if namespaces:
        places = [job["metadata"]["namespace"] for job in jobs]
        columns = ["Namespace", *columns]
        rows = [[place, *row] for place, row in zip(places, rows, strict=True)]
        if widths:
            widths = [_column_width("Namespace", places), *widths]
    return Table(columns, list(rows), widths)


def _column_width(title: str, cells: Iterable[object]) -> int:
    return max(len(str(cell)) for cell in (title, *cells)) + 3


def _wide_cells(job: Row) -> list[object]:
    podgroup = job["status"].get("podgroup") or {}
    reason = podgroup.get("reason") or {}
    return [
        job["spec"]["queue"],
        job["status"]["owner"] or "-",
        output.age(job["metadata"]["creationTimestamp"]),
        reason.get("code", "-"),
        _start_span(job["status"].get("expectedStart")),
    ]


def _start_span(expected: Row | None) -> str:
    """ "14:20:00 to 14:50:00"."""
    if not expected or not expected["earliest"]:
        return "-"
    return f"{output.clock(expected['earliest'])} to {output.clock(expected['latest'])}"


def matching_jobs(
    queue: str,
    namespace: str,
    everywhere: bool,
    phase: str,
    scheduler: str,
    like: str,
    labels: str = "",
) -> list[dict[str, Any]]:
    """As Volcano: the scheduler's name is compared, and any part of a name will do."""
    where = namespace
    if everywhere:
        where = ""
    found = api().all("jobs/", queue=queue, namespace=where, phase=phase, search=like, label=labels)
    jobs = []
    for job in found:
        if like in job["metadata"]["name"]:
            jobs.append(job)
    if scheduler:
        jobs = [job for job in jobs if _scheduler_of(job) == scheduler]
    return jobs


def _scheduler_of(job: Row) -> str:
    name: str = job["spec"].get("schedulerName", "volcano")
    return name


@command(
    app,
    "list",
    "vcctl job list",
    "vcctl job list --all-namespaces --queue team-a -o wide",
    "vcctl job list -n research --phase Pending --watch",
    "# by their labels, and only what you want to see of them",
    "vcctl job list -l 'team=vision,!old' -o custom-columns=NAME:.metadata.name,QUEUE:.spec.queue",
    "# who waits for how much, in all namespaces",
    "vcctl job list --all-namespaces --phase Pending --group-by user",
)
def list_jobs(
    queue: QueueFilter = "",
    namespace: Namespace = "default",
    everywhere: AllNamespaces = False,
    phase: Annotated[
        str,
        typer.Option(
            "--phase", metavar="PHASE", help="Only jobs in these phases, separated by commas."
        ),
    ] = "",
    scheduler: Scheduler = "",
    like: NameLike = "",
    labels: Labels = "",
    group_by: GroupBy = "",
    form: Output = Format.TABLE,
    stay: Watch = False,
    interval: Interval = DEFAULT_INTERVAL,
) -> None:
    """Jobs of a namespace, or of all, in Volcano's table.

    With -o wide also queue, user, reason and expected start. With --group-by counts of them, the
    largest group first.
    """
    if group_by and (scheduler or labels):
        raise usage("--group-by cannot be used together with --scheduler and labels.")

    def draw() -> None:
        if group_by:
            where = "" if everywhere else namespace
            show_groups(group_by, query_words(queue, where, phase, like), form)
            return
        found = matching_jobs(queue, namespace, everywhere, phase, scheduler, like, labels)
        output.show(found, form, lambda jobs, wide: job_table(jobs, wide, everywhere))

    draw_or_watch(draw, stay, interval)


@command(
    app,
    "view",
    "vcctl job view train",
    "vcctl job view -N train -n research",
    "vcctl job view research/train -o yaml",
)
def view_job(
    name: JobArgument = "",
    option: JobOption = "",
    namespace: Namespace = "default",
    form: Output = Format.TABLE,
) -> None:
    """Everything about one job: phase, tasks, pods, why it waits, last events."""
    place, wanted = job_name(name, option, namespace, "view")
    job = api().get(path("jobs", place, wanted))
    if form in output.PLAIN_FORMATS:
        output.show_value(job, form)
        return
    for label, value in _job_facts(job):
        output.line(f"{label + ':':<{_LABEL}}{value}".rstrip())
    _print_tasks(job)
    _print_pods(place, wanted)
    _print_events(place, wanted)


def _job_facts(job: Row) -> Iterable[tuple[str, object]]:
    metadata = job["metadata"]
    spec = job["spec"]
    status = job["status"]
    state = status["state"]
    yield "Name", metadata["name"]
    yield "Namespace", metadata["namespace"]
    yield "Queue", spec["queue"]
    yield "User", status["owner"] or "-"
    created = metadata["creationTimestamp"]
    yield "Created", f"{output.clock(created)} ({output.age(created)} ago)"
    phase = state["phase"]
    if state.get("since"):
        phase += f" since {output.clock(state['since'])}"
    if state.get("message"):
        phase += f": {state['message']}"
    yield "Phase", phase
    yield from _run_limit(status)
    yield "Needs at once", output.counted(spec.get("minAvailable", 0), "pod")
    kinds = ("pending", "running", "succeeded", "failed", "unknown")
    yield "Pods", ", ".join(f"{status[kind]} {kind}" for kind in kinds)
    yield "Retries", f"{status['retryCount']} of {spec.get('maxRetry', 0)}"
    reason = (status.get("podgroup") or {}).get("reason")
    if reason:
        yield "Waits", f"{reason['code']}: {reason['message']}"
    if starts := _start_words(status.get("expectedStart")):
        yield "Starts", starts


def _run_limit(status: Row) -> Iterable[tuple[str, object]]:
    """How long it may run; an older server does not say."""
    limit = status.get("runLimit")
    if not limit:
        return
    words = f"at most {limit['seconds']:,} s, the limit of {limit['queue']}"
    if limit["endsAt"]:
        words += f": until {output.clock(limit['endsAt'])}"
    yield "May run", words


def _start_words(expected: Row | None) -> str:
    """ "between 14:20:00 and 14:50:00, in 80% of cases"; empty where nobody has looked ahead."""
    if not expected:
        return ""
    if not expected["earliest"]:
        return f"no estimate. {expected['message']}"
    earliest = output.clock(expected["earliest"])
    latest = output.clock(expected["latest"])
    return f"between {earliest} and {latest}, in {expected['coverage']:.0%} of cases"


def _print_tasks(job: Row) -> None:
    rows: list[Sequence[object]] = []
    for task in job["spec"]["tasks"]:
        template = task.get("template") or {}
        pod = template.get("spec") or {}
        requests = []
        for container in pod.get("containers") or []:
            resources = container.get("resources") or {}
            requests.append(amounts.joined(resources.get("requests")))
        rows.append(
            [
                task.get("name", "-"),
                task.get("replicas", 1),
                task.get("minAvailable", "-"),
                " + ".join(requests) or "-",
            ]
        )
    output.line()
    Table(("Task", "Replicas", "Min", "Requests"), rows).print()


def _print_pods(namespace: str, job: str) -> None:
    found = api().all("pods/", limit=50, namespace=namespace, podgroup=job, ordering="name")
    if found:
        output.line()
        pod_table(found, True, False).print()


def _print_events(namespace: str, name: str) -> None:
    rows = []
    for event in api().all("events/", limit=8, namespace=namespace, name=name):
        spec = event["spec"]
        age = output.age(spec["lastAt"])
        rows.append([age, spec["type"], spec["reason"], spec["count"], spec["message"]])
    if rows:
        output.line()
        Table(("Age", "Type", "Reason", "Count", "Event"), rows).print()


@command(app, "explain", "vcctl job explain train", "vcctl job explain research/train -o json")
def explain_job(
    name: JobArgument = "",
    option: JobOption = "",
    namespace: Namespace = "default",
    form: Output = Format.TABLE,
) -> None:
    """Why a job waits, with figures, its place in the queue, and every check that was made."""
    place, wanted = job_name(name, option, namespace, "explain")
    job = api().get(path("jobs", place, wanted))
    if job["status"].get("podgroup") is None:
        state = job["status"]["state"]
        output.line(
            f"{place}/{wanted} does not wait: it is {state['phase']}. "
            f"{state.get('message') or ''}".rstrip()
        )
        return
    answer = api().get(path("podgroups", place, wanted, "explain"))
    if form in (Format.JSON, Format.YAML):
        output.show_value(answer, form)
        return
    words = _why_waiting(answer, job["spec"]["queue"])
    output.line(f"{place}/{wanted} ({answer['phase']}): {words}")
    if starts := _start_words(answer.get("expectedStart")):
        output.line(f"Starts: {starts}")
    if answer.get("reclaim"):
        output.line(f"Reclaim: {answer['reclaim']['message']}")
    if answer.get("lastEviction"):
        last = answer["lastEviction"]
        output.line(f"Last evicted {output.age(last['at'])} ago: {last['why']}")
    _print_checks(answer.get("checks") or [])


def _why_waiting(answer: Row, queue: str) -> str:
    words: str = answer["message"]
    if answer.get("reason"):
        words = f"{answer['reason']}: {words}"
    if answer.get("position"):
        words += f" It is number {answer['position']} of those that wait in {queue}."
    if answer.get("owner"):
        words += f" Ask {answer['owner']}, the owner of {queue}."
    return words


def _print_checks(checks: Sequence[Row]) -> None:
    if checks:
        output.line()
        columns = list(dict.fromkeys(chain.from_iterable(checks)))
        rows: list[Sequence[object]] = []
        for check in checks:
            rows.append([_check_cell(check, column) for column in columns])
        Table([column.capitalize() for column in columns], rows).print()


def _check_cell(check: Row, column: str) -> str:
    value = check.get(column, "")
    if column in _CHECK_FIGURES and isinstance(value, int):
        return amounts.written(check["resource"], value)
    return _cell_text(value)


def _cell_text(value: object) -> str:
    if value is True:
        return "yes"
    if value is False:
        return "no"
    if isinstance(value, Mapping):
        return amounts.joined(value)
    if value is None:
        return ""
    return str(value)


@command(
    app,
    "watch",
    "vcctl job watch train",
    "vcctl job watch research/train --interval 1",
    "vcctl job watch train --until Running",
)
def watch_job(
    name: JobArgument = "",
    option: JobOption = "",
    namespace: Namespace = "default",
    until: Annotated[
        str,
        typer.Option(
            "--until",
            metavar="PHASE",
            help="Stop at this phase, or at one of several, separated by commas.",
        ),
    ] = "",
    interval: Interval = DEFAULT_INTERVAL,
) -> None:
    """Follow one job until it has ended, or is in the phase named.

    If the server goes away, the command waits for it.
    """
    place, wanted = job_name(name, option, namespace, "watch")
    phase = ""
    last = (*ENDED, *_read_phases(until))

    def draw() -> None:
        nonlocal phase
        job = api().get(path("jobs", place, wanted))
        phase = job["status"]["state"]["phase"]
        output.line(f"{place}/{wanted}: {_progress(job['status'])}")

    watch(draw, interval, until=lambda: phase in last)


def _progress(status: Row) -> str:
    """Its phase, its pods by phase, and why it waits: "Running: 2 running, 1 succeeded"."""
    phase: str = status["state"]["phase"]
    words = phase
    kinds = ("pending", "running", "succeeded", "failed")
    counts = [f"{status[kind]} {kind}" for kind in kinds if status[kind]]
    if counts:
        words += f": {', '.join(counts)}"
    reason = (status.get("podgroup") or {}).get("reason")
    if phase == "Pending" and reason:
        words += f". {reason['message']}"
    return words


def _read_phases(text: str) -> list[str]:
    """What to wait for. One that no job is ever in would be waited for without end."""
    known = {phase.lower(): phase for phase in PHASES}
    words = []
    for word in text.split(","):
        if word.strip():
            words.append(word.strip())
    wrong = next((word for word in words if word.lower() not in known), None)
    if wrong is not None:
        raise usage(f"There is no phase “{wrong}”. Write --until with one of {', '.join(PHASES)}.")
    return [known[word.lower()] for word in words]
