"""The Celery app and the beat timetable."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_process_init, worker_ready

from scheduler.supervisor.orphans import die_with_parent

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

app = Celery("fumarole")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
def prepare_worker(**_: Any) -> None:
    """Before the pool is forked, so that all its processes begin with everything loaded."""
    from dashboard.worker import life

    life.prepare()


@worker_process_init.connect
def prepare_pool_process(**_: Any) -> None:
    """A pool process ends with its worker, even if that is killed: another may hold the lease."""
    from dashboard.worker import life

    die_with_parent()
    life.begin_pool_process()


@worker_ready.connect
def watch_over_itself(**_: Any) -> None:
    from dashboard.worker import life

    life.watch_over_itself(app)


TICK_SECONDS = 0.5
"""The base that beat ticks at; the stored period says how many ticks make a session."""


def _every(seconds: float, task: str) -> dict[str, object]:
    # They do not pile up: see MOST_WAITING in dashboard/worker/beat.py.
    return {"task": f"scheduler.tasks.{task}", "schedule": seconds}


app.conf.beat_schedule = {
    "session": _every(TICK_SECONDS, "run_session"),
    "cluster": _every(1.0, "watch_cluster"),
    "work": _every(1.0, "generate_work"),
    "calendar": _every(2.0, "keep_calendar"),
    "start times": _every(5.0, "renew_start_times"),
    "notices": _every(2.0, "send_notices"),
    "long waits": _every(60.0, "look_for_long_waits"),
    "tidy": _every(60.0, "tidy"),
}
