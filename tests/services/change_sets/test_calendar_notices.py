"""Who is told of planned changes without having asked for it."""

from __future__ import annotations

from collections import defaultdict

import pytest

from scheduler.models import Notice, Queue
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.accounts.preferences import set_preferences
from scheduler.services.change_sets.calendar import keep_calendar
from scheduler.services.change_sets.drafts import create_change_set
from scheduler.services.change_sets.plans import Wish, plan_change_set
from scheduler.services.notices.fan_out import write_notices
from scheduler.services.queues.create_update import update_queue
from tests.dashboard.work import person
from tests.services.change_sets.builders import edit, machine, quiet_cluster
from tests.services.change_sets.clock import SetClock, at

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    quiet_cluster()
    Queue.objects.filter(name="research").update(owner="ruth")
    Queue.objects.filter(name="batch").update(owner="nobody-with-an-account")
    return SetClock(monkeypatch, at("2026-11-18T12:00"))


def planned(*documents: dict[str, object], by: Actor = SYSTEM) -> None:
    change_set = create_change_set("more", documents, by=by)
    plan_change_set(change_set.pk, Wish("2026-11-19T10:00", "2026-11-19T12:00"), by=by)


def let_pass(clock: SetClock, *moments: str) -> None:
    for moment in moments:
        clock.set(moment)
        keep_calendar()


def told() -> dict[str, list[tuple[str, str]]]:
    """By user: the kinds of their notices, and the queues."""
    write_notices()
    found = defaultdict(list)
    rows = Notice.objects.order_by("pk").values_list("user__username", "kind", "queue__name")
    for user, kind, queue in rows:
        found[user].append((kind, queue))
    return dict(found)


def test_owners_and_the_author_are_told_once_each_without_a_rule(clock: SetClock):
    documents = (edit("batch", weight=2), edit("language", weight=2), edit("vision", weight=2))
    planned(*documents, by=person("admin"))

    let_pass(clock, "2026-11-19T10:00", "2026-11-19T12:00")

    kinds = ("CalendarBegan", "CalendarEnded")
    assert told() == {
        "admin": [(kind, "batch") for kind in kinds],
        "ruth": [(kind, "language") for kind in kinds],
    }


def test_a_conflict_is_told_to_them(clock: SetClock):
    planned(edit("vision", weight=9), by=person("admin"))
    update_queue("vision", {"spec": {"weight": 4}}, merge=True)

    let_pass(clock, "2026-11-19T10:00")

    kinds = {user: {kind for kind, _ in notices} for user, notices in told().items()}
    assert kinds == {"admin": {"CalendarConflict"}, "ruth": {"CalendarConflict"}}


def test_who_turned_it_off_or_lost_sight_is_not_told(clock: SetClock):
    planned(edit("vision", weight=9), by=person("admin"))
    set_preferences(person("admin").user, calendar_notices=False, by=person("admin"))
    person("ruth").user.grants.all().delete()

    let_pass(clock, "2026-11-19T10:00", "2026-11-19T12:00")

    assert told() == {}


def test_a_plan_without_queues_is_told_to_its_author(clock: SetClock):
    planned(machine("n3", "4"), by=person("admin"))

    let_pass(clock, "2026-11-19T10:00")

    assert told() == {"admin": [("CalendarBegan", "root")]}
