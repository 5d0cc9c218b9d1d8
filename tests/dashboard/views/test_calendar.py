"""The calendar, and the plan on the page of a change set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.models import ChangePlan, ChangeSet, Occurrence, Preview, Queue
from scheduler.services.change_sets.calendar import keep_calendar
from scheduler.services.change_sets.drafts import create_change_set
from scheduler.services.change_sets.preview_runs import work_out_previews
from tests.dashboard.work import person, signed_in, small_cluster, text
from tests.services.change_sets.builders import edit

pytestmark = pytest.mark.django_db

SOON = (datetime.now(UTC) + timedelta(days=2)).replace(second=0, microsecond=0)


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


@pytest.fixture
def draft() -> ChangeSet:
    return create_change_set("Night shift", [edit("vision", weight=7)], by=person("admin"))


def times(hours: int = 2, **more: str) -> dict[str, str]:
    end = SOON + timedelta(hours=hours)
    return {"begin": f"{SOON:%Y-%m-%dT%H:%M}", "end": f"{end:%Y-%m-%dT%H:%M}", **more}


def let_it_begin() -> None:
    Occurrence.objects.update(begins_at=datetime.now(UTC) - timedelta(minutes=1))
    keep_calendar()


def test_a_set_is_planned_on_the_calendar_and_shown_in_its_month(draft: ChangeSet):
    admin = signed_in("admin")

    answer = admin.post("/changes/calendar/", times(change_set=str(draft.pk), zone="UTC"))

    assert answer.url == f"/changes/calendar/?month={SOON:%Y-%m}"
    shown = text(admin.get(answer.url))
    assert f'href="/changes/{draft.pk}/"' in shown
    assert f"{SOON:%H:%M}" in shown
    assert "Night shift" not in text(signed_in("ruth").get("/changes/calendar/?month=2101-01"))


@pytest.mark.parametrize(
    ("given", "status", "words"),
    [
        ({"change_set": "999"}, 404, "There is no change set 999"),
        ({"change_set": "x"}, 409, "Choose a change set"),
        ({"zone": "Mars/Phobos"}, 400, "is not a time zone"),
        ({"begin": "2020-01-01T10:00", "end": ""}, 400, "which has passed"),
        ({"end": "2020-01-01T10:00"}, 400, "The end is not after the begin"),
        ({"end": "", "weekly": "on"}, 400, "must end in between"),
    ],
)
def test_what_makes_no_sense_is_refused_and_stays_typed(
    draft: ChangeSet, given: dict[str, str], status: int, words: str
):
    typed = {**times(change_set=str(draft.pk), zone="UTC"), **given}

    answer = signed_in("admin").post("/changes/calendar/", typed)

    assert answer.status_code == status
    assert words in text(answer)
    assert f'value="{typed["begin"]}"' in text(answer)
    assert not ChangePlan.objects.exists()


@pytest.mark.parametrize("month", ["2026-13", "soon", "9999-12", "0001-01"])
def test_a_month_that_is_none_is_told(month: str):
    answer = signed_in("admin").get(f"/changes/calendar/?month={month}")

    assert answer.status_code == 400
    assert "is not a month" in text(answer)


def test_a_planned_set_is_previewed_for_its_own_time(draft: ChangeSet):
    admin = signed_in("admin")
    page = f"/changes/{draft.pk}/"
    admin.post(f"{page}plan/", times(zone="UTC"))

    admin.post(f"{page}preview/", {"minutes": "10"})
    work_out_previews()

    preview = Preview.objects.get()
    assert preview.begins_at == SOON
    assert preview.result is not None
    assert preview.result["asOf"] == SOON.isoformat()
    assert "when it begins, made from the cluster of" in text(admin.get(page))

    earlier = SOON - timedelta(minutes=1)
    preview.result = {**preview.result, "asOf": earlier.isoformat()}
    preview.save()
    assert "but the forecast ran out of time at" in text(admin.get(page))


def test_a_refused_plan_leads_to_the_plan_that_is_in_its_way(draft: ChangeSet):
    admin = signed_in("admin")
    admin.post(f"/changes/{draft.pk}/plan/", times(zone="UTC"))
    other = create_change_set("Other", [edit("vision", weight=9)], by=person("admin"))
    page = f"/changes/{other.pk}/"
    assert "these changes break no rule" in text(admin.get(page))

    answer = admin.post(f"{page}plan/", times(zone="UTC"))
    on_calendar = admin.post("/changes/calendar/", times(change_set=str(other.pk), zone="UTC"))

    assert (answer.status_code, on_calendar.status_code) == (400, 400)
    assert "these changes break no rule" not in text(answer)
    for refused in (text(answer), text(on_calendar)):
        assert "It was not planned." in refused
        assert f'In the way: <a href="/changes/{draft.pk}/">Night shift</a>' in refused
    assert "Nothing was changed" not in text(answer)


def test_one_in_force_has_nothing_to_try_out_and_is_taken_back_when_cancelled(draft: ChangeSet):
    admin = signed_in("admin")
    page = f"/changes/{draft.pk}/"
    admin.post(f"{page}plan/", times(zone="UTC"))
    let_it_begin()

    shown = text(admin.get(page))
    assert "Nothing of it is still to begin" in shown
    assert "Preview the effect" not in shown
    assert Queue.objects.get(name="vision").weight == 7
    admin.post(f"{page}unplan/")

    assert Queue.objects.get(name="vision").weight == 1
    assert ChangeSet.objects.get().state == "Draft"


def test_whoever_may_not_change_the_queue_plans_and_decides_nothing(draft: ChangeSet):
    page = f"/changes/{draft.pk}/"
    vera = signed_in("vera")

    assert vera.post(f"{page}plan/", times(zone="UTC")).status_code == 403
    signed_in("admin").post(f"{page}plan/", times(zone="UTC"))
    turn = Occurrence.objects.get()

    assert vera.post(f"{page}unplan/").status_code == 403
    assert vera.post(f"/changes/occurrences/{turn.pk}/skip/").status_code == 403
    assert "Cancel the plan" not in text(vera.get(page))
    assert Occurrence.objects.get().state == "Planned"


def test_a_decision_that_is_only_read_decides_nothing(draft: ChangeSet):
    page = f"/changes/{draft.pk}/"
    admin = signed_in("admin")
    admin.post(f"{page}plan/", times(zone="UTC"))
    turn = Occurrence.objects.get()

    answer = admin.get(f"/changes/occurrences/{turn.pk}/skip/")

    assert (answer.status_code, answer.url) == (302, page)
    assert Occurrence.objects.get().state == "Planned"
