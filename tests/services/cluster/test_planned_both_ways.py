"""The calendar and safe windows on a real API server, where each queue is written by itself."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.models import ChangeSet, Occurrence, Queue, SafeWindow
from scheduler.services.change_sets import drafts
from scheduler.services.change_sets.calendar import keep_calendar
from scheduler.services.change_sets.drafts import create_change_set
from scheduler.services.change_sets.plans import Wish, plan_change_set
from scheduler.services.change_sets.windows import (
    abandon_window,
    apply_window,
    begin_window,
    resume_window,
    revert_window,
    suspend_again,
)
from tests.control_plane import objects
from tests.control_plane.objects import wait_until
from tests.services.change_sets.builders import edit
from tests.services.change_sets.clock import SetClock, at
from tests.services.cluster.test_change_sets_both_ways import (
    NO_WEIGHT_13,
    is_refused,
    made,
    specs,
    wishes,
)
from tests.services.cluster.test_queues_both_ways import ADMIN, names, wait_for, watching

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kubernetes]


def state_of_turn(number: int) -> str:
    return str(Occurrence.objects.values_list("state", flat=True).get(plan=number))


def let_pass(clock: SetClock, moment: str, number: int, state: str) -> None:
    """Ticks until the turn of this plan is in that state."""
    clock.set(moment)

    def is_there() -> bool:
        keep_calendar()
        return state_of_turn(number) == state

    wait_until(is_there, f"{state} at {moment}")


def test_turns_begin_end_and_are_taken_back_where_the_server_refuses(
    extended_control_plane: Any, monkeypatch: pytest.MonkeyPatch
):
    plane = extended_control_plane
    clock = SetClock(monkeypatch, at("2026-11-18T12:00"))
    made(plane, *(objects.queue(name, weight=1, parent="root") for name in ("a", "b")))
    with watching(plane):
        wait_for("b", weight=1)
        before = specs(plane)
        weekend = [edit("a", weight=5), edit("c", parent="a", weight=2)]
        good = plan_change_set(
            create_change_set("weekend", weekend).pk, Wish("2026-11-19T10:00", "2026-11-19T12:00")
        )
        unlucky = [edit("a", weight=6), edit("b", weight=13)]
        bad = plan_change_set(
            create_change_set("unlucky", unlucky).pk, Wish("2026-11-20T10:00", "2026-11-20T12:00")
        )

        let_pass(clock, "2026-11-19T10:00", good.pk, "Holding")
        assert (specs(plane)["a"]["weight"], "c" in names(plane)) == (5, True)
        let_pass(clock, "2026-11-19T12:00", good.pk, "Ended")
        assert wishes(specs(plane)) == wishes(before)

        made(plane, *NO_WEIGHT_13)
        wait_until(lambda: is_refused(plane), "the policy is in force")
        let_pass(clock, "2026-11-20T10:00", bad.pk, "BeginConflict")
        assert "13 brings bad luck" in Occurrence.objects.get(plan=bad).message
        assert wishes(specs(plane)) == wishes(before)


def test_a_safe_window_and_the_undo_of_each_step(extended_control_plane: Any):
    plane = extended_control_plane
    made(
        plane,
        objects.queue("research", weight=1, parent="root"),
        objects.queue("vision", weight=1, parent="research"),
    )
    with watching(plane):
        wait_for("vision", weight=1)
        before = specs(plane)
        window = begin_window("research", by=ADMIN).window
        wait_for("vision", state="Suspended")
        drafts.add_documents(window.change_set_id, [edit("vision", weight=7)], by=ADMIN)

        apply_window(window.pk, by=ADMIN)
        wait_for("vision", weight=7)
        revert_window(window.pk, by=ADMIN)
        wait_for("vision", weight=1)
        apply_window(window.pk, by=ADMIN)
        wait_for("vision", weight=7)
        resume_window(window.pk, by=ADMIN)
        wait_for("vision", state="Open")
        assert specs(plane)["vision"]["weight"] == 7

        suspend_again(window.pk, by=ADMIN)
        wait_for("vision", state="Suspended")
        abandon_window(window.pk, by=ADMIN)
        wait_for("vision", state="Open", weight=1)
        assert wishes(specs(plane)) == wishes(before)
        assert SafeWindow.objects.get().state == "Abandoned"
        assert not Queue.objects.filter(state="Suspended").exists()
        assert ChangeSet.objects.filter(state="Applied").count() == 4
