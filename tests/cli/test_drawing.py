"""Tables, bars, ages and amounts: what the eye sees."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dashboard.cli.amounts import in_order, joined, parse_pairs, value
from dashboard.cli.output import age
from dashboard.cli.problems import Problem
from dashboard.cli.tables import Table
from dashboard.cli.trees import bar_cells


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
def test_a_bar_shows_own_borrowed_and_free(allocated: float, deserved: float, cells: tuple[int, int, int]):
    assert bar_cells(allocated, deserved, 10) == cells
    assert sum(cells) == 10


@pytest.mark.parametrize(
    ("quantity", "number"),
    [("2", 2), ("500m", 0.5), ("1Ki", 1024), ("4Gi", 4 * 2**30), ("1.5k", 1500), ("1e3", 1000), ("2c", 0), ("", 0), ("1.2.3", 0)],
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
    [(0, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (3600 * 3 + 720, "3h12m"), (86400 * 3 + 7200, "3d2h"), (86400 * 9, "9d")],
)
def test_ages_are_written_as_kubectl_does(seconds: int, words: str):
    now = datetime(2026, 1, 2, tzinfo=UTC)

    assert age((now - timedelta(seconds=seconds)).isoformat(), now) == words


def test_a_table_without_given_widths_is_as_wide_as_what_is_in_it():
    assert Table(("A", "Long title"), [["value", 1], ["x", 22]]).lines() == ["A       Long title", "value   1", "x       22"]
