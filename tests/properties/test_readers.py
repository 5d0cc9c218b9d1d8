"""Whatever text comes from outside is read in time that grows with its length, not with its square,
and in a bounded number of steps.

Each reader gets texts made of words that mean something to it, repeated very often. Twice is
measured: the steps that Python takes, which are counted, and the processor time of a text eight
times as long against that of a short one, which a square would make sixty-four times as long.
"""

from __future__ import annotations

import base64
import json
import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.exceptions import SuspiciousOperation
from django.http import QueryDict

from dashboard.api.framework.errors import Refusal
from dashboard.api.framework.fields import wanted_fields
from dashboard.api.framework.pagination import decode_cursor
from dashboard.forms.query import Vocabulary, parse
from dashboard.live.socket import read_request
from scheduler.admission.facts import Facts
from scheduler.admission.rules.workloads import admit_job
from scheduler.documents import read_document, read_documents, read_json
from scheduler.domain.durations import seconds_in
from scheduler.domain.label_selectors import parse_selector
from scheduler.domain.queues import QueueTree
from scheduler.domain.resources import parse_quantity
from scheduler.scenarios.policies import read_policy

SHORT = 1_500
TIMES = 8
MOST_TIMES_AS_LONG = 3 * TIMES  # a square would be 64
STEPS_A_CHARACTER = 60
STEPS_ANYWAY = 20_000

VOCABULARY = Vocabulary(
    reasons=("WaitingForQuota", "QueueClosed"),
    resources={"gpu": "nvidia.com/gpu", "cpu": "cpu"},
    user="ann",
)
REQUEST = SimpleNamespace


@dataclass(frozen=True)
class Reader:
    read: Callable[[str], object]
    words: tuple[str, ...]
    whole: tuple[
        Callable[[int], str], ...
    ] = ()  # texts of about so many characters that are known to be hard
    size: int = SHORT  # characters of a short text


def _repeated_key(size: int) -> str:
    return "{" + ",".join(['"a":1'] * (size // 6)) + "}"


def _many_keys_then_one_twice(size: int) -> str:
    return "{" + ",".join(f'"k{number}":1' for number in range(size // 9)) + ',"k1":2}'


def _long_key_over_a_list(size: int) -> str:
    return json.dumps({"k" * (size // 2): ["a"] * (size // 10)})[:-1] + ', "x": "\\ud83d\\ude00"}'


def _chain_of_tasks(size: int) -> str:
    tasks = [
        {"name": f"t{number}", "replicas": 1, "dependsOn": {"name": [f"t{number - 1}"]}}
        for number in range(1, size // 60)
    ]
    return json.dumps(
        {"metadata": {"name": "j"}, "spec": {"tasks": [{"name": "t0", "replicas": 1}, *tasks]}}
    )


def _unknown_fields(size: int) -> str:
    return json.dumps(
        {
            "metadata": {"name": "j"},
            "spec": {f"minAvailabl{number}": 1 for number in range(size // 20)},
        }
    )


def _many_policies(size: int) -> str:
    policies = [{"event": "PodFailed", "action": "RestartJob"}] * (size // 45)
    return json.dumps(
        {"metadata": {"name": "j"}, "spec": {"tasks": [{"name": "t"}], "policies": policies}}
    )


def _admitted(text: str) -> object:
    return admit_job(read_json(text), QueueTree([]), Facts())


def _cursor(text: str) -> object:
    return decode_cursor(base64.urlsafe_b64encode(text.encode()).decode(), 2)


def _fields(text: str) -> object:
    return wanted_fields(REQUEST(query_params={"fields": text}))


_JSON = (
    "{",
    "}",
    "[",
    "]",
    '"a"',
    '"a":1',
    ",",
    ":",
    "1",
    "-1.5e3",
    "true",
    "null",
    '"\\ud83d\\ude00"',
    '"\\ud83d"',
    " ",
    "\n",
    "é",
)
_YAML = (
    "a: b\n",
    "- ",
    "  ",
    "{",
    "}",
    "[",
    "]",
    "? ",
    ": ",
    "|\n",
    ">\n",
    "---\n",
    "...\n",
    "'",
    '"',
    "#",
    "&a ",
    "*a ",
    "!!x ",
    "a",
    "\n",
    "\t",
    "%",
)
_QUERY = (
    "state:",
    "queue:a/*",
    "-",
    '"',
    ",",
    "gpu>=8",
    "age>1h",
    "user:me",
    " ",
    "a",
    "*",
    "reason:x",
    "<",
    ":",
    "1w2d3h",
)
_AMOUNT = ("1", "0", ".", "e", "E", "-", "+", "Gi", "m", "k", " ", "c")

READERS = {
    "json": Reader(
        read_json, _JSON, (_repeated_key, _many_keys_then_one_twice, _long_key_over_a_list)
    ),
    "a document": Reader(read_document, (*_JSON, *_YAML), (_repeated_key, _long_key_over_a_list)),
    "yaml": Reader(
        read_documents,
        _YAML,
        (lambda size: "---\n" * (size // 4), lambda size: "a: 1\n" * (size // 5)),
    ),
    "a policy": Reader(
        read_policy,
        (*_YAML, 'actions: "allocate"\n', "tiers:\n", "- plugins:\n", "  - name: gang\n"),
    ),
    "the query box": Reader(
        lambda text: parse(text, VOCABULARY),
        _QUERY,
        (lambda size: "queue:" + "a," * (size // 2),),
    ),
    "a quantity": Reader(lambda text: parse_quantity("cpu", text), _AMOUNT),
    "a length of time": Reader(seconds_in, ("1", "h", "m", "s", "ms", ".", "-", "w", " ")),
    "a cursor": Reader(_cursor, ("[", "]", "true", ",", "1", '"a"', "{", "}")),
    "a cursor as it came": Reader(
        lambda text: decode_cursor(text, 2), ("a", "=", "_", "-", "é", "W10", " ")
    ),
    "a label selector": Reader(
        parse_selector,
        ("a", "=", "==", "!=", ",", "!", " in ", " notin ", "(", ")", "b/c", " ", "-", "."),
    ),
    "fields": Reader(_fields, ("metadata", ".", ",", "name", " ")),
    "a query string": Reader(QueryDict, ("a=1", "&", "%41", "%", "+", "=", ";")),
    "a word of the socket": Reader(read_request, _JSON),
    "a job": Reader(
        _admitted,
        (),
        (_chain_of_tasks, _unknown_fields, _many_policies),
        size=10 * SHORT,
    ),
}


def _texts(reader: Reader) -> list[Callable[[int], str]]:
    """Some beginning, a few words again and again, some end: the same at any length."""
    chance = random.Random(13)

    def some(most: int) -> str:
        return "".join(chance.choice(reader.words) for _ in range(chance.randint(0, most)))

    def pumped(begin: str, again: str, end: str) -> Callable[[int], str]:
        return lambda size: begin + again * (size // len(again)) + end

    made = (
        [pumped(some(3), some(3) or reader.words[0], some(2)) for _ in range(40)]
        if reader.words
        else []
    )
    return [*reader.whole, *made]


def _read(reader: Reader, text: str) -> None:
    with suppress(ValueError, Refusal, SuspiciousOperation):
        reader.read(text)


def _seconds(reader: Reader, text: str) -> float:
    begun = time.thread_time()
    _read(reader, text)
    return time.thread_time() - begun


def _steps(reader: Reader, text: str) -> int:
    counted = 0

    def count(_frame: Any, _event: str, _argument: Any) -> None:
        nonlocal counted
        counted += 1

    sys.setprofile(count)
    try:
        _read(reader, text)
    finally:
        sys.setprofile(None)
    return counted


@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_no_more_steps_than_the_text_is_long(name: str):
    reader = READERS[name]

    for make in _texts(reader):
        text = make(reader.size * TIMES)
        assert _steps(reader, text) <= STEPS_ANYWAY + STEPS_A_CHARACTER * len(text), text[:200]


@pytest.mark.parametrize("name", READERS)
def test_a_text_eight_times_as_long_is_read_in_about_eight_times_the_time(name: str):
    reader = READERS[name]

    for make in _texts(reader):
        short = make(reader.size)
        long = make(reader.size * TIMES)
        _read(reader, short)
        assert any(_is_in_proportion(reader, short, long) for _ in range(5)), short[:200]


def _is_in_proportion(reader: Reader, short: str, long: str) -> bool:
    """What is over at once is not measured: a clock's own grain would decide."""
    took = _seconds(reader, long)
    if took < 0.005:
        return True
    return took <= MOST_TIMES_AS_LONG * max(min(_seconds(reader, short) for _ in range(3)), 1e-4)
