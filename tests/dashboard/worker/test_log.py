"""While the database or Redis is away a worker says so in sentences.

A task that fails for another reason keeps its traceback.
"""

from __future__ import annotations

import ast
import logging
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from celery import shared_task
from celery.signals import task_success
from django.db import OperationalError
from kombu.message import Message
from redis.exceptions import ConnectionError as RedisConnectionError

from dashboard.worker.log import DatabaseAway, redis_away, speak_plainly

_TRACE = logging.getLogger("celery.app.trace")
_CONSUMERS = [
    logging.getLogger(name) for name in ("celery.worker.request", "celery.worker.consumer.consumer")
]


@shared_task(name="tests.read_something")
def read_something(problem: str = "") -> None:
    if problem == "database":
        raise OperationalError(
            "connection failed: Connection refused\n\tIs the server running on that host?"
        )
    if problem:
        raise ValueError(problem)


@pytest.fixture
def plain() -> Iterator[DatabaseAway]:
    made = speak_plainly()
    yield made
    task_success.disconnect(made.over)
    for name in (
        "celery.app.trace",
        "scheduler.services.sessions.runner",
        "scheduler.services.queues.commands",
    ):
        logging.getLogger(name).removeFilter(made)
    for consumer in _CONSUMERS:
        consumer.removeFilter(redis_away)


@pytest.mark.usefixtures("plain")
def test_each_failure_is_a_sentence_and_the_end_of_it_is_told_once(
    caplog: pytest.LogCaptureFixture,
):
    for problem in ("database", "database", "", ""):
        read_something.apply(kwargs={"problem": problem})

    failure = (
        "tests.read_something: not done, the database does not answer: connection failed: "
        "Connection refused"
    )
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert told == [
        "The database does not answer; what is due is tried again at each tick.",
        failure,
        failure,
        "The database answers again.",
    ]
    assert all(record.exc_info is None for record in caplog.records)


@pytest.mark.usefixtures("plain")
def test_any_other_failure_keeps_its_traceback(caplog: pytest.LogCaptureFixture):
    read_something.apply(kwargs={"problem": "a mistake"})

    (record,) = [record for record in caplog.records if record.name == _TRACE.name]
    assert record.exc_info is not None
    assert "a mistake" in record.getMessage()


@pytest.mark.usefixtures("plain")
def test_a_session_that_the_database_left_alone_is_a_sentence_too(caplog: pytest.LogCaptureFixture):
    try:
        raise OperationalError("gone")
    except OperationalError:
        logging.getLogger("scheduler.services.sessions.runner").exception("session %s failed", 7)

    assert (
        caplog.records[-1].getMessage()
        == "session 7 failed: not done, the database does not answer: gone"
    )


class Cut:
    """The channel of a message whose connection broke."""

    no_ack_consumers = frozenset[str]()

    def __init__(self, problem: Exception) -> None:
        self._problem = problem

    def basic_ack(self, *_: object, **__: object) -> None:
        raise self._problem


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("consumer", _CONSUMERS)
@pytest.mark.parametrize("problem", [RedisConnectionError("gone"), ConnectionResetError("gone")])
def test_a_task_that_cannot_be_confirmed_is_a_sentence(
    problem: Exception, consumer: logging.Logger, caplog: pytest.LogCaptureFixture
):
    message = Message(channel=Cut(problem), delivery_tag="7")

    message.ack_log_error(consumer, (RedisConnectionError, OSError))

    (record,) = caplog.records
    assert record.getMessage() == "The connection to Redis broke: gone. A task may come again."
    assert (record.levelno, record.exc_info) == (logging.WARNING, None)


@pytest.mark.usefixtures("plain")
def test_a_mistake_of_whoever_confirms_keeps_its_traceback(caplog: pytest.LogCaptureFixture):
    message = Message(channel=Cut(ValueError("a mistake")), delivery_tag="7")

    message.ack_log_error(_CONSUMERS[0], (ValueError,))

    (record,) = caplog.records
    assert record.exc_info is not None


_SENT_AND_RUN = """
import django
django.setup()
from celery import Celery
from celery.contrib.testing.worker import start_worker
from scheduler.logs import known_as, known_ids

app = Celery("ids", broker="memory://", backend="cache+memory://")

@app.task(name="tests.ids")
def ids():
    return dict(known_ids())

with start_worker(app, perform_ping_check=False, pool="solo", shutdown_timeout=60):
    with known_as(request_id="r-1", session=812, task="asked by"):
        asked = ids.delay()
    told = asked.get(timeout=60)
    later = ids.delay().get(timeout=60)
assert told.pop("task_id") == asked.id
print(told, sorted(later))
"""


def test_a_task_carries_the_ids_of_whoever_asked_for_it_and_nothing_else():
    """Through a real worker, in a process of its own: it takes over the logs of its process."""
    said = subprocess.run(
        [sys.executable, "-c", _SENT_AND_RUN],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "dashboard.settings"},
    )

    told = {"request_id": "r-1", "session": 812, "task": "tests.ids"}
    assert said.returncode == 0, said.stderr
    passed_on, _, later = said.stdout.strip().partition("} ")
    assert ast.literal_eval(passed_on + "}") == told
    assert ast.literal_eval(later) == ["task", "task_id"]
