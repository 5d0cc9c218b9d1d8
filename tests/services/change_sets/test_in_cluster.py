"""Change sets in a real cluster: each queue is sent by itself. The API server is a fake one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler.admission.violations import Rejected
from scheduler.domain.change_sets import Crossed
from scheduler.models import ChangeSet, Queue
from scheduler.services.accounts.actors import Actor
from scheduler.services.change_sets.apply import apply_change_set
from scheduler.services.change_sets.drafts import bring_up_to_date, create_change_set, revert
from scheduler.services.cluster.queue_writes import ClusterAway
from tests.control_plane import objects
from tests.control_plane.fake.faults import Answer
from tests.fake_cluster import FakeCluster, fake_cluster
from tests.services.change_sets.builders import edit, machine

pytestmark = pytest.mark.django_db

ADMIN = Actor("ann")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[FakeCluster]:
    with fake_cluster(tmp_path) as running:
        running.has("old", weight=3, parent="root")
        running.tells()
        yield running


def applied(*documents: dict[str, Any]) -> ChangeSet:
    made = create_change_set("tried", documents, by=ADMIN)
    apply_change_set(made.pk, by=ADMIN)
    made.refresh_from_db()
    return made


def weights() -> dict[str, int]:
    return dict(Queue.objects.values_list("name", "weight"))


def test_a_set_creates_moves_commands_and_deletes_and_is_reverted(cluster: FakeCluster):
    before = weights()
    made = applied(
        edit("fresh", parent="research", weight=4),
        edit("old", parent="research", weight=7),
        edit("research", state="Suspended"),
    )
    cluster.tells()

    assert made.state == "Applied"
    assert cluster.queue("fresh")["spec"]["parent"] == "research"
    assert cluster.queue("old")["spec"]["parent"] == "research"
    assert Queue.objects.get(name="research").wish == "Suspended"

    back = revert(made.pk, by=ADMIN)
    with pytest.raises(ClusterAway, match="not told yet that the queue fresh is closed"):
        apply_change_set(back.pk, by=ADMIN)
    cluster.tells()
    apply_change_set(back.pk, by=ADMIN)
    cluster.tells()

    assert weights() == before
    assert cluster.queue("old")["spec"].get("parent", "root") == "root"
    assert Queue.objects.get(name="research").state == "Open"


def test_what_the_server_refuses_in_the_middle_is_what_is_left(cluster: FakeCluster):
    made = create_change_set("tried", [edit("research", weight=5), edit("old", weight=13)])
    message = 'admission webhook "y" denied the request: 13 brings bad luck'
    cluster.server.plan("PATCH", f"{objects.QUEUES}/old*", Answer(403, "Forbidden", message))

    with pytest.raises(Rejected) as refused:
        apply_change_set(made.pk, by=ADMIN)

    assert {violation.queue for violation in refused.value.violations} == {"old"}
    made.refresh_from_db()
    assert made.state == "Draft"
    cluster.tells()
    assert weights()["research"] == 5
    assert [item.name for item in bring_up_to_date(made.pk, by=ADMIN).changes] == ["old"]


def test_what_others_changed_meanwhile_stops_the_whole_set(cluster: FakeCluster):
    made = create_change_set("tried", [edit("research", weight=5), edit("old", weight=6)])
    cluster.changes("old", lambda queue: {**queue, "spec": {**queue["spec"], "weight": 9}})
    cluster.tells()

    with pytest.raises(Crossed, match="weight from 3 to 9"):
        apply_change_set(made.pk, by=ADMIN)

    assert cluster.queue("research")["spec"].get("weight") != 5


def test_nodes_are_refused_and_nothing_is_sent(cluster: FakeCluster):
    made = create_change_set("tried", [edit("research", weight=5), machine("extra", "8")])

    with pytest.raises(Rejected, match="A Node of a Kubernetes cluster"):
        apply_change_set(made.pk, by=ADMIN)

    assert cluster.queue("research")["spec"].get("weight") != 5
