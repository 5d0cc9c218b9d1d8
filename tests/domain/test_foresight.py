"""Planned changes followed through their begins and ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from scheduler.domain.calendar import Turn
from scheduler.domain.change_sets import QUEUE, ChangeItem, Crossing
from scheduler.domain.foresight import Booking, look_ahead, objects_at, settled

START = datetime(2026, 11, 20, tzinfo=UTC)


def hour(number: int) -> datetime:
    return START + timedelta(hours=number)


def queue(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "research"}, "spec": spec}


def change(before: dict[str, Any], after: dict[str, Any]) -> ChangeItem:
    return ChangeItem(QUEUE, "research", queue(**before), queue(**after))


def turns(*hours: tuple[int, int | None]) -> tuple[Turn, ...]:
    found = []
    for number, (begins, ends) in enumerate(hours):
        ends_at = None
        if ends is not None:
            ends_at = hour(ends)
        found.append(Turn(number, hour(begins), ends_at))
    return tuple(found)


NOW = {(QUEUE, "research"): queue(cpu="8", weight=1)}
MORE = change({"cpu": "8", "weight": 1}, {"cpu": "24", "weight": 1})
HEAVY = change({"cpu": "8", "weight": 1}, {"cpu": "8", "weight": 5})


def fine(_items: tuple[ChangeItem, ...]) -> tuple[str, ...]:
    return ()


def test_fields_that_only_others_changed_stay_theirs():
    found = settled(MORE, queue(cpu="8", weight=7))

    assert isinstance(found, ChangeItem)
    assert found.wanted == queue(cpu="24", weight=7)
    assert found.reversed.wanted == queue(cpu="8", weight=7)


def test_a_field_of_its_own_that_changed_is_a_crossing():
    found = settled(MORE, queue(cpu="9", weight=7))

    assert isinstance(found, Crossing)
    assert found.message == "Queue research was changed: spec.cpu from 8 to 9."


def test_two_plans_for_other_fields_may_overlap():
    plans = [Booking(1, (MORE,), turns((1, 5))), Booking(2, (HEAVY,), turns((3, 8)))]

    assert look_ahead(plans, NOW, fine) == ()
    assert objects_at(plans, NOW, hour(4))[QUEUE, "research"] == queue(cpu="24", weight=5)
    assert objects_at(plans, NOW, hour(6))[QUEUE, "research"] == queue(cpu="8", weight=5)
    assert objects_at(plans, NOW, hour(9)) == NOW


def test_two_plans_for_the_same_field_may_follow_each_other_but_not_overlap():
    first = Booking(1, (MORE,), turns((1, 5)))

    assert look_ahead([first, Booking(2, (MORE,), turns((5, 8)))], NOW, fine) == ()
    (trouble,) = look_ahead([first, Booking(2, (MORE,), turns((4, 8)))], NOW, fine)
    assert (trouble.plan, trouble.begins, trouble.at) == (2, True, hour(4))
    assert trouble.others == {1}


def test_what_cannot_be_taken_back_is_foreseen():
    """The second one never ends, so the first finds its own field changed."""
    raised = change({"cpu": "24", "weight": 1}, {"cpu": "30", "weight": 1})
    plans = [Booking(1, (MORE,), turns((1, 5))), Booking(2, (raised,), turns((2, None)))]

    (trouble,) = look_ahead(plans, NOW, fine)

    assert (trouble.plan, trouble.begins, trouble.at) == (1, False, hour(5))


def test_each_combination_is_judged_once_and_a_broken_rule_names_its_step():
    judged = []

    def judge(items: tuple[ChangeItem, ...]) -> tuple[str, ...]:
        judged.append(items)
        (spec,) = [item.wanted["spec"] for item in items if item.wanted] or [{}]
        if spec.get("cpu") == "24" and spec.get("weight") == 5:
            return ("Too much together.",)
        return ()

    plans = [
        Booking(1, (MORE,), turns((1, 3), (11, 15), (21, 23))),
        Booking(2, (HEAVY,), turns((4, 6), (14, 16))),
    ]

    (trouble,) = look_ahead(plans, NOW, judge)

    assert (trouble.plan, trouble.number, trouble.at) == (2, 1, hour(14))
    assert trouble.messages == ("Too much together.",)
    assert len(judged) == 4  # nothing, each alone, and both


def test_what_is_in_force_ends_before_others_begin():
    now = {(QUEUE, "research"): queue(cpu="24", weight=1)}
    held = Booking(1, (MORE,), held=(MORE,), held_until=hour(2))

    assert look_ahead([held, Booking(2, (MORE,), turns((2, 3)))], now, fine) == ()


def test_a_plan_that_touches_nothing_of_it_is_not_named():
    other = ChangeItem(QUEUE, "batch", queue(cpu="1"), queue(cpu="2"))
    first = Booking(1, (other,), turns((1, 5)))
    stale = change({"cpu": "7", "weight": 1}, {"cpu": "24", "weight": 1})
    now = {**NOW, (QUEUE, "batch"): queue(cpu="1")}

    (trouble,) = look_ahead([first, Booking(2, (stale,), turns((3, 8)))], now, fine)

    assert (trouble.plan, trouble.others) == (2, frozenset())
