"""What keeps ticks coming: beat's clock, and workers whose pool processes start with everything
loaded.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from datetime import timedelta
from importlib.util import find_spec
from typing import Any

import pytest
from celery import Celery
from kombu.exceptions import OperationalError

from dashboard.celery import app
from dashboard.worker.beat import MOST_WAITING, SteadyScheduler
from dashboard.worker.timetable import TIMETABLE, clock
from scheduler import tasks
from scheduler.supervisor.redis_server import tasks_waiting
from tests.running import BASE


class Recorder(SteadyScheduler):
    """Notes what would be sent."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.sent: list[str] = []
        super().__init__(*arguments, **options)

    def apply_async(self, entry: Any, producer: Any = None, advance: bool = True, **_: Any) -> None:
        self.sent.append(entry.name)


class Clocks:
    """The time of day, and the clock that nobody can set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, celery: Celery) -> None:
        self.steady = 1000.0
        self.ahead = timedelta()
        now = celery.now
        monkeypatch.setattr("time.monotonic", lambda: self.steady)
        monkeypatch.setattr(celery, "now", lambda: now() + self.ahead)


@pytest.fixture
def celery() -> Celery:
    celery = Celery("test", broker="memory://", set_as_current=False)
    celery.conf.beat_schedule = {
        "often": {"task": "often", "schedule": 1.0},
        "rarely": {"task": "rarely", "schedule": 60.0},
    }
    return celery


def test_ticks_go_on_when_the_clock_is_put_back(celery: Celery, monkeypatch: pytest.MonkeyPatch):
    clocks = Clocks(monkeypatch, celery)
    beat = Recorder(celery)
    beat.tick()
    assert sorted(beat.sent) == ["often", "rarely"]

    clocks.ahead = timedelta(hours=-5)
    for _ in range(60):
        clocks.steady += 1
        beat.tick()

    assert beat.sent.count("often") == 61
    assert beat.sent.count("rarely") == 2


def test_ticks_that_were_missed_are_not_made_up_for(
    celery: Celery, monkeypatch: pytest.MonkeyPatch
):
    clocks = Clocks(monkeypatch, celery)
    beat = Recorder(celery)
    beat.tick()

    clocks.steady += 30.5
    beat.tick()
    beat.tick()

    assert beat.sent.count("often") == 2
    assert beat.tick() == 1.0


def test_a_broker_that_is_away_is_told_once_and_beat_goes_on(
    celery: Celery,
    monkeypatch: pytest.MonkeyPatch,
    caplog: Any,
):
    clocks = Clocks(monkeypatch, celery)
    beat = SteadyScheduler(celery)
    monkeypatch.setattr(beat, "send_task", lambda *_, **__: 1 / 0)

    for _ in range(3):
        beat.tick()
        clocks.steady += 1

    assert len(caplog.messages) == 1
    assert "Ticks cannot be sent" in caplog.text
    assert "Traceback" not in caplog.text


def test_ticks_do_not_pile_up_while_nobody_takes_them(
    celery: Celery, monkeypatch: pytest.MonkeyPatch, redis_server: Any
):
    celery.conf.broker_url = redis_server.url
    celery.conf.task_default_queue = "pile"
    celery.conf.beat_schedule = {"often": {"task": "often", "schedule": 1.0}}
    clocks = Clocks(monkeypatch, celery)
    beat = SteadyScheduler(celery)

    for _ in range(MOST_WAITING + 5):
        beat.tick()
        clocks.steady += 1

    assert tasks_waiting(redis_server.url, "pile") == MOST_WAITING


def test_a_tick_has_no_expiry_for_a_clock_that_is_ahead_to_miss():
    for entry in app.conf.beat_schedule.values():
        assert "expires" not in entry.get("options", {})


def test_beat_goes_by_its_own_clock():
    assert app.conf.beat_scheduler == "dashboard.worker.beat:SteadyScheduler"


def test_a_pool_process_has_time_to_start_on_a_busy_machine():
    assert app.conf.worker_proc_alive_timeout >= 30


def test_everything_that_tasks_load_is_loaded_before_the_pool_is_forked():
    tree = ast.parse((BASE / "scheduler" / "tasks.py").read_text())
    inside = [
        node
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
    ]
    loads = {_module(node) for node in inside if isinstance(node, ast.ImportFrom)}
    assert "scheduler.services.sessions.runner" in loads

    loaded = _loaded_before_the_fork()

    assert loads <= loaded
    assert {"django.db.backends.sqlite3.base", "channels_redis.pubsub"} <= loaded


def test_a_worker_for_sessions_loads_what_they_need_and_no_more():
    loaded = _loaded_before_the_fork("scheduler")

    assert {"scheduler.services.sessions.runner", "numpy.ma"} <= loaded
    assert "scheduler.services.notices.delivery" not in loaded


def _loaded_before_the_fork(queue: str = "") -> set[str]:
    script = (
        "import sys; from dashboard.celery import app, prepare_worker; "
        "from dashboard.worker import life; "
        "import os; os.environ['CELERY_SKIP_CHECKS'] = 'true'; "
        f"app.loader.init_worker(); life.will_take_from({queue!r}); prepare_worker(); "
        "print('\\n'.join(sys.modules))"
    )
    return set(_printed_by("-c", script).split())


def test_beat_loads_no_app_of_django_and_no_command_line():
    """It sends names and times, and would have twice the memory with all that tasks need."""
    script = (
        "import sys, django.conf; from celery.apps.beat import Beat; "
        "from dashboard.worker.timetable import clock; "
        "Beat(app=clock(), quiet=True).init_loader(); print('\\n'.join(sys.modules))"
    )

    loaded = set(_printed_by("-c", script).split())

    assert not {"scheduler.models", "django.db.models", "numpy", "celery.bin"} & loaded


def test_beat_sends_by_the_settings_and_the_timetable_of_workers():
    alone = clock()

    assert alone.conf.beat_schedule == app.conf.beat_schedule
    assert alone.conf.broker_url == app.conf.broker_url
    for entry in TIMETABLE.values():
        name = str(entry["task"])
        mine, theirs = (each.amqp.router.route({}, name)["queue"] for each in (alone, app))
        assert mine.name == theirs.name


def _printed_by(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=BASE,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "dashboard.settings"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def _module(node: ast.ImportFrom) -> str:
    """`from scheduler.services.jobs import bulk` loads that module too."""
    whole = f"{node.module}.{node.names[0].name}"
    try:
        return whole if find_spec(whole) else str(node.module)
    except ModuleNotFoundError:  # its parent is a module, and no package
        return str(node.module)


def test_a_session_that_cannot_ask_for_the_next_step_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: Any
):
    def away(*_: Any, **__: Any) -> None:
        raise OperationalError("Timeout reading from socket")

    monkeypatch.setattr(tasks.carry_out, "apply_async", away)

    tasks._begin(tasks.carry_out)
    tasks._begin(tasks.carry_out)

    assert caplog.messages == [
        "What follows from a task waits for the next tick: Timeout reading from socket"
    ]
