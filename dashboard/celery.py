"""The Celery app of workers, and of whoever asks for tasks."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import worker_init, worker_process_init, worker_ready

from dashboard.worker.timetable import TIMETABLE
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


app.conf.beat_schedule = TIMETABLE
