"""`--watch`: the same view again and again.

On a terminal it is drawn in place. It goes on when the server was away and comes back.
"""

from __future__ import annotations

import io
import re
import shutil
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from datetime import datetime
from itertools import accumulate
from typing import Annotated

import typer

from dashboard.cli import output
from dashboard.cli.problems import ExitCode, Problem

Watch = Annotated[
    bool, typer.Option("--watch", help="Stay, and show every change; Ctrl-C ends it.")
]
Interval = Annotated[
    float,
    typer.Option(
        "--interval", metavar="SECONDS", min=0.2, help="Seconds between two refreshes of --watch."
    ),
]
DEFAULT_INTERVAL = 2.0
_HEAD_LINES = 2
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_CLEAR = "\x1b[H\x1b[J"
# a screen of its own, so that what was there before is there afterwards
_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"


def draw_or_watch(draw: Callable[[], None], stay: bool, interval: float) -> None:
    """Draw once, or again and again with --watch."""
    if stay:
        watch(draw, interval)
    else:
        draw()


def watch(
    draw: Callable[[], None],
    interval: float,
    until: Callable[[], bool] = lambda: False,
) -> None:
    """Draw until Ctrl-C or `until`.

    A server that goes away is waited for; whatever else is wrong ends it.
    """
    if output.on_terminal():
        _in_place(draw, interval, until)
    else:
        _line_by_line(draw, interval, until)


def _draw_text(draw: Callable[[], None]) -> str:
    """What `draw` prints, with the colours of the terminal it is meant for."""
    screen = _Screen(output.on_terminal())
    with redirect_stdout(screen):
        draw()
    return screen.getvalue()


class _Screen(io.StringIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def isatty(self) -> bool:
        return self._is_terminal


def _in_place(draw: Callable[[], None], interval: float, until: Callable[[], bool]) -> None:
    last = ""
    lost_at = None
    done = False
    typer.echo(_ENTER, nl=False)
    try:
        while not done:
            last, lost_at = _try_to_draw(draw, last, lost_at)
            typer.echo(_CLEAR + _header_line(lost_at) + _fit_to_screen(last), nl=False)
            done = lost_at is None and until()
            if not done:
                time.sleep(interval)
    finally:
        typer.echo(_LEAVE, nl=False)
    typer.echo(last, nl=False)


def _try_to_draw(
    draw: Callable[[], None],
    last: str,
    lost_at: datetime | None,
) -> tuple[str, datetime | None]:
    """The new picture; or the last one with the time since when it is old."""
    try:
        return _draw_text(draw), None
    except Problem as problem:
        if problem.code is not ExitCode.NO_CONNECTION:
            raise
        return last, lost_at or datetime.now().astimezone()


def _header_line(lost_at: datetime | None) -> str:
    now = datetime.now().astimezone()
    if lost_at is None:
        return f"{now:%H:%M:%S}   Ctrl-C ends this\n\n"
    return (
        f"No connection since {lost_at:%H:%M:%S}; what you see is from before. Trying again, "
        f"{now:%H:%M:%S}. Ctrl-C ends this\n\n"
    )


def _fit_to_screen(picture: str) -> str:
    """As much as the screen takes, from the top.

    What scrolled away could not be brought back here.
    """
    lines = picture.splitlines(keepends=True)
    screen = shutil.get_terminal_size()
    room = max(1, screen.lines - _HEAD_LINES - 1)
    ends = list(accumulate(_line_height(line, screen.columns) for line in lines))
    if not ends or ends[-1] <= room:
        return picture
    shown = sum(end < room for end in ends)
    return "".join(lines[:shown]) + f"… {len(lines) - shown} more lines"


def _line_height(line: str, columns: int) -> int:
    """How many lines of the screen it takes: a narrow terminal breaks it."""
    width = len(_COLOURS.sub("", line).rstrip("\n"))
    return max(1, -(-width // max(1, columns)))


def _line_by_line(draw: Callable[[], None], interval: float, until: Callable[[], bool]) -> None:
    """In a pipe: the view whenever it is another one."""
    last = ""
    lost_at = None
    while True:
        before = lost_at
        shown, lost_at = _try_to_draw(draw, last, lost_at)
        if lost_at and not before:
            output.remark("There is no connection; trying again.")
        if shown != last:
            typer.echo(shown, nl=False)
            last = shown
        if lost_at is None and until():
            return
        time.sleep(interval)
