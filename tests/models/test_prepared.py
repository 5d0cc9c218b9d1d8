"""Statements that are written once do what the queryset would."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import Count
from django.test.utils import CaptureQueriesContext

from scheduler.models import AuditEntry, Pod, PodClass, PodGroup, Queue
from scheduler.models.bulk import fetch_as_planned
from scheduler.models.prepared import Prepared, PreparedInsert, PreparedUpdate, slot
from tests.worlds import queue

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

COLUMNS = ("name", "uid", "created_at", "labels", "deserved", "reclaimable", "parent__name")


def _by_name() -> Any:
    return Queue.objects.filter(name=slot("name")).values_list(*COLUMNS)


BY_NAME = Prepared(_by_name)
BY_NAME_AS_PLANNED = Prepared(_by_name, keep_plan=True)
CHILDREN = Prepared(
    lambda: (
        Queue.objects.filter(parent__name=slot("parent"))
        .order_by()
        .values_list("weight")
        .annotate(number=Count("id"))
    )
)


@pytest.mark.parametrize("by_name", [BY_NAME, BY_NAME_AS_PLANNED], ids=["written", "planned"])
def test_rows_are_those_of_the_queryset_with_every_type_of_column(by_name: Prepared):
    queue("a", deserved={"cpu": "4"})
    queue("b", "a")

    for name in ("a", "b"):
        assert by_name.rows(name=name) == list(
            Queue.objects.filter(name=name).values_list(*COLUMNS)
        )
    assert by_name.row(name="nobody") is None


def test_a_kept_plan_sees_what_was_written_since_and_fails_in_no_other_way():
    queue("a")
    for weight in range(1, 8):  # PostgreSQL makes a plan for all values after five
        Queue.objects.filter(name="a").update(weight=weight)

        rows = fetch_as_planned("SELECT weight FROM scheduler_queue WHERE name = %s", ["a"])

        assert rows == [(weight,)]
    with pytest.raises(DatabaseError), transaction.atomic():
        fetch_as_planned("SELECT 1 FROM nowhere")
    with CaptureQueriesContext(connection) as asked:
        fetch_as_planned("SELECT weight FROM scheduler_queue WHERE name = %s", ["a"])
    assert len(asked) == 1


def test_what_is_asked_with_a_kept_plan_is_on_record():
    with CaptureQueriesContext(connection) as asked:
        fetch_as_planned("SELECT weight FROM scheduler_queue WHERE name = %s", ["a"])

    (statement,) = [query["sql"] for query in asked.captured_queries]
    assert statement.startswith("SELECT weight FROM scheduler_queue")


def test_groups_and_several_calls_with_other_values():
    queue("a")
    queue("b", "a")
    queue("c", "a")

    assert CHILDREN.rows(parent="a") == [(1, 2)]
    assert CHILDREN.rows(parent="b") == []


NEW_PODS = PreparedInsert(Pod)
NEW_ENTRY = PreparedInsert(AuditEntry)


@pytest.mark.parametrize("number", [1, 3, PreparedInsert.MOST_ROWS + 1])
def test_new_rows_are_those_that_bulk_create_would_make(number: int):
    group = PodGroup.objects.create(name="g", queue=queue("a"))
    pod_class = PodClass.objects.create(digest="x")
    pods = [
        Pod(
            namespace="default",
            name=f"g-{index}",
            podgroup=group,
            pod_class=pod_class,
            index=index,
        )
        for index in range(number)
    ]

    NEW_PODS.insert(pods)

    assert [pod.pk for pod in pods] == list(
        Pod.objects.order_by("index").values_list("pk", flat=True)
    )
    for made, stored in zip(pods, Pod.objects.order_by("index"), strict=True):
        assert not made._state.adding
        assert {
            field.attname: getattr(made, field.attname) for field in Pod._meta.concrete_fields
        } == {field.attname: getattr(stored, field.attname) for field in Pod._meta.concrete_fields}


def test_a_new_row_keeps_every_type_of_column():
    entry = AuditEntry(
        action="a",
        kind="k",
        name="n'\"%s",
        before=None,
        after={"ä": [1, None, "%"]},
    )

    NEW_ENTRY.insert([entry])

    stored = AuditEntry.objects.get(pk=entry.pk)
    assert (stored.name, stored.before, stored.after) == ("n'\"%s", None, {"ä": [1, None, "%"]})
    assert stored.at == entry.at


def test_no_rows_are_no_statement(django_assert_num_queries: Any):
    with django_assert_num_queries(0):
        NEW_PODS.insert([])


def test_an_update_sets_what_the_queryset_would_in_the_rows_that_it_finds():
    queue("a")
    queue("b")
    heavier = PreparedUpdate(
        lambda: (Queue.objects.filter(name=slot("name")), {"weight": slot("weight")})
    )

    for weight in (3, 4):
        assert heavier.run(name="a", weight=weight) == 1
        assert dict(Queue.objects.filter(name__in="ab").values_list("name", "weight")) == {
            "a": weight,
            "b": 1,
        }
    assert heavier.run(name="nobody", weight=5) == 0
