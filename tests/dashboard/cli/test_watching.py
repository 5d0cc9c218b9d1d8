"""--watch: only what changed in a pipe, a server that is waited for, a picture that fits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dashboard.cli import output, watching
from dashboard.cli.problems import ExitCode, Problem


def pictures(*given: str | Problem) -> tuple[Callable[[], None], Callable[[], bool]]:
    """Draws one after the other, and is done after the last."""
    left = list(given)

    def draw() -> None:
        picture = left.pop(0)
        if isinstance(picture, Problem):
            raise picture
        output.line(picture)

    return draw, lambda: not left


LOST = Problem("gone", ExitCode.NO_CONNECTION)


def test_in_a_pipe_only_changes_are_printed(capsys: pytest.CaptureFixture[str]):
    draw, done = pictures("one", "one", "two", "two")

    watching.watch(draw, 0.0, done)

    assert capsys.readouterr().out == "one\ntwo\n"


def test_a_server_that_goes_away_is_waited_for_and_said_once(capsys: pytest.CaptureFixture[str]):
    draw, done = pictures("one", LOST, LOST, "two")

    watching.watch(draw, 0.0, done)

    seen = capsys.readouterr()
    assert seen.out == "one\ntwo\n"
    assert seen.err == "There is no connection; trying again.\n"


def test_whatever_else_is_wrong_ends_it():
    draw, done = pictures("one", Problem("There is no job train.", ExitCode.NOT_FOUND), "two")

    with pytest.raises(Problem, match="no job"):
        watching.watch(draw, 0.0, done)


def test_a_picture_that_is_too_long_says_how_much_is_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setenv("COLUMNS", "80")

    assert watching._fit_to_screen("line\n" * 20) == "line\n" * 6 + "… 14 more lines"
    assert watching._fit_to_screen("line\n" * 5) == "line\n" * 5
