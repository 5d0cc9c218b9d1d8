"""The Celery app and the beat timetable."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_process_init

from scheduler.garbage import set_aside
from scheduler.supervisor.orphans import die_with_parent

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

app = Celery("fumarole")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_process_init.connect
def leave_no_orphan(**_: Any) -> None:
    """A pool process goes with its worker, even when that one is killed: another one may hold the lease soon."""
    die_with_parent()


@worker_process_init.connect
def load_what_tasks_need(**_: Any) -> None:
    """Now, not with the first task."""
    import scheduler.services.dispatch
    import scheduler.services.observe
    import scheduler.services.sessions  # noqa: F401

    set_aside()


@worker_init.connect
def log_in_sentences(**_: Any) -> None:
    """Before the pool's processes are made, which then do it too."""
    from dashboard.worker_log import speak_plainly

    speak_plainly()


TICK_SECONDS = 0.5
"""The base that beat ticks at; the stored period says how many ticks make a session."""


def _every(seconds: float, task: str) -> dict[str, object]:
    # A tick that could not be taken in time is dropped, not queued up.
    return {"task": f"scheduler.tasks.{task}", "schedule": seconds, "options": {"expires": seconds}}


app.conf.beat_schedule = {
    "session": _every(TICK_SECONDS, "run_session"),
    "cluster": _every(1.0, "watch_cluster"),
    "work": _every(1.0, "generate_work"),
    "tidy": _every(60.0, "tidy"),
}
