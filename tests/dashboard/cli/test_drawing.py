"""Tables, bars, ages and amounts: what the eye sees."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dashboard.cli import output
from dashboard.cli.amounts import in_order, joined, parse_pairs, value
from dashboard.cli.output import Format, age
from dashboard.cli.problems import Problem
from dashboard.cli.queues.tree import bar_cells, print_trees
from dashboard.cli.tables import Table


@pytest.mark.parametrize(
    ("allocated", "deserved", "cells"),
    [
        (0, 10, (0, 0, 10)),
        (5, 10, (5, 0, 5)),
        (10, 10, (10, 0, 0)),
        (20, 10, (5, 5, 0)),
        (0.01, 10, (1, 0, 9)),
        (1000, 999, (9, 1, 0)),
        (10, 0, (0, 10, 0)),
        (0, 0, (0, 0, 10)),
    ],
    ids=str,
)
def test_a_bar_shows_own_borrowed_and_free(
    allocated: float,
    deserved: float,
    cells: tuple[int, int, int],
):
    assert bar_cells(allocated, deserved, 10) == cells
    assert sum(cells) == 10


@pytest.mark.parametrize(
    ("quantity", "number"),
    [
        ("2", 2),
        ("500m", 0.5),
        ("1Ki", 1024),
        ("4Gi", 4 * 2**30),
        ("1.5k", 1500),
        ("1e3", 1000),
        ("2c", 0),
        ("", 0),
        ("1.2.3", 0),
    ],
)
def test_quantities_are_read_for_drawing(quantity: str, number: float):
    assert value(quantity) == number


def test_amounts_go_in_and_out_in_the_same_form():
    pairs = parse_pairs(["memory=4Gi, cpu=2", "nvidia.com/gpu=1"], "--deserved")

    assert pairs == {"memory": "4Gi", "cpu": "2", "nvidia.com/gpu": "1"}
    assert joined(pairs) == "cpu=2,memory=4Gi,nvidia.com/gpu=1"
    assert in_order(["pods", "a", "memory", "cpu"]) == ["cpu", "memory", "a", "pods"]


@pytest.mark.parametrize("text", ["cpu", "=2", "cpu=1,cpu=2"])
def test_what_is_no_pair_is_refused_with_the_option(text: str):
    with pytest.raises(Problem, match="--deserved") as refused:
        parse_pairs([text], "--deserved")

    assert refused.value.code == 2


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (7200, "2h"),
        (3600 * 3 + 720, "3h12m"),
        (86400 * 3 + 7200, "3d2h"),
        (86400 * 9, "9d"),
    ],
)
def test_ages_are_written_as_kubectl_does(seconds: int, words: str):
    now = datetime(2026, 1, 2, tzinfo=UTC)

    assert age((now - timedelta(seconds=seconds)).isoformat(), now) == words


def test_a_table_without_given_widths_is_as_wide_as_what_is_in_it():
    assert Table(("A", "Long title"), [["value", 1], ["x", 22]]).lines() == [
        "A       Long title",
        "value   1",
        "x       22",
    ]


HOSTILE = "red\x1b[31m\x07\nsecond\tline \x9b2J"


def test_what_a_terminal_would_obey_is_not_written_to_it(capsys: pytest.CaptureFixture[str]):
    output.line(HOSTILE)
    output.remark(HOSTILE)

    assert capsys.readouterr() == ("red?[31m?\nsecond\tline ?2J\n",) * 2


def test_a_cell_is_one_line_whatever_is_in_it():
    table = Table(("Reason", "By"), [[HOSTILE, "ann"]])

    assert table.lines()[1] == "red?[31m? second line ?2J   ann"
    assert table.coloured().columns[0]._cells[0].plain == "red?[31m? second line ?2J"


def tree(name: str, *children: dict[str, Any]) -> dict[str, Any]:
    amounts = {
        "allocated": {"cpu": "24", "nvidia.com/gpu": "4"},
        "deserved": {"cpu": "16", "nvidia.com/gpu": "8"},
    }
    counts = {"running": 2, "pending": 1, "inqueue": 0}
    status = {"state": "Open", "closedBy": "", "suspendedBy": "", "subtree": counts, **amounts}
    return {
        "metadata": {"name": name},
        "spec": {"weight": 1, "capability": {}},
        "status": status,
        "children": list(children),
    }


@pytest.fixture
def terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., list[str]]:
    """What is drawn on a terminal of that many columns, without its colours."""
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")

    def drawn(columns: int, draw: Callable[[], None]) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        draw()
        return [line.rstrip() for line in capsys.readouterr().out.splitlines()]

    return drawn


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        (120, "└─ vision  Open        1        2        1  ████████▒▒▒▒ 24/16  ██████······ 4/8"),
        (70, "└─ vision  Open        1        2        1  ███▒▒ 24/16  ██··· 4/8"),
        (60, "└─ vision  Open     2     1  ███▒▒ 24/16  ██··· 4/8"),
        (46, "└─ vision  Open     2     1  24/16  4/8"),
        (20, "└─ vision  Open     2     1  24/16  4/8"),
    ],
    ids=str,
)
def test_a_tree_keeps_names_and_figures_and_shortens_its_bars(
    terminal: Callable[..., list[str]],
    columns: int,
    row: str,
):
    lines = terminal(columns, lambda: print_trees([tree("root", tree("vision"))], "", Format.TABLE))

    assert lines[2] == row
    assert columns == 20 or max(map(len, lines)) <= columns


def test_a_table_folds_long_texts_and_breaks_no_name(terminal: Callable[..., list[str]]):
    table = Table(
        ("Name", "Weight", "Event"),
        [["analytics", 12, "The queue analytics was made by ann and takes jobs from now on."]],
    )

    lines = terminal(44, table.print)

    assert lines[1] == "analytics      12  The queue analytics was"
    assert lines[-1].strip().endswith("now on.")
    assert terminal(10, table.print)[1].startswith("analytics      12  The queue")


def test_no_color_is_no_style_at_all(terminal: Callable[..., list[str]]):
    assert "\x1b" not in "".join(terminal(80, Table(("Name", "State"), [["a", "Open"]]).print))
