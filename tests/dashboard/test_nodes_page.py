"""Nodes: where there is room, and what a drain does."""

from __future__ import annotations

import pytest

from scheduler.models import (
    AuditEntry,
    Node,
)
from tests.dashboard.work import signed_in, small_cluster, text

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def test_what_is_free_but_nowhere_together_is_told():
    page = text(signed_in("vera").get("/nodes/"))

    assert "CPU" in page
    assert "on one node" in page or "no node with" in page


def test_a_drain_says_whom_it_evicts_before_it_does():
    client = signed_in("admin")
    name = Node.objects.filter(pods__podgroup__name="train-1").first().name  # type: ignore[union-attr]

    asked = client.get(f"/nodes/{name}/drain/")
    assert Node.objects.get(name=name).unschedulable is False
    client.post(f"/nodes/{name}/drain/", {"reason": "new fans"})

    assert "default/train-1" in text(asked)
    assert Node.objects.get(name=name).unschedulable is True
    assert AuditEntry.objects.filter(action="DrainNode", reason="new fans").exists()


def test_who_may_not_operate_the_cluster_cordons_nothing():
    assert signed_in("ruth").post("/nodes/n1/cordon/").status_code == 403
    assert not Node.objects.filter(unschedulable=True).exists()
