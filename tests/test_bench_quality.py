"""The benchmark of decisions: which runs there are, and which aims they are held against."""

from __future__ import annotations

from pathlib import Path

from tests.bench.quality import aim_rows, markdown, part_rows
from tests.bench.quality_runs import Done, read_runs, run_task, whole_trace_tasks, write_runs

TRACE = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,11cb48
2017-10-09 07:03:35,30.0,16,480.0,6214e9
"""


def _runs_of_a_trace(folder: Path) -> list[Done]:
    path = folder / "philly-all.csv"
    path.write_text(TRACE, encoding="utf-8")
    return [run_task(task) for task in whole_trace_tasks(str(path), ["fumarole", "bound"])]


def test_the_whole_trace_runs_from_a_file_until_its_last_job_comes(tmp_path: Path):
    done = _runs_of_a_trace(tmp_path)

    assert [(run.task.policy, run.task.seconds) for run in done] == [
        ("fumarole", 100.0),
        ("bound", 100.0),
    ]
    assert [run.figures["jobs"] for run in done] == [2, 2]


def test_the_whole_trace_has_aims_of_its_own(tmp_path: Path):
    rows = aim_rows(_runs_of_a_trace(tmp_path))

    cpu = [(row["what"], row["aim"]) for row in rows if "CPU time" in str(row["what"])]
    assert cpu == [("philly-all: CPU time of the run (s)", "<= 1200")]


def test_times_stand_by_part_of_the_run_and_by_policy(tmp_path: Path):
    done = _runs_of_a_trace(tmp_path)

    rows = part_rows(done)
    assert set(rows[0]) == {"CPU seconds", "philly-all, fumarole", "philly-all, bound"}
    assert "allocate" in [row["CPU seconds"] for row in rows]
    assert "| CPU seconds | philly-all, fumarole | philly-all, bound |" in markdown(done)


def test_kept_runs_are_read_as_they_were(tmp_path: Path):
    done = _runs_of_a_trace(tmp_path)
    kept = str(tmp_path / "kept.json")

    write_runs(done, kept)

    assert read_runs(kept) == done
