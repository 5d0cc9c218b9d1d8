"""The page of figures: its tables are what its run makes, and say plainly what missed its aim."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.bench import document, history, runs
from tests.bench.lines import CPU, TIMES, Line
from tests.bench.runs import read_run
from tests.bench.tables import TABLES

REPOSITORY = Path(__file__).parent.parent
PAGE = REPOSITORY / document.PAGE
SHOWN_RUN = REPOSITORY / document.SHOWN_RUN
WHAT = "1,000 nodes, 1,000 pending in gangs, 10,000 running, 100 queues"


def _run(cpu: float) -> dict[str, Any]:
    row = {"what": WHAT, "cpuMs": cpu, "cpuMinMs": cpu - 1, "cpuMaxMs": cpu + 1}
    machine = {"processor": "x", "cores": 2, "python": "3", "loadAtTheEnd": 0.1}
    return {
        "date": "2026-11-18T10:00:00+00:00",
        "seconds": 5,
        "commit": "abcd",
        "machine": machine,
        "loadAtTheStart": 0.2,
        "quick": False,
        "whole": True,
        "repetitions": 7,
        "parts": {"sessions": [row]},
    }


def test_the_tables_are_what_the_run_beside_them_makes():
    page = PAGE.read_text()

    assert document.with_figures(page, read_run(SHOWN_RUN)) == page


def test_the_history_has_the_run_that_is_shown():
    page = PAGE.read_text()

    assert history.with_runs(page, [read_run(SHOWN_RUN)]) == page


@pytest.mark.parametrize("title", TABLES)
def test_every_line_finds_its_row_in_a_part_that_was_measured(title: str):
    run = read_run(SHOWN_RUN)
    lines = [line for line in TABLES[title] if line.part in run["parts"]]

    assert [line.label for line in lines if "not measured" in line.cells(run)[2]] == []


def test_a_figure_stands_beside_its_aim_and_says_whether_it_was_met():
    line = Line("a session", "sessions", WHAT, CPU, 40)

    assert line.cells(_run(40)) == ("a session", "at most 40 ms", "40 ms (39 to 41)", "met")
    assert line.cells(_run(41))[3] == "missed"


def test_an_aim_can_be_the_least():
    run = {"parts": {"twin": [{"what": "gangs", "ratio": 199.0}]}}
    line = Line("the twin", "twin", "gangs", TIMES, 200, at_least=True)

    assert line.cells(run) == ("the twin", "at least 200 x", "199 x", "missed")


def test_what_a_run_did_not_measure_is_said():
    line = Line("a session", "sessions", "another", CPU, 40)

    assert line.cells(_run(10))[2:] == ("not measured in this run", "")


def test_showing_a_run_changes_the_page_and_keeps_the_run(tmp_path: Path):
    page, shown = _copies(tmp_path)
    given = runs.save_run(_run(77), tmp_path)

    assert document.main([str(given)], page, shown, tmp_path / "none") == 0
    assert "77 ms (76 to 78) | missed |" in page.read_text()
    assert "| 2026-11-18 10:00 | abcd |" in page.read_text()
    assert read_run(shown)["parts"] == _run(77)["parts"]


def test_the_newest_whole_run_is_shown_with_parts_of_others(tmp_path: Path):
    page, shown = _copies(tmp_path)
    folder = tmp_path / "bench"
    # Later than what the page shows now.
    part = _run(60) | {"date": "2099-11-18T11:00:00+00:00", "whole": False, "commit": "part"}
    part["parts"] = {**part["parts"], "large": [_large(444)]}
    for run in (_run(70), part):
        runs.save_run(run, folder)

    assert document.main([], page, shown, folder) == 0
    text = page.read_text()
    assert "70 ms (69 to 71) | missed |" in text
    assert "444 ms (443 to 445), another run | missed |" in text
    assert "Another run: `--only large`, 2099-11-18 11:00, commit part, load 0.1." in text


def test_a_quick_run_is_not_taken_for_the_newest(tmp_path: Path):
    runs.save_run({**_run(70), "quick": True}, tmp_path)

    assert document.newest_run(tmp_path) is None


def _copies(folder: Path) -> tuple[Path, Path]:
    page, shown = folder / "page.md", folder / "shown.json"
    page.write_text(PAGE.read_text())
    shown.write_text(SHOWN_RUN.read_text())
    return page, shown


def _large(cpu: float) -> dict[str, Any]:
    what = "1,000 pods changed, 100,000 nodes, 1,000,000 running, 10,000 queues"
    return {"what": what, "cpuMs": cpu, "cpuMinMs": cpu - 1, "cpuMaxMs": cpu + 1}


def test_a_run_that_cannot_be_read_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    broken = tmp_path / "a.json"
    broken.write_text("{")

    assert document.main([str(broken)], tmp_path / "page", tmp_path / "shown") == 2
    assert "cannot be read" in capsys.readouterr().out


def test_a_page_without_a_place_is_refused():
    with pytest.raises(ValueError, match="no place for the figures"):
        document.with_figures("# A page\n", _run(10))
