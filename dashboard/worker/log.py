"""What a worker logs: the ids of whoever asked for a task, and sentences instead of tracebacks
while the database or Redis is away.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from celery import Task
from celery.signals import before_task_publish, task_postrun, task_prerun, task_success
from django.db import InterfaceError, OperationalError
from redis.exceptions import RedisError

from scheduler.logs import begin_with, ids_to_pass_on
from scheduler.outages import Outage, in_a_line

logger = logging.getLogger(__name__)

_IDS_HEADER: Final = "fumarole_ids"

# Who logs what a task raised: Celery itself, and services that log a failure and raise it again.
_TELLERS: Final = (
    "celery.app.trace",
    "scheduler.services.sessions.runner",
    "scheduler.services.queues.commands",
    "scheduler.services.cluster.tick",
)

# Who in Celery says that a task could not be confirmed or given back.
_CONFIRMERS: Final = (
    "celery.worker.request",
    "celery.worker.consumer.consumer",
    "celery.worker.loops",
    "celery.concurrency.prefork",
    "kombu.asynchronous.hub",
)


class DatabaseAway(logging.Filter):
    """Turns the traceback of a database that does not answer into a sentence."""

    def __init__(self) -> None:
        super().__init__()
        self._outage = Outage(logger, "The database answers again.")

    def filter(self, record: logging.LogRecord) -> bool:
        problem = None
        if record.exc_info:
            problem = record.exc_info[1]
        if not isinstance(problem, OperationalError | InterfaceError):
            return True
        if isinstance(record.args, dict):
            what = record.args.get("name", "")
        else:
            what = record.getMessage()
        self._outage.noticed(
            "The database does not answer; what is due is tried again at each tick."
        )
        record.msg = "%s: not done, the database does not answer: %s"
        record.args = (what, in_a_line(problem))
        record.exc_info = record.exc_text = None
        return True

    def over(self, **_: Any) -> None:
        self._outage.over()


def redis_away(record: logging.LogRecord) -> bool:
    """A filter that turns the traceback of a connection to Redis that broke into a sentence.

    Nothing is lost: what was not confirmed comes again, and every task may be done twice.
    """
    problem = None
    if record.exc_info:
        problem = record.exc_info[1]
    if isinstance(problem, RedisError | OSError):
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.msg = "The connection to Redis broke: %s. A task may come again."
        record.args = (in_a_line(problem),)
        record.exc_info = record.exc_text = None
    return True


def speak_plainly() -> DatabaseAway:
    """Call it once in each process. A task that succeeds shows that the database is back."""
    plain = DatabaseAway()
    for name in _TELLERS:
        logging.getLogger(name).addFilter(plain)
    for name in _CONFIRMERS:
        logging.getLogger(name).addFilter(redis_away)
    task_success.connect(plain.over, weak=False)
    return plain


def carry_ids_with_tasks() -> None:
    """Call it once in each process that asks for tasks or runs them."""
    before_task_publish.connect(_pass_on, weak=False, dispatch_uid="pass ids on")
    task_prerun.connect(_take_over, weak=False, dispatch_uid="take ids over")
    task_postrun.connect(_forget, weak=False, dispatch_uid="forget ids")


def _pass_on(headers: dict[str, Any], **_: Any) -> None:
    headers[_IDS_HEADER] = ids_to_pass_on()


def _take_over(task_id: str, task: Task[..., Any], **_: Any) -> None:
    ids = task.request.get(_IDS_HEADER) or {}
    begin_with({**ids, "task": task.name, "task_id": task_id})


def _forget(**_: Any) -> None:
    begin_with({})
