"""Lines of the log: what they carry beside their message."""

from __future__ import annotations

import json
import logging
import sys

from scheduler.logs import JsonLines, PlainLines, begin_with, ids_to_pass_on, known_as


def record(message: str, *args: object, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("scheduler.tasks", logging.WARNING, __file__, 1, message, args, None)
    made.__dict__.update(extra)
    return made


def test_a_plain_line_is_a_sentence_with_the_ids_behind_it():
    with known_as(request_id="r-1", session=812):
        line = PlainLines().format(record("%s is late", "beat"))

    assert line == "WARNING scheduler.tasks: beat is late [request_id=r-1 session=812]"


def test_a_plain_line_without_ids_is_the_sentence_alone():
    assert PlainLines().format(record("beat is late")) == "WARNING scheduler.tasks: beat is late"


def test_a_json_line_has_time_level_message_ids_and_fields():
    with known_as(request_id="r-1"):
        line = JsonLines().format(record("%s is\nlate", "beat", fields={"seconds": 3}))

    assert "\n" not in line
    told = json.loads(line)
    assert told["time"].endswith("+00:00")
    assert told["level"] == "warning"
    assert told["logger"] == "scheduler.tasks"
    assert told["message"] == "beat is\nlate"
    assert told["request_id"] == "r-1"
    assert told["seconds"] == 3


def test_a_json_line_keeps_the_traceback_in_one_line():
    try:
        raise ValueError("broken")
    except ValueError:
        failed = record("it failed")
        failed.exc_info = sys.exc_info()

    line = JsonLines().format(failed)

    assert "\n" not in line
    assert "ValueError: broken" in json.loads(line)["exception"]


def test_only_the_ids_of_request_and_session_are_passed_on():
    with known_as(request_id="r-1", task="tidy"):
        assert ids_to_pass_on() == {"request_id": "r-1"}


def test_ids_end_with_their_block_and_with_what_begins_next():
    with known_as(request_id="r-1"):
        pass
    assert ids_to_pass_on() == {}

    begin_with({"session": 3})
    begin_with({})
    assert ids_to_pass_on() == {}
