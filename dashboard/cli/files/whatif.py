"""`vcctl whatif`: what a change would do, by the engine run ahead on a copy of the cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

import typer

from dashboard.cli import output
from dashboard.cli.client import api, path
from dashboard.cli.commands import command
from dashboard.cli.files.apply import Files
from dashboard.cli.files.documents import documents_of, read_sources
from dashboard.cli.output import Format, Output
from dashboard.cli.problems import ExitCode, Problem

Lost = Annotated[
    list[str] | None,
    typer.Option("--lose", metavar="NODE", help="As if this node were lost; may be given again."),
]
ChangeSet = Annotated[
    int, typer.Option("--changes", metavar="NUMBER", help="Try this change set out.")
]
Minutes = Annotated[int, typer.Option("--minutes", min=1, max=1440, help="How far ahead to look.")]
Moment = Annotated[
    str,
    typer.Option("--at", metavar="MOMENT", help="As if applied then: 2026-11-20T17:00:00Z."),
]
_ENDED = ("Done", "Refused", "Cancelled", "Failed")
_PAUSE = 0.3
_MOST_LINES = 20
_STANDSTILL = "standstill"
_FIGURES = (
    ("Pods placed in the first session", "binds"),
    ("Pods evicted in the first session", "evictions"),
    ("Gangs that start in this time", "started"),
    ("Gangs still waiting at the end of this time", "waiting"),
)
Row = Mapping[str, Any]


def register(app: typer.Typer) -> None:
    command(
        app,
        "whatif",
        "vcctl whatif -f quotas.yaml",
        "# when would this job start, and who would wait for it?",
        "vcctl whatif -f job.yaml",
        "vcctl whatif --changes 7 --minutes 360",
        "# for the moment that it is planned for",
        "vcctl whatif --changes 7 --at 2026-11-20T17:00:00Z",
        "# as if a node were lost",
        "vcctl whatif --lose node-1",
    )(whatif)


def whatif(
    files: Files = None,
    changes: ChangeSet = 0,
    lost: Lost = None,
    minutes: Minutes = 60,
    at: Moment = "",
    form: Output = Format.TABLE,
) -> None:
    """Try documents, jobs, a change set or the loss of nodes out on a copy of the cluster.

    The first session is exact. Then pods run for as long as their jobs declare, or as long as such
    jobs ran before. Nothing is changed.
    """
    body: dict[str, Any] = {"minutes": minutes, "lostNodes": lost or []}
    if changes:
        body["changeSet"] = changes
    if at:
        body["beginsAt"] = at
    if files:
        body["documents"] = documents_of(read_sources(files))
    made = api().post("previews/", body)
    output.warn(made["warnings"])
    found = _wait_for(made["metadata"]["name"])
    if found["status"]["state"] != "Done":
        words = found["status"]["message"] or found["status"]["state"]
        raise Problem(words, ExitCode.REFUSED)
    if form in output.PLAIN_FORMATS:
        output.show_value(found, form)
    else:
        _print(found["status"], found["spec"]["beginsAt"])


def _wait_for(number: str) -> Any:
    """Whoever does not want to wait any longer wants no answer either: Ctrl-C cancels it."""
    try:
        return _followed(number)
    except KeyboardInterrupt:
        api().delete(path("previews", number))
        output.remark("The preview was cancelled.")
        raise


def _followed(number: str) -> Any:
    with output.working("Trying it out on a copy of the cluster …") as tell:
        while True:
            found = api().get(path("previews", number))
            if found["status"]["state"] in _ENDED:
                return found
            tell(_how_far(found["status"]))
            time.sleep(_PAUSE)


def _how_far(status: Row) -> str:
    """One preview is worked out at a time, so it may stand behind those of others."""
    if status["state"] == "Waiting":
        return "it is queued"
    return f"{status['progress']:.0%} done"


def _print(status: Row, begins_at: str | None) -> None:
    result = status["result"]
    _print_moment(status, begins_at)
    for job in result["jobs"]:
        _print_job(job)
    for title, name in _FIGURES:
        without = result["now"][name]
        output.line(f"{title}: {without} without it, {result['then'][name]} with it")
    output.line(_run_time_line(result["runTimes"]))
    for notice in result["notices"][:_MOST_LINES]:
        output.line(notice["message"])
    for name, words in _LINES.items():
        rows = result.get(name, ())
        for row in rows[:_MOST_LINES]:
            output.line(words(row))
        if len(rows) > _MOST_LINES:
            called = _CALLED.get(name, name)
            output.line(f"and {len(rows) - _MOST_LINES} more {called}; -o json has all of them")


def _print_moment(status: Row, begins_at: str | None) -> None:
    result = status["result"]
    output.line(f"Forecast of {output.clock(status['takenAt'])}, no promise")
    if begins_at:
        output.line(f"For the cluster as of {output.clock(result['asOf'])}")
    output.line(f"It looks {_ahead(result['now'], result['then'])}")
    reached = output.moment(result["asOf"])
    begin = output.moment(begins_at)
    if reached and begin and reached < begin:
        output.line(f"There was no time to look as far as {output.clock(begins_at)}")


def _ahead(now: Row, then: Row) -> str:
    """A side that came to a standstill is known however far the other one goes."""
    known = [side["seconds"] for side in (now, then) if side["halt"] != _STANDSTILL]
    if not known:
        return "ahead until nothing more would happen"
    return f"{_span(min(known))} ahead"


def _print_job(job: Row) -> None:
    output.line(f"{job['podgroup']} {_start_words(job)}")
    if job["message"]:
        output.line(f"  it waits: {job['message']}")
    if job["evictions"]:
        output.line(f"  pods that are evicted for it: {job['evictions']}")


def _start_words(job: Row) -> str:
    """With a range, the start that usual run times make says no more, and may lie outside."""
    if job["start"] is None:
        return "does not start in this time"
    if job["start"] < 1 or job["latest"] - job["earliest"] < 1:
        return f"starts {_when(job['start'])}"
    return f"starts in {_span(job['earliest'])} to {_span(job['latest'])}"


def _run_time_line(counts: Row) -> str:
    return (
        f"Run times: {counts['declared']} declared, {counts['learnt']} learnt, "
        f"{counts['unknown']} unknown"
    )


def _queue_line(queue: Row) -> str:
    words = []
    for figure in ("deserved", "allocated"):
        before = queue[figure]["before"]
        after = queue[figure]["after"]
        for resource in sorted({*before, *after}):
            old = before.get(resource, "0")
            new = after.get(resource, "0")
            if old != new:
                words.append(f"{figure} {resource} {old} -> {new}")
    if queue["belowGuarantee"]:
        missing = ", ".join(queue["belowGuarantee"])
        also = ""
        if not set(queue["belowGuarantee"]) - set(queue.get("wasBelowGuarantee", ())):
            also = ", also without it"
        words.append(f"below its guarantee of {missing}{also}")
    return f"{queue['queue']}: {', '.join(words)}"


def _when(seconds: float | None) -> str:
    if seconds is None:
        return "not in this time"
    if seconds < 1:
        return "in the first session"
    return f"in {_span(seconds)}"


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _move_line(move: Row) -> str:
    before = move["before"]
    after = move["after"]
    if after is None:
        words = f"does not start in this time; without it, {_when(before)}"
    elif before is None:
        words = f"starts {_when(after)}, not in this time without it"
    elif after < before:
        words = f"starts {_when(after)}, {_span(before - after)} earlier than without it"
    else:
        words = f"starts {_when(after)}, {_span(after - before)} later than without it"
    return f"{move['podgroup']} {words}"


def _set_back_line(gang: Row) -> str:
    words = f"{gang['podgroup']} loses {output.counted(gang['pods'], 'pod')}"
    if gang["goesOn"]:
        return f"{words} and goes on with the others"
    if gang["start"] is None:
        return f"{words} and does not run again in this time"
    return f"{words} and runs again {_when(gang['start'])}"


def _eviction_line(loss: Row) -> str:
    pod = f"{loss['pod']} of {loss['queue']}"
    if loss.get("action") == "shed":
        return f"{pod} is evicted with the rest of its gang, which has too few pods left"
    return f"{pod} is evicted for {loss['beneficiary'] or 'another queue'}"


_LINES: Final[Mapping[str, Callable[[Row], str]]] = {
    "queues": _queue_line,
    "setBack": _set_back_line,
    "moves": _move_line,
    "evictions": _eviction_line,
}
_CALLED: Final = {"setBack": "gangs that lose pods"}
"""Where the key is no word for people."""
