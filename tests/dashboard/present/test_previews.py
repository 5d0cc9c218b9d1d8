"""Previews as pages show them."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.present.previews import shown_preview
from scheduler.domain.previews import Prospect, SetBack, Share, as_json
from scheduler.domain.resources import Resources


def prospect(allocated: str, guarantee: str) -> Prospect:
    share = Share(
        deserved=Resources.parse({"cpu": "8"}),
        allocated=Resources.parse({"cpu": allocated}),
        guarantee=Resources.parse({"cpu": guarantee}),
        asked=Resources.parse({"cpu": "8"}),
    )
    return Prospect({"serving": share}, {}, frozenset(), (), 0, 0, 60.0, "horizon")


def ahead(seconds: float, halt: str, **starts: float) -> Prospect:
    waiting = frozenset({"a", "b", "c"} - set(starts))
    return Prospect({}, starts, waiting, (), 0, 0, seconds, halt)


def shown(before: Prospect, after: Prospect) -> dict[str, Any]:
    return shown_preview({**as_json(before, after), "isCut": False, "paused": False})


@pytest.mark.parametrize(("guarantee_before", "is_new"), [("2", True), ("6", False)])
def test_a_queue_below_its_guarantee_says_whether_that_is_new(guarantee_before: str, is_new: bool):
    told = shown(prospect("4", guarantee_before), prospect("4", "6"))

    assert told["below"] == [{"queue": "serving", "resources": "cpu", "is_new": is_new}]


def test_what_only_the_longer_run_tells_is_no_difference():
    told = shown(
        ahead(600.0, "sessions", a=10.0, b=100.0, c=500.0), ahead(120.0, "stopped", a=40.0, b=90.0)
    )

    assert [move["words"] for move in told["moves"]] == ["30 s later", "10 s earlier"]
    assert (told["now"]["started"], told["now"]["waiting"]) == (2, 1)
    assert told["ahead"] == "2 min ahead"


def test_a_move_within_the_step_of_the_sessions_ahead_is_none():
    told = shown(
        ahead(3600.0, "horizon", a=1000.0, b=1000.0, c=30.0),
        ahead(3600.0, "horizon", a=1010.0, b=1030.0, c=31.0),
    )

    assert [(move["podgroup"], move["words"]) for move in told["moves"]] == [
        ("b", "30 s later"),
        ("c", "1 s later"),
    ]


def test_gangs_that_lose_pods_with_their_nodes_say_whether_they_run_again():
    lost = [SetBack("a", "serving", 2), SetBack("b", "serving", 8), SetBack("gone", "serving", 1)]
    before = Prospect({}, {}, frozenset({"c"}), (), 0, 0, 600.0, "horizon")

    result = as_json(before, ahead(600.0, "horizon", a=40.0), set_back=lost)
    told = shown_preview({**result, "isCut": False, "paused": False})

    rows = [(gang["podgroup"], gang["pods"], gang["words"]) for gang in told["set_back"]]
    assert rows == [
        ("a", 2, "in 40 s"),
        ("b", 8, "not in this time"),
        ("gone", 1, "goes on with the others"),
    ]
    assert told["moves"] == [], "they run already, so they do not start at another time"


def test_a_run_that_came_to_a_standstill_is_known_for_good():
    told = shown(ahead(60.0, "standstill", a=10.0), ahead(3600.0, "horizon", a=10.0, b=3000.0))

    assert [move["words"] for move in told["moves"]] == ["starts, and would not without it"]
    assert told["ahead"] == "60 min ahead"


def test_a_new_queue_that_gets_nothing_is_no_difference():
    nothing = Share(*(Resources.parse({"cpu": "0"}) for _ in range(4)))
    after = Prospect({"fresh": nothing}, {}, frozenset(), (), 0, 0, 60.0, "horizon")

    assert as_json(ahead(60.0, "horizon"), after)["queues"] == []
