"""Two workers and two people at the same planned change."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler.models import AuditEntry, ChangePlan, Occurrence, Queue
from scheduler.models.clock import database_now
from scheduler.services.change_sets.calendar import keep_calendar
from scheduler.services.change_sets.drafts import create_change_set
from scheduler.services.change_sets.plans import Wish, cancel_plan, plan_change_set
from tests.services.change_sets.builders import edit, quiet_cluster
from tests.services.test_races import crossing

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def due() -> Occurrence:
    """A turn that began a minute ago and ends in an hour."""
    quiet_cluster()
    now = database_now()
    tomorrow = now + timedelta(days=1)
    change_set = create_change_set("more", [edit("research", weight=9)])
    begin = f"{tomorrow:%Y-%m-%dT%H:%M}"
    end = f"{tomorrow + timedelta(hours=2):%Y-%m-%dT%H:%M}"
    plan_change_set(change_set.pk, Wish(begin, end, "UTC", weekly=True))
    row = Occurrence.objects.get()
    row.begins_at = now - timedelta(minutes=1)
    row.ends_at = now + timedelta(hours=1)
    row.save()
    return row


def changes() -> int:
    return AuditEntry.objects.filter(action="UpdateQueue", name="research").count()


def test_two_workers_begin_and_end_it_once(due: Occurrence):
    one, two = crossing(keep_calendar, keep_calendar)

    assert (one.error, two.error) == (None, None)
    due.refresh_from_db()
    assert (due.state, changes(), Queue.objects.get(name="research").weight) == ("Holding", 1, 9)
    assert Occurrence.objects.filter(plan=due.plan, number=1).count() == 1

    due.ends_at = database_now()
    due.save()
    one, two = crossing(keep_calendar, keep_calendar)

    assert (one.error, two.error) == (None, None)
    due.refresh_from_db()
    assert (due.state, changes(), Queue.objects.get(name="research").weight) == ("Ended", 2, 1)
    assert AuditEntry.objects.filter(action="BeginPlannedChange").count() == 1
    assert AuditEntry.objects.filter(action="EndPlannedChange").count() == 1


def test_a_plan_that_is_cancelled_while_a_worker_begins_it_is_taken_back(due: Occurrence):
    one, two = crossing(keep_calendar, lambda: cancel_plan(due.plan_id))

    assert (one.error, two.error) == (None, None)
    due.refresh_from_db()
    assert (due.state, Queue.objects.get(name="research").weight) == ("Ended", 1)
    assert ChangePlan.objects.get().state == "Cancelled"


def test_of_two_plans_that_cannot_be_together_one_is_refused(due: Occurrence):
    tomorrow = database_now() + timedelta(days=20)
    wish = Wish(f"{tomorrow:%Y-%m-%dT%H:%M}", zone="UTC")
    sets = []
    for name, amount in (("more", "9"), ("most", "10")):
        sets.append(create_change_set(name, [edit("batch", deserved={"cpu": amount})]))

    one, two = crossing(
        lambda: plan_change_set(sets[0].pk, wish), lambda: plan_change_set(sets[1].pk, wish)
    )

    assert one.error is None
    assert "It cannot begin" in str(two.error)
