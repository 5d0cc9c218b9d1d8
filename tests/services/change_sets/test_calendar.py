"""Change sets that begin and end at set times."""

from __future__ import annotations

import pytest

from scheduler.admission.violations import Rejected
from scheduler.domain.access import Forbidden
from scheduler.domain.jobs.commands import NotPossible
from scheduler.models import AuditEntry, ChangePlan, ChangeSet, Event, Grant, Occurrence, Queue
from scheduler.selectors.records.history import queue_history
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.change_sets.apply import apply_change_set
from scheduler.services.change_sets.calendar import keep_calendar
from scheduler.services.change_sets.conflicts import apply_now, skip
from scheduler.services.change_sets.drafts import create_change_set, discard, rename, revert
from scheduler.services.change_sets.outlook import renew_outlooks
from scheduler.services.change_sets.plans import Wish, cancel_plan, plan_change_set
from scheduler.services.queues.create_update import update_queue
from tests.dashboard.work import person
from tests.services.change_sets.builders import edit, exported, machine, quiet_cluster
from tests.services.change_sets.clock import SetClock, at

pytestmark = pytest.mark.django_db

WEEKEND = Wish("2026-11-20T18:00", "2026-11-23T08:00", "Europe/Berlin", weekly=True)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    quiet_cluster()
    return SetClock(monkeypatch, at("2026-11-18T12:00"))


def weight(name: str) -> int:
    return Queue.objects.get(name=name).weight


def planned(
    wish: Wish, *documents: dict[str, object], by: Actor = SYSTEM, name: str = "more"
) -> ChangePlan:
    change_set = create_change_set(name, documents or [edit("research", weight=9)], by=by)
    return plan_change_set(change_set.pk, wish, by=by)


def once(begin: str, end: str = "") -> Wish:
    return Wish(begin, end, "UTC")


def states() -> list[str]:
    return list(Occurrence.objects.order_by("pk").values_list("state", flat=True))


def set_state(plan: ChangePlan) -> str:
    return ChangeSet.objects.get(pk=plan.change_set_id).state


def actions() -> list[str]:
    told = AuditEntry.objects.filter(kind="ChangeSet").order_by("pk")
    return list(told.values_list("action", flat=True))


def test_a_weekend_begins_and_ends_by_itself_and_leaves_what_was(clock: SetClock):
    before = exported()
    plan = planned(WEEKEND, by=person("admin"))
    assert set_state(plan) == "Planned"

    clock.set("2026-11-20T16:59")
    keep_calendar()
    assert weight("research") == 1

    clock.set("2026-11-20T17:00")
    keep_calendar()
    keep_calendar()
    assert weight("research") == 9
    assert states() == ["Holding", "Planned"]

    clock.set("2026-11-23T07:00")
    keep_calendar()
    assert exported() == before
    assert states() == ["Ended", "Planned"]
    assert actions() == ["PlanChangeSet", "BeginPlannedChange", "EndPlannedChange"]
    began = AuditEntry.objects.get(action="UpdateQueue", actor="admin")
    assert began.reason == f"planned (change set {plan.change_set_id}: more)"
    assert Event.objects.filter(name="research", reason="BeginPlannedChange").exists()
    assert Occurrence.objects.latest("pk").begins_at == at("2026-11-27T17:00")


def test_begin_and_end_are_marks_in_the_history_of_its_queues(clock: SetClock):
    planned(WEEKEND, by=person("admin"))
    for moment in ("2026-11-20T17:00", "2026-11-23T07:00"):
        clock.set(moment)
        keep_calendar()

    history = queue_history("research", "7d", now=at("2026-11-23T08:00"))

    marks = [(mark.action, mark.actor) for mark in history.markers if mark.kind == "plan"]
    assert marks == [("BeginPlannedChange", "admin"), ("EndPlannedChange", "admin")]
    others = queue_history("batch", "7d", now=at("2026-11-23T08:00")).markers
    assert [mark for mark in others if mark.kind == "plan"] == []


def test_one_without_an_end_is_applied_for_good_and_can_be_reverted(clock: SetClock):
    before = exported()
    plan = planned(once("2026-11-19T10:00"), edit("research", weight=9), machine("n3", "4"))

    clock.set("2026-11-21T10:00")  # late, but its time has no end
    keep_calendar()

    assert weight("research") == 9
    assert set_state(plan) == "Applied"
    assert states() == ["Ended"]
    apply_change_set(revert(plan.change_set_id).pk)
    assert exported() == before


def test_the_last_date_ends_a_weekly_plan_and_its_set_is_a_draft_again(clock: SetClock):
    wish = Wish("2026-11-20T18:00", "2026-11-20T20:00", "UTC", True, "2026-11-27")
    plan = planned(wish)

    for day in ("2026-11-20", "2026-11-27", "2026-12-04"):
        for hour in ("18:00", "20:00"):
            clock.set(f"{day}T{hour}")
            keep_calendar()

    assert states() == ["Ended", "Ended"]
    plan.refresh_from_db()
    assert (plan.state, set_state(plan)) == ("Ended", "Draft")
    apply_change_set(plan.change_set_id)


def test_a_turn_that_was_slept_through_is_missed_and_one_that_still_runs_begins_late(
    clock: SetClock,
):
    planned(WEEKEND)

    clock.set("2026-12-12T03:00")  # the fourth weekend
    keep_calendar()

    assert states() == ["Missed", "Missed", "Missed", "Holding", "Planned"]
    assert weight("research") == 9
    assert actions().count("MissPlannedChange") == 3


def test_a_clock_that_was_ahead_for_a_moment_costs_no_turn(clock: SetClock):
    planned(WEEKEND)
    clock.set("2027-02-03T00:00")
    keep_calendar()
    assert "Planned" not in states()[:-1]

    clock.set("2026-11-20T17:00")
    keep_calendar()

    assert states()[:2] == ["Holding", "Planned"]
    assert weight("research") == 9


@pytest.mark.parametrize("is_touched", [False, True])
def test_a_plan_that_is_over_by_a_clock_ahead_is_taken_up_while_nobody_touched_its_set(
    clock: SetClock, is_touched: bool
):
    plan = planned(once("2026-11-20T18:00", "2026-11-20T20:00"))
    clock.set("2026-11-20T23:00")
    keep_calendar()
    assert (states(), set_state(plan)) == (["Missed"], "Draft")
    if is_touched:
        rename(plan.change_set_id, "mine again", "")

    clock.set("2026-11-20T18:30")
    keep_calendar()

    if is_touched:
        assert (states(), set_state(plan), weight("research")) == (["Missed"], "Draft", 1)
        return
    assert (states(), set_state(plan), weight("research")) == (["Holding"], "Planned", 9)
    clock.set("2026-11-20T20:00")
    keep_calendar()
    assert (states(), set_state(plan), weight("research")) == (["Ended"], "Draft", 1)


def test_other_fields_that_changed_meanwhile_stay(clock: SetClock):
    planned(once("2026-11-19T10:00", "2026-11-19T12:00"))
    update_queue("research", {"spec": {"deserved": {"cpu": "13"}}}, merge=True)

    clock.set("2026-11-19T10:00")
    keep_calendar()
    update_queue("research", {"metadata": {"annotations": {"by": "ruth"}}}, merge=True)
    clock.set("2026-11-19T12:00")
    keep_calendar()

    row = Queue.objects.get(name="research")
    assert (row.weight, row.deserved.to_quantities()) == (1, {"cpu": "13"})
    assert row.annotations == {"by": "ruth"}
    assert states() == ["Ended"]


def test_a_field_of_its_own_that_changed_is_kept_for_a_person(clock: SetClock):
    planned(once("2026-11-19T10:00", "2026-11-19T12:00"))
    update_queue("research", {"spec": {"weight": 4}}, merge=True)

    clock.set("2026-11-19T10:00")
    keep_calendar()
    keep_calendar()

    (row,) = Occurrence.objects.all()
    assert row.state == "BeginConflict"
    assert row.message == "Queue research was changed: spec.weight from 1 to 4."
    assert weight("research") == 4
    assert actions().count("HoldUpPlannedChange") == 1

    apply_now(row.pk, by=person("admin"))
    assert weight("research") == 9
    clock.set("2026-11-19T12:00")
    keep_calendar()
    assert weight("research") == 4
    assert states() == ["Ended"]


def test_a_conflict_can_be_skipped(clock: SetClock):
    plan = planned(once("2026-11-19T10:00", "2026-11-19T12:00"))
    update_queue("research", {"spec": {"weight": 4}}, merge=True)
    clock.set("2026-11-19T10:00")
    keep_calendar()

    skip(Occurrence.objects.get().pk, by=person("admin"))

    assert (states(), set_state(plan), weight("research")) == (["Skipped"], "Draft", 4)


def test_a_conflict_whose_time_is_over_waits_no_longer(clock: SetClock):
    planned(once("2026-11-19T10:00", "2026-11-19T12:00"))
    update_queue("research", {"spec": {"weight": 4}}, merge=True)
    clock.set("2026-11-19T10:00")
    keep_calendar()
    row = Occurrence.objects.get()
    clock.set("2026-11-19T12:00")
    with pytest.raises(NotPossible):
        apply_now(row.pk)

    keep_calendar()

    assert states() == ["Missed"]


@pytest.mark.parametrize(("choice", "left"), [(apply_now, 1), (skip, 5)])
def test_an_end_that_finds_its_field_changed_is_kept_for_a_person(clock, choice, left: int):
    planned(once("2026-11-19T10:00", "2026-11-19T12:00"))
    clock.set("2026-11-19T10:00")
    keep_calendar()
    update_queue("research", {"spec": {"weight": 5}}, merge=True)
    clock.set("2026-11-19T12:00")
    keep_calendar()
    (row,) = Occurrence.objects.all()
    assert (row.state, weight("research")) == ("EndConflict", 5)

    choice(row.pk, by=person("admin"))

    assert (states(), weight("research")) == (["Ended"], left)


def test_a_rule_that_would_be_broken_is_a_conflict_and_nothing_is_applied(clock: SetClock):
    update_queue("vision", {"spec": {"deserved": {"cpu": "7"}}}, merge=True)
    planned(
        once("2026-11-19T10:00", "2026-11-19T12:00"),
        edit("batch", weight=3),
        edit("language", deserved={"cpu": "5"}),
    )
    update_queue("vision", {"spec": {"deserved": {"cpu": "8"}}}, merge=True)

    clock.set("2026-11-19T10:00")
    keep_calendar()

    (row,) = Occurrence.objects.all()
    assert row.state == "BeginConflict"
    assert "deserved" in row.message
    assert weight("batch") == 1


def test_two_plans_that_break_a_rule_together_are_refused(clock: SetClock):
    planned(once("2026-11-19T10:00", "2026-11-19T14:00"), edit("vision", deserved={"cpu": "7"}))
    small = edit("research", deserved={"cpu": "11"})
    change_set = create_change_set("less", [small])

    with pytest.raises(Rejected) as refused:
        plan_change_set(change_set.pk, once("2026-11-19T09:00", "2026-11-19T10:00"))
    assert "It cannot begin at 2026-11-19 09:00 UTC" in str(refused.value)
    with pytest.raises(Rejected) as refused:
        plan_change_set(change_set.pk, once("2026-11-19T12:00", "2026-11-19T16:00"))
    assert "more would be disturbed. It cannot end at 2026-11-19 14:00 UTC" in str(refused.value)
    assert not change_set.plans.exists()

    plan_change_set(change_set.pk, once("2026-11-19T11:00", "2026-11-19T13:00"))


def test_what_each_child_of_a_broken_sum_is_told_is_said_once(clock: SetClock):
    planned(once("2026-11-19T10:00", "2026-11-19T14:00"), edit("vision", deserved={"cpu": "7"}))
    change_set = create_change_set("more", [edit("language", deserved={"cpu": "9"})])

    with pytest.raises(Rejected) as refused:
        plan_change_set(change_set.pk, once("2026-11-19T11:00", "2026-11-19T13:00"))

    (violation,) = refused.value.violations
    assert violation.message.count("The children's deserved cpu") == 1


def test_an_ordinary_change_that_makes_a_plan_impossible_is_told_before_its_time(clock: SetClock):
    plan = planned(WEEKEND)
    update_queue("research", {"spec": {"weight": 4}}, merge=True)

    clock.pass_by(seconds=61)
    keep_calendar()
    renew_outlooks(at_once=True)

    plan.refresh_from_db()
    (trouble,) = plan.outlook
    assert trouble["message"] == (
        "It cannot begin at 2026-11-20 17:00 UTC: "
        "Queue research was changed: spec.weight from 1 to 4."
    )
    assert actions().count("ForeseeConflict") == 1
    update_queue("research", {"spec": {"weight": 1}}, merge=True)
    renew_outlooks(at_once=True)
    plan.refresh_from_db()
    assert plan.outlook == []


def test_a_cancelled_plan_takes_back_what_holds(clock: SetClock):
    before = exported()
    plan = planned(WEEKEND)
    clock.set("2026-11-21T00:00")
    keep_calendar()
    assert weight("research") == 9

    cancel_plan(plan.pk, by=person("admin"))

    assert exported() == before
    assert states() == ["Ended", "Cancelled"]
    assert (ChangePlan.objects.get().state, set_state(plan)) == ("Cancelled", "Draft")
    clock.set("2026-12-05T00:00")
    keep_calendar()
    assert weight("research") == 1
    with pytest.raises(NotPossible):
        cancel_plan(plan.pk)
    discard(plan.change_set_id)


def test_a_cancelled_plan_that_cannot_be_taken_back_waits_for_a_person(clock: SetClock):
    plan = planned(WEEKEND)
    clock.set("2026-11-21T00:00")
    keep_calendar()
    update_queue("research", {"spec": {"weight": 5}}, merge=True)

    cancel_plan(plan.pk)

    assert states() == ["EndConflict", "Cancelled"]
    assert set_state(plan) == "Planned"
    skip(Occurrence.objects.earliest("pk").pk)
    assert (set_state(plan), weight("research")) == ("Draft", 5)


def test_a_planned_set_cannot_be_changed_applied_or_planned_again(clock: SetClock):
    plan = planned(WEEKEND)

    for deed in (apply_change_set, discard):
        with pytest.raises(NotPossible, match="Cancel its plan first"):
            deed(plan.change_set_id)
    with pytest.raises(NotPossible):
        plan_change_set(plan.change_set_id, WEEKEND)


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        (Wish("soon"), "begin"),
        (Wish("2026-11-20T18:00+01:00"), "begin"),
        (Wish("2026-11-18T11:00"), "begin"),
        (Wish("2028-11-18T11:00"), "begin"),
        (Wish("2026-11-20T18:00", "2026-11-20T18:00"), "end"),
        (Wish("2026-11-20T18:00", "nonsense"), "end"),
        (Wish("2026-11-20T18:00", zone="Mars/Olympus"), "timeZone"),
        (Wish("2026-11-20T18:00", zone="localtime"), "timeZone"),
        (Wish("2026-11-20T18:00", weekly=True), "end"),
        (Wish("2026-11-20T18:00", "2026-11-27T18:00", weekly=True), "end"),
        (Wish("2026-11-20T18:00", last_date="2026-12-01"), "lastDate"),
        (Wish("2026-11-20T18:00", "2026-11-21T18:00", "UTC", True, "2026-11-01"), "lastDate"),
        (Wish("2027-03-28T02:10", "2027-03-28T02:50", "Europe/Berlin"), "end"),
    ],
)
def test_times_that_make_no_sense_are_refused_by_name(clock: SetClock, wish: Wish, field: str):
    change_set = create_change_set("more", [edit("research", weight=9)])

    with pytest.raises(Rejected) as refused:
        plan_change_set(change_set.pk, wish)

    assert [violation.field for violation in refused.value.violations] == [field]
    assert not ChangePlan.objects.exists()


def test_who_may_not_apply_it_may_not_plan_it(clock: SetClock):
    change_set = create_change_set("mine", [edit("research", weight=9)], by=person("ruth"))

    with pytest.raises(Forbidden):
        plan_change_set(change_set.pk, WEEKEND, by=person("ruth"))


def test_rights_that_were_lost_meanwhile_are_a_conflict(clock: SetClock):
    planned(WEEKEND, edit("vision", weight=9), by=person("ruth"))
    Grant.objects.filter(user__username="ruth").delete()

    clock.set("2026-11-20T17:00")
    keep_calendar()

    assert states()[0] == "BeginConflict"
    assert weight("vision") == 1


def test_only_those_concerned_decide(clock: SetClock):
    plan = planned(WEEKEND, edit("vision", weight=9))

    with pytest.raises((Forbidden, ChangePlan.DoesNotExist)):
        cancel_plan(plan.pk, by=person("vera"))
    cancel_plan(plan.pk, by=person("ruth"))


def test_a_dry_run_plans_nothing(clock: SetClock):
    change_set = create_change_set("more", [edit("research", weight=9)])

    plan_change_set(change_set.pk, WEEKEND, dry_run=True)

    assert not ChangePlan.objects.exists()
    change_set.refresh_from_db()
    assert change_set.is_draft


def test_a_queue_of_a_plan_comes_and_goes(clock: SetClock):
    before = exported()
    wish = once("2026-11-19T10:00", "2026-11-19T12:00")
    planned(wish, edit("weekend", parent="root", weight=3))

    clock.set("2026-11-19T10:00")
    keep_calendar()
    assert weight("weekend") == 3
    clock.set("2026-11-19T12:00")
    keep_calendar()

    assert exported() == before
