"""Runs of the benchmark as files: what moved between two of them, and the history of all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.bench import history, runs

REPOSITORY = Path(__file__).parent.parent


def _run(cpu: float, least: float, most: float, date: str = "2026-11-18T10:00:00+00:00") -> Any:
    row = {"what": "a session", "cpuMs": cpu, "cpuMinMs": least, "cpuMaxMs": most}
    machine = {"processor": "x", "cores": 2, "loadAtTheEnd": 0.1}
    parts = {"sessions": [row, {"what": "memory", "peakMB": 10.0}]}
    return {"date": date, "seconds": 5, "commit": "abcd", "machine": machine, "parts": parts}


def test_a_row_has_moved_if_its_spread_touches_the_other_no_more():
    first = _run(10, 9, 11)

    assert "2.00 x slower  sessions: a session" in runs.comparison(first, _run(20, 18, 22))
    assert "Nothing moved." in runs.comparison(first, _run(12, 10.9, 13))


def test_a_row_that_only_one_run_has_is_named():
    second = _run(10, 9, 11)
    second["parts"]["sessions"].pop()

    assert "Only in A: sessions: memory" in runs.comparison(_run(10, 9, 11), second)


def test_a_saved_run_is_read_as_it_was(tmp_path: Path):
    run = _run(10, 9, 11)

    path = runs.save_run(run, tmp_path / "bench")

    assert path.name == "2026-11-18T100000-abcd.json"
    assert runs.read_run(path) == run


def test_comparing_what_is_no_run_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    broken = tmp_path / "a.json"
    broken.write_text("{")

    assert runs.main([str(broken), str(broken)]) == 2
    assert "cannot be read" in capsys.readouterr().out


def test_the_history_has_a_line_for_each_run_the_newest_first():
    page = f"before\n{history.BEGIN}\n{history.END}\nafter\n"
    old = history.with_runs(page, [_run(10, 9, 11)])

    new = history.with_runs(old, [_run(20, 18, 22, "2026-11-19T10:00:00+00:00")])

    lines = [line for line in new.splitlines() if line.startswith("| 2")]
    assert [line[2:12] for line in lines] == ["2026-11-19", "2026-11-18"]
    assert history.with_runs(new, [_run(10, 9, 11)]) == new
    assert new.startswith("before\n")
    assert new.endswith("\nafter\n")


def test_the_page_has_a_place_for_the_history():
    page = (REPOSITORY / history.PAGE).read_text()

    assert history.with_runs(page, []) == page
