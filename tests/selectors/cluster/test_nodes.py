from __future__ import annotations

from typing import Any

import pytest

from scheduler.models import Node
from scheduler.selectors.cluster.nodes import fragmentation, node_rows, pods_on
from tests.dashboard.work import small_cluster
from tests.worlds import node

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def test_what_is_in_use_is_the_sum_of_what_pods_ask_for():
    rows = {row.name: row for row in node_rows()}

    assert (
        sum(row.used.amount("cpu") for row in rows.values()) == 8000
    )  # 4 of train-1, 2 of label, 2 of nightly
    assert sum(row.pods for row in rows.values()) == 8
    assert sum(len(pods_on(name)) for name in rows) == 8


def test_free_room_that_lies_apart_is_fragmented():
    lie = fragmentation(node_rows(), "cpu")

    assert (lie.whole, lie.free) == (16_000, 8000)
    assert lie.room_for == (
        (1000, lie.room_for[0][1]),
        (2000, lie.room_for[1][1]),
        (4000, lie.room_for[2][1]),
        (8000, lie.room_for[3][1]),
    )
    assert lie.is_fragmented is (lie.largest < 8000)


def test_a_node_that_takes_no_pods_has_no_room():
    Node.objects.update(unschedulable=True)

    lie = fragmentation(node_rows(), "cpu")

    assert (lie.free, lie.largest, lie.room_for) == (0, 0, ())


def test_more_nodes_need_no_more_queries(django_assert_num_queries: Any):
    with django_assert_num_queries(4):
        node_rows()
    for number in range(30):
        node(f"more-{number}", cpu="4")

    with django_assert_num_queries(4):
        assert len(node_rows()) == 32
