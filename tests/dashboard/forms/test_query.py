"""The query box: what is read, and what is said about what cannot be read."""

from __future__ import annotations

import pytest

from dashboard.forms.query import Vocabulary, parse
from scheduler.domain.filters import Comparison, Condition

WORDS = Vocabulary(
    reasons=("WaitingForQuota", "GangIncomplete"),
    resources={"cpu": "cpu", "memory": "memory", "gpu": "nvidia.com/gpu"},
    user="alice",
)


def conditions(text: str) -> tuple[Condition, ...]:
    query = parse(text, WORDS)
    assert not query.problems
    return query.conditions


def test_the_example_of_the_box_is_understood():
    found = conditions("state:pending queue:team-a/* user:me gpu>=8 age>1h reason:WaitingForQuota")

    assert found == (
        Condition("state", values=("pending",)),
        Condition("queue", values=("team-a/*",)),
        Condition("user", values=("alice",)),
        Condition("resource:nvidia.com/gpu", Comparison.AT_LEAST, number=8000),
        Condition("age", Comparison.MORE, number=3600),
        Condition("reason", values=("WaitingForQuota",)),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("train", Condition("text", values=("train",))),
        ("-train", Condition("text", values=("train",), negated=True)),
        ('"two words"', Condition("text", values=("two words",))),
        ("state:failed,running", Condition("state", values=("failed", "running"))),
        ("-state:failed", Condition("state", values=("failed",), negated=True)),
        ("State:Aborted", Condition("state", values=("aborted",))),
        ("state:suspended", Condition("state", values=("aborted",))),
        ("reason:waitingforquota", Condition("reason", values=("WaitingForQuota",))),
        ("ns:research", Condition("namespace", values=("research",))),
        ("memory<64Gi", Condition("resource:memory", Comparison.LESS, number=64 * 2**30)),
        ("cpu>500m", Condition("resource:cpu", Comparison.MORE, number=500)),
        ("nvidia.com/gpu=2", Condition("resource:nvidia.com/gpu", Comparison.EQUAL, number=2000)),
        ("gpu:2", Condition("resource:nvidia.com/gpu", Comparison.EQUAL, number=2000)),
        ("wait>=1h30m", Condition("wait", Comparison.AT_LEAST, number=5400)),
        ("age<2d", Condition("age", Comparison.LESS, number=172_800)),
        ("priority>=1000", Condition("priority", Comparison.AT_LEAST, number=1000)),
    ],
)
def test_one_word(text: str, expected: Condition):
    assert conditions(text) == (expected,)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("stat:pending", "There is no field “stat”: did you mean “state”?"),
        ("state:xyz", "There is no state “xyz”. There are waiting, pending"),
        ("reason:WaitingForQouta", "did you mean “WaitingForQuota”?"),
        ("gpu>=many", "“many” is not an amount of gpu: write a number such as 8"),
        ("gpu>=1.5", "is not an amount of gpu"),
        ("age>99999999999999999w", "is longer than a hundred years: write something like age>1h"),
        ("name:" + ",".join(map(str, range(101))), "“name” has 101 values: write 100 at most."),
        ("age>soon", "“soon” is not a length of time: write 30s, 15m, 1h"),
        ("priority>high", "“high” is not a whole number: write priority>=1000."),
        ("state>pending", "“state” cannot be compared with >: write state:pending."),
        ("queue:", "“queue:” has no value"),
        ("colour:red", "There are state, queue, user"),
    ],
)
def test_what_is_wrong_is_said_with_what_there_is(text: str, said: str):
    query = parse(text, WORDS)

    assert len(query.problems) == 1
    assert said in query.problems[0]
    assert query.conditions == ()


def test_the_rest_holds_although_one_word_is_wrong():
    query = parse("state:running colour:red", WORDS)

    assert query.conditions == (Condition("state", values=("running",)),)
    assert query.without(1) == "state:running"


def test_a_filter_without_end_is_read_as_far_as_it_may_go():
    query = parse("word " * 5000, WORDS)

    assert len(query.conditions) == 40
    assert query.problems == (
        "A filter has at most 40 words: leave this one and those behind it out.",
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        ":",
        '"',
        "-",
        '""',
        "a:b:c",
        "gpu>=<=8",
        "∞>1",
        "state:,",
        "x" * 5000,
        "-:-",
        "queue:[*",
    ],
)
def test_whatever_is_typed_nothing_breaks(text: str):
    query = parse(text, WORDS)

    assert len(query.terms) >= len(query.problems)
