"""Queries that are written once give what the queryset would."""

from __future__ import annotations

import pytest
from django.db.models import Count

from scheduler.models import Queue
from scheduler.models.prepared import Prepared, slot
from tests.worlds import queue

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

COLUMNS = ("name", "uid", "created_at", "labels", "deserved", "reclaimable", "parent__name")
BY_NAME = Prepared(lambda: Queue.objects.filter(name=slot("name")).values_list(*COLUMNS))
CHILDREN = Prepared(lambda: Queue.objects.filter(parent__name=slot("parent")).order_by().values_list("weight").annotate(number=Count("id")))


def test_rows_are_those_of_the_queryset_with_every_type_of_column():
    queue("a", deserved={"cpu": "4"})
    queue("b", "a")

    for name in ("a", "b"):
        assert BY_NAME.rows(name=name) == list(Queue.objects.filter(name=name).values_list(*COLUMNS))
    assert BY_NAME.row(name="nobody") is None


def test_groups_and_several_calls_with_other_values():
    queue("a")
    queue("b", "a")
    queue("c", "a")

    assert CHILDREN.rows(parent="a") == [(1, 2)]
    assert CHILDREN.rows(parent="b") == []
