"""What happened reaches the inboxes of those who asked for it and may see it, once."""

from __future__ import annotations

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from scheduler.domain.notices import Note, NoticeKind
from scheduler.models import Change, Grant, Happening, Notice
from scheduler.services.notices.fan_out import has_happenings, write_notices
from scheduler.services.notices.publish import publish
from tests.services.notices.people import person, rule, started
from tests.worlds import queue

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def told() -> list[tuple[str, str]]:
    return sorted(Notice.objects.values_list("user__username", "key"))


def test_where_nobody_has_a_rule_nothing_is_written_and_little_asked():
    person("ada", sees="default")

    with CaptureQueriesContext(connection) as asked:
        publish(started(number) for number in range(1000))

    assert not has_happenings()
    assert len(asked) == 1


def test_thousands_of_happenings_are_one_insert():
    rule(person("ada", sees="default"), NoticeKind.JOB_STARTED)

    with CaptureQueriesContext(connection) as asked:
        publish(started(number) for number in range(3000))

    assert Happening.objects.count() == 3000
    assert len(asked) == 2


def test_publishing_is_no_news_for_a_session():
    rule(person("ada", sees="default"), NoticeKind.JOB_STARTED)
    before = Change.objects.count()

    publish([started()])
    write_notices()

    assert Change.objects.count() == before


def test_the_owner_of_a_job_is_told_and_nobody_else():
    rule(person("ada", sees="default"), NoticeKind.JOB_STARTED)
    rule(person("bob", sees="default"), NoticeKind.JOB_STARTED)

    publish([started(owner="ada")])
    write_notices()

    assert told() == [("ada", "started:1")]
    notice = Notice.objects.get()
    assert notice.path == "/jobs/default/train-1/"
    assert notice.queue is not None
    assert notice.queue.name == "default"
    assert not has_happenings()


def test_a_rule_with_a_queue_is_about_everything_below_it():
    queue("team")
    queue("group", "team")
    queue("other")
    rule(person("ada", admin=True), NoticeKind.JOB_STARTED, "team")

    publish([started(1, queue="group", owner="bob"), started(2, queue="other", owner="bob")])

    assert [row.key for row in Happening.objects.all()] == ["started:1"]
    write_notices()
    assert told() == [("ada", "started:1")]


def test_who_may_not_see_the_queue_is_not_told_even_of_their_own_job():
    queue("team")
    rule(person("ada", sees="default"), NoticeKind.JOB_STARTED)
    rule(person("bob", sees="default"), NoticeKind.JOB_STARTED, "team")

    publish([started(queue="team", owner="ada")])
    write_notices()

    assert told() == []


def test_a_role_that_was_taken_away_meanwhile_counts():
    rule(person("ada", sees="default"), NoticeKind.JOB_STARTED)
    publish([started()])
    Grant.objects.all().delete()

    write_notices()

    assert told() == []


def test_an_account_that_is_switched_off_is_told_nothing():
    ada = person("ada", sees="default")
    rule(ada, NoticeKind.JOB_STARTED)
    publish([started(1)])
    ada.is_active = False
    ada.save()

    publish([started(2)])

    assert [row.key for row in Happening.objects.all()] == ["started:1"]
    write_notices()
    assert told() == []


def test_what_is_about_the_whole_cluster_is_for_those_who_see_it():
    rule(person("ada", sees="root"), NoticeKind.TREE_INVALID)
    rule(person("bob", sees="default"), NoticeKind.TREE_INVALID)

    publish([Note(NoticeKind.TREE_INVALID, "invalid", "The tree is broken")])
    write_notices()

    assert told() == [("ada", "invalid")]


def test_users_leave_out_everybody_else():
    rule(person("ada", sees="root"), NoticeKind.CALENDAR_BEGAN)
    rule(person("bob", sees="root"), NoticeKind.CALENDAR_BEGAN)

    publish([Note(NoticeKind.CALENDAR_BEGAN, "began", "It began", queue="root", users=("bob",))])
    write_notices()

    assert told() == [("bob", "began")]


def test_the_same_is_told_once_however_often_it_is_said():
    ada = person("ada", sees="default")
    rule(ada, NoticeKind.JOB_STARTED)
    rule(ada, NoticeKind.JOB_STARTED, "default")

    publish([started(), started()])
    publish([started()])
    write_notices()
    publish([started()])
    write_notices()

    assert told() == [("ada", "started:1")]


def test_what_was_undone_is_not_told():
    rule(person("ada", sees="default"), NoticeKind.JOB_STARTED)

    with transaction.atomic():
        publish([started()])
        transaction.set_rollback(True)

    assert not has_happenings()
