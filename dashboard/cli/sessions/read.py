"""`vcctl session list|view|save`: what the scheduler did, session by session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from dashboard.cli import output
from dashboard.cli.client import api, path
from dashboard.cli.commands import command, new_app
from dashboard.cli.output import Format, Output
from dashboard.cli.problems import ExitCode, Problem
from dashboard.cli.sessions.words import REST_OF_THINKING, count_in_words
from dashboard.cli.tables import Table
from dashboard.cli.watching import DEFAULT_INTERVAL, Interval, Watch, draw_or_watch

app = new_app("Scheduling sessions: when they ran, how long they took, what they decided.")
Row = Mapping[str, Any]


def _time_taken(status: Row) -> str:
    start = output.moment(status["startedAt"])
    end = output.moment(status["finishedAt"])
    if start and end:
        return f"{max(0.0, (end - start).total_seconds()) * 1000:.0f} ms"
    return "-"


def _counts_text(counts: Mapping[str, Any]) -> str:
    words = []
    for name, count in counts.items():
        if count and name != "reloaded":
            words.append(count_in_words(name, count))
    if counts.get("reloaded"):
        words.append("everything read again")
    return ", ".join(words) or "nothing to do"


def _sessions_table(sessions: Sequence[Row], _wide: bool) -> Table:
    rows: list[Sequence[object]] = []
    for session in sessions:
        status = session["status"]
        number = session["metadata"]["name"]
        took = _time_taken(status)
        rows.append(
            [
                number,
                output.clock(status["startedAt"]),
                status["state"],
                took,
                status["trigger"],
                _counts_text(status["counts"]),
            ]
        )
    return Table(("Session", "Started", "State", "Took", "Trigger", "Counts"), rows)


@command(
    app, "list", "vcctl session list", "vcctl session list --limit 50", "vcctl session list --watch"
)
def list_sessions(
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=5000, help="How many of the newest to show.")
    ] = 20,
    form: Output = Format.TABLE,
    stay: Watch = False,
    interval: Interval = DEFAULT_INTERVAL,
) -> None:
    """The last sessions, newest first."""

    def draw() -> None:
        output.show(api().all("sessions/", limit=limit), form, _sessions_table)

    draw_or_watch(draw, stay, interval)


@command(
    app, "view", "vcctl session view", "vcctl session view 812", "vcctl session view 812 -o json"
)
def view_session(
    number: Annotated[
        str,
        typer.Argument(
            metavar="[NUMBER]",
            help="Its number. Without it: the last one.",
            show_default=False,
        ),
    ] = "",
    form: Output = Format.TABLE,
) -> None:
    """One session: its steps with their times, its counts, its decisions and evictions."""
    if number:
        session = api().get(path("sessions", number))
    else:
        session = _last_session()
    if form in output.PLAIN_FORMATS:
        output.show_value(session, form)
        return
    status = session["status"]
    name = session["metadata"]["name"]
    output.line(
        f"Session {name}: {status['state']}, started {output.clock(status['startedAt'])}, took "
        f"{_time_taken(status)}, {status['trigger']}"
    )
    output.line(f"Counts: {_counts_text(status['counts'])}")
    if status["message"]:
        output.line(status["message"])
    for title, lasted in _slowest_parts(status["durations"]):
        output.line(f"  {title:<24}{lasted:.0f} ms")
    _print_decisions(name)


def _slowest_parts(durations: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """In their order.

    Below the thinking what each action took of it, and what is left: the reasons of whoever waits,
    and the figures.
    """
    actions = durations.get("actions", {})
    for part, lasted in durations.items():
        if part != "actions":
            yield part, float(lasted)
        if part == "think":
            yield from ((f"  {action}", float(took)) for action, took in actions.items())
            if actions:
                yield f"  {REST_OF_THINKING}", max(float(lasted) - sum(actions.values()), 0.0)


@command(
    app,
    "save",
    "vcctl session save 812 > session-812.json",
    ".venv/bin/python manage.py simulate session-812.json",
)
def save_session(
    number: Annotated[
        str, typer.Argument(metavar="NUMBER", help="Its number.", show_default=False)
    ],
) -> None:
    """One session as a scenario file, which runs again anywhere with the same outcome: what to send
    with a question about it.
    """
    output.line(api().text(path("sessions", number, "scenario"), "application/json").rstrip("\n"))


def _last_session() -> Any:
    found = api().all("sessions/", limit=1)
    if not found:
        raise Problem("No session has run yet. Is the scheduler running?", ExitCode.NOT_FOUND)
    return found[0]


def _print_decisions(number: str) -> None:
    decisions = []
    for one in api().all("decisions/", limit=100, session=number):
        decisions.append(one["spec"])
    evictions = []
    for one in api().all("evictions/", limit=100, session=number):
        evictions.append(one["spec"])
    columns: tuple[str, ...]
    if decisions:
        output.line()
        columns = ("kind", "pod", "podgroup", "queue", "node", "action")
        titles = [name.capitalize() for name in columns]
        Table(titles, [_cells(one, columns) for one in decisions]).print()
    if evictions:
        output.line()
        columns = ("pod", "queue", "beneficiary", "action", "rule")
        titles = ["Victim", *(name.capitalize() for name in columns[1:])]
        Table(titles, [_cells(one, columns) for one in evictions]).print()
        _print_grounds(evictions)


def _cells(row: Row, columns: Sequence[str]) -> list[object]:
    return [row.get(name) or "-" for name in columns]


def _print_grounds(evictions: Sequence[Row]) -> None:
    """Why, once for all victims of the same choice; an older server does not tell."""
    reasons = dict.fromkeys(one.get("why", "") for one in evictions)
    for why in filter(None, reasons):
        output.line(why)
