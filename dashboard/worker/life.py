"""The life of a worker: what it loads before its pool is forked, its pulse, and its end."""

from __future__ import annotations

import logging
import os
import signal
from importlib import import_module
from typing import Final

import billiard
from celery import Celery
from celery.signals import task_postrun, task_prerun
from django.conf import settings
from django.db import connections
from django.utils.module_loading import import_string

from dashboard.worker.log import speak_plainly
from scheduler.garbage import set_aside
from scheduler.supervisor.pulse import (
    PULSE_FILE_VARIABLE,
    Heart,
    Pulse,
    pulse_of_this_worker,
    watch_beside,
)
from scheduler.supervisor.redis_server import work_waits

logger = logging.getLogger(__name__)

STOPPED_WORKING: Final = 70  # EX_SOFTWARE
SESSIONS_QUEUE: Final = "scheduler"
_pulse: Pulse | None = None
_queue = ""


def prepare() -> None:
    """In the worker, before the pool is forked."""
    global _pulse
    _pulse = pulse_of_this_worker()
    speak_plainly()
    load_what_tasks_need()
    set_aside()


NEEDED_BY_ALL = (
    "celery.app.events",  # asking for another task
    "django.db.models.sql.compiler",
    "kombu.transport.redis",
    "numpy.ma",  # numpy.unique looks whether something is masked
)
NEEDED_BY_SESSIONS = ("scheduler.services.sessions.runner",)
NEEDED_BY_OTHERS = (
    "scheduler.selectors.jobs.start_times",
    "scheduler.services.change_sets.calendar",
    "scheduler.services.change_sets.preview_runs",
    "scheduler.services.cluster.dispatch",
    "scheduler.services.cluster.tick",
    "scheduler.services.demo.workload",
    "scheduler.services.jobs.bulk",
    "scheduler.services.jobs.pod_steps",
    "scheduler.services.jobs.start_times",
    "scheduler.services.notices.delivery",
    "scheduler.services.notices.fan_out",
    "scheduler.services.notices.waits",
    "scheduler.services.records.retention",
)
"""What tasks load. Each pool process would have its own copy of what it loads itself, and one that
takes long for it is replaced by Celery.
"""


def will_take_from(queue: str) -> None:
    """Say it before `prepare`. Without it tasks of any queue may come."""
    global _queue
    _queue = queue


def load_what_tasks_need() -> None:
    others = () if _queue == SESSIONS_QUEUE else NEEDED_BY_OTHERS
    for module in (*NEEDED_BY_ALL, *NEEDED_BY_SESSIONS, *others):
        import_module(module)
    connections["default"]  # its driver; nothing is connected yet
    import_string(str(settings.CHANNEL_LAYERS["default"]["BACKEND"]))


def begin_pool_process() -> None:
    """In each process of the pool, after the fork."""
    pulse = _pulse or pulse_of_this_worker()
    pulse.beat()
    heart = Heart(pulse)
    task_prerun.connect(lambda **_: heart.begin(), weak=False)
    task_postrun.connect(lambda **_: heart.end(), weak=False)


def watch_over_itself(app: Celery) -> None:
    """Ends a worker that does nothing, where no supervisor does: the service is started again."""
    if _pulse is None or os.environ.get(PULSE_FILE_VARIABLE):
        return
    queues = tuple(app.amqp.queues.consume_from)
    watch_beside(
        _pulse,
        lambda: any(work_waits(settings.REDIS_URL, queue) for queue in queues),
        _end,
    )


def _end() -> None:
    logger.critical(
        "This worker does nothing although work waits for it. It ends, to be started again."
    )
    for process in billiard.active_children():
        if process.pid:
            os.kill(process.pid, signal.SIGKILL)
    os._exit(STOPPED_WORKING)
