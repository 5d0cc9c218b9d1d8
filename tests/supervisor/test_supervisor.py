"""Watching, restarting and stopping, with small processes of the shell."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler.supervisor.console import Console
from scheduler.supervisor.programs import Program, Stage
from scheduler.supervisor.pulse import Heart, Pulse, PulseWatch
from scheduler.supervisor.supervisor import KeepsDyingError, RestartPolicy, Supervisor
from tests.running import BASE, children_of, is_running

PATIENCE = 30.0
QUICK = RestartPolicy(delays=(0.0, 0.05, 0.1), steady_after=60)


class Desk:
    """A supervisor and what it has written."""

    def __init__(self, folder: Path, policy: RestartPolicy = QUICK) -> None:
        self.stream = io.StringIO()
        self.supervisor = Supervisor(Console(self.stream), dict(os.environ), folder, policy)

    def start(self, name: str, script: str, stage: Stage = Stage.WEB, **more: Any) -> None:
        self.supervisor.start(Program(name, ("/bin/sh", "-c", script), stage, **more))

    def written(self) -> list[str]:
        return self.stream.getvalue().splitlines()

    def watch_for(self, line: str) -> None:
        assert self.supervisor.watch(lambda: line in self.written(), PATIENCE), self.written()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.supervisor.hurry()
    desk.supervisor.stop()


def test_every_line_says_whose_it_is(desk: Desk):
    desk.start("web", "echo one; echo two >&2; sleep 60")

    desk.watch_for("web       | one")
    desk.watch_for("web       | two")


def test_a_line_without_an_end_is_shown_when_the_process_ends(desk: Desk):
    desk.start("web", "printf 'unfinished'; sleep 0.2")

    desk.watch_for("web       | unfinished")


def test_what_dies_is_started_again_and_that_is_said(desk: Desk, tmp_path: Path):
    desk.start("web", "echo life >> lives; [ $(wc -l < lives) -ge 3 ] && sleep 60; exit 4")

    desk.supervisor.watch(
        lambda: (
            (tmp_path / "lives").exists() and len((tmp_path / "lives").read_text().split()) == 3
        ),
        PATIENCE,
    )

    assert desk.written() == [
        "fumarole  | web ended (exit code 4); starting it again in 0 s",
        "fumarole  | web ended (exit code 4); starting it again in 0.05 s",
    ]


def test_what_keeps_dying_is_left_alone_loudly_and_the_others_go_on(desk: Desk):
    desk.start("web", "echo up; trap 'echo bye; exit 0' TERM; while :; do sleep 0.05; done")
    desk.start("beat", "echo the disk is full; exit 7", Stage.BEAT)

    desk.watch_for(
        "fumarole  | beat died 4 times in a row, the last time with exit code 7. Its last lines:"
    )
    desk.watch_for("fumarole  |     the disk is full")
    desk.watch_for(
        "fumarole  | Everything else goes on without beat. It is started again every 60 s."
    )
    assert not desk.supervisor.watch(lambda: False, 0.3)
    assert desk.written().count("beat      | the disk is full") == 4
    assert "web       | bye" not in desk.written()


def test_what_was_left_alone_is_tried_again_and_may_live(tmp_path: Path):
    desk = Desk(tmp_path, RestartPolicy(delays=(0.0,), steady_after=60, rest=0.1))
    desk.start(
        "beat",
        "echo life >> lives; [ $(wc -l < lives) -ge 4 ] && echo well && sleep 60; exit 1",
        Stage.BEAT,
    )

    desk.watch_for("beat      | well")
    desk.supervisor.stop()


def test_nothing_begins_without_what_it_needs(desk: Desk):
    desk.start("beat", "sleep 60", Stage.BEAT)
    desk.start("web", "echo the disk is full; exit 7")

    with pytest.raises(KeepsDyingError) as caught:
        desk.supervisor.watch(lambda: False, PATIENCE, needs="web")

    assert str(caught.value) == (
        "web died 4 times in a row, the last time with exit code 7. Its last lines:\n    "
        "the disk is full"
    )


def test_deaths_far_apart_are_not_in_a_row(tmp_path: Path):
    desk = Desk(tmp_path, RestartPolicy(delays=(0.0,), steady_after=0.0))
    desk.start("web", "echo life >> lives; exit 1")

    assert desk.supervisor.watch(
        lambda: (
            len((tmp_path / "lives").read_text().split()) > 3
            if (tmp_path / "lives").exists()
            else False
        ),
        PATIENCE,
    )
    desk.supervisor.stop()


def test_a_quiet_process_is_heard_when_it_keeps_dying(tmp_path: Path):
    desk = Desk(tmp_path)
    desk.supervisor.start(
        Program(
            "redis",
            ("/bin/sh", "-c", "echo cannot open the file; exit 1"),
            Stage.REDIS,
            is_quiet=True,
        )
    )

    with pytest.raises(KeepsDyingError, match="cannot open the file"):
        desk.supervisor.watch(lambda: False, PATIENCE, needs="redis")
    assert not [line for line in desk.written() if line.startswith("redis ")]


def test_the_highest_stage_is_stopped_first(desk: Desk):
    for stage in Stage:
        desk.start(
            stage.name.lower(),
            "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done",
            stage,
        )
    for stage in Stage:
        desk.watch_for(f"{stage.name.lower():<9} | up")

    desk.supervisor.stop()

    assert [line.split()[0] for line in desk.written() if line.endswith("bye")] == [
        "beat",
        "worker",
        "web",
        "redis",
    ]


def test_what_does_not_go_is_killed_and_that_is_said(desk: Desk):
    desk.start("web", "trap '' TERM; echo up; while :; do sleep 0.05; done", stop_seconds=0.2)
    desk.watch_for("web       | up")

    desk.supervisor.stop()

    assert desk.written()[-1] == "fumarole  | web ended with killed by SIGKILL"


def test_ending_by_sigterm_is_clean(desk: Desk):
    desk.start("web", "echo up; exec sleep 60")
    desk.watch_for("web       | up")

    desk.supervisor.stop()

    assert desk.written() == ["web       | up", "fumarole  | stopping"]


def test_what_a_dead_process_left_behind_is_swept_up(desk: Desk):
    desk.start("worker", "sleep 61 & echo $!; wait")
    assert desk.supervisor.watch(lambda: bool(desk.written()), PATIENCE)
    left_behind = int(desk.written()[0].split()[-1])

    os.kill(children_of(os.getpid())[-1], signal.SIGKILL)

    assert desk.supervisor.watch(lambda: not is_running(left_behind), PATIENCE)


def test_a_stop_asked_for_ends_the_watch(desk: Desk):
    desk.start("web", "sleep 60")
    desk.supervisor.request_stop()

    assert desk.supervisor.watch(lambda: False, PATIENCE) is False


def test_a_program_run_once_keeps_its_words_to_itself(desk: Desk):
    child = desk.supervisor.run_once(
        Program("setup", ("/bin/sh", "-c", "echo no database; exit 3"), Stage.WEB)
    )

    assert child.exit_code() == 3
    assert list(child.last_lines) == ["no database"]
    assert desk.written() == []


def test_a_child_goes_with_its_supervisor(tmp_path: Path):
    """A fork stands for the supervisor, and is killed."""
    file = tmp_path / "pid"
    pid = os.fork()
    if pid == 0:
        Desk(tmp_path).start("web", f"echo $$ > {file}; sleep 60")
        time.sleep(60)
        os._exit(0)
    _wait_until(lambda: file.exists() and file.read_text().strip().isdigit())
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

    _wait_until(lambda: not is_running(int(file.read_text())))


def _wait_until(condition) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def beats(path: Path, seconds: float) -> str:
    """A process that gives a sign of life every tenth of a second for so long, and then hangs."""
    work = (
        "from scheduler.supervisor.pulse import *; from time import *; p = "
        "pulse_of_this_worker(); end = monotonic() + {seconds}\n"
    )
    loop = "while monotonic() < end: p.beat(); sleep(0.1)\n"
    path.write_text(work.format(seconds=seconds) + loop + "sleep(600)")
    return f"echo life; PYTHONPATH={BASE} exec {sys.executable} {path}"


@pytest.fixture
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.supervisor.supervisor.LOOK_SECONDS", 0.2)
    monkeypatch.setattr("scheduler.supervisor.pulse.PATIENT_LOOKS", 3)


@pytest.mark.usefixtures("quick_looks")
def test_a_worker_that_hangs_while_work_waits_is_ended_and_started_again(
    desk: Desk, tmp_path: Path
):
    desk.start(
        "worker",
        beats(tmp_path / "work.py", 1.0),
        Stage.WORKER,
        pulse=tmp_path / "pulse",
        work_waits=lambda: True,
    )

    desk.watch_for("fumarole  | worker does nothing although work waits for it; ending it")
    desk.watch_for("fumarole  | worker ended (killed by SIGKILL); starting it again in 0 s")
    assert desk.supervisor.watch(lambda: desk.written().count("worker    | life") == 2, PATIENCE)


@pytest.mark.usefixtures("quick_looks")
@pytest.mark.parametrize(
    ("seconds", "waits"),
    [(600, True), (0.5, False)],
    ids=["one that works", "one without work"],
)
def test_a_worker_is_left_in_peace(desk: Desk, tmp_path: Path, seconds: float, waits: bool):
    desk.start(
        "worker",
        beats(tmp_path / "work.py", seconds),
        Stage.WORKER,
        pulse=tmp_path / "pulse",
        work_waits=lambda: waits,
    )
    pulse = Pulse(tmp_path / "pulse")
    assert desk.supervisor.watch(lambda: pulse.count > 1, PATIENCE)

    desk.supervisor.watch(lambda: False, 2.5)

    assert desk.written() == ["worker    | life"]


@pytest.mark.parametrize(("load", "looks"), [(0.5, 10), (2.0, 10), (6.0, 30), (90.0, 40)])
def test_on_a_busy_machine_there_is_more_patience(
    monkeypatch: pytest.MonkeyPatch,
    load: float,
    looks: int,
):
    monkeypatch.setattr("os.getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    pulse = Pulse()
    for _ in range(5):
        pulse.beat()
    watch = PulseWatch(pulse, lambda: True)

    stopped = [watch.has_stopped() for _ in range(50)]

    assert stopped.index(True) == looks - 1


def test_a_long_task_has_a_pulse_until_it_is_too_long(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("scheduler.supervisor.pulse.LOOK_SECONDS", 0.01)
    pulse = Pulse()
    heart = Heart(pulse, longest=0.05)

    heart.begin()

    _wait_until(lambda: pulse.count == 6)  # one for the beginning, five while it was not too long
    time.sleep(0.05)
    assert pulse.count == 6
    heart.end()
    heart.begin()
    _wait_until(lambda: pulse.count >= 12)
