"""What a worker logs while the database is away: one sentence for each task, not a traceback."""

from __future__ import annotations

import logging
from typing import Any, Final

from celery.signals import task_success
from django.db import InterfaceError, OperationalError

from scheduler.outages import Outage, in_a_line

logger = logging.getLogger(__name__)

# Who logs what a task raised: Celery itself, and services that log a failure and raise it again.
_TELLERS: Final = (
    "celery.app.trace",
    "scheduler.services.sessions.runner",
    "scheduler.services.queues.commands",
    "scheduler.services.cluster.tick",
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


def speak_plainly() -> DatabaseAway:
    """Call it once in each process. A task that succeeds shows that the database is back."""
    plain = DatabaseAway()
    for name in _TELLERS:
        logging.getLogger(name).addFilter(plain)
    task_success.connect(plain.over, weak=False)
    return plain
