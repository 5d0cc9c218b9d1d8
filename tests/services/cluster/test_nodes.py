"""Nodes that come and go, and what the queues are told about it."""

from __future__ import annotations

import pytest

from scheduler.models import Queue
from scheduler.services.cluster.nodes import delete_node
from scheduler.services.cluster.simulation import bring_back_node, lose_node
from scheduler.services.queues.warnings import refresh_warnings
from tests.worlds import node, queue

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def two_nodes_and_a_promise():
    for name in ("n1", "n2"):
        node(name, cpu="4")
    queue("promised", guarantee={"cpu": "6"})
    refresh_warnings()
    assert codes() == []


def codes() -> list[str]:
    return [warning["code"] for warning in Queue.objects.get(name="promised").warnings]


def test_a_queue_is_warned_when_a_node_that_its_guarantee_needs_is_taken_away():
    delete_node("n2")

    assert codes() == ["guarantee_exceeds_cluster"]


def test_it_is_warned_as_long_as_a_node_is_lost():
    lose_node("n2")
    assert codes() == ["guarantee_exceeds_cluster"]

    bring_back_node("n2")
    assert codes() == []
