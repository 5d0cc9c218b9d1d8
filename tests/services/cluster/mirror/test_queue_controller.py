"""What we do for queues where Volcano's controllers do not run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.credentials import from_kubeconfig
from scheduler.clusters.kubernetes.read.workloads import read_command, read_queue
from scheduler.models import Command
from scheduler.services.cluster.mirror.queue_controller import (
    QueueController,
    carry_out_commands,
    changed_fields,
    wanted_statuses,
)
from scheduler.services.cluster.queue_writes import ClusterAway
from tests.control_plane.fake.faults import Answer
from tests.control_plane.objects import QUEUES
from tests.fake_cluster import COMMANDS, FakeCluster, fake_cluster
from tests.fake_cluster import QUEUES as QUEUE
from tests.mirrored import podgroup

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[FakeCluster]:
    with fake_cluster(tmp_path) as running:
        yield running


@pytest.fixture
def client(cluster: FakeCluster, tmp_path: Path) -> Iterator[Client]:
    asking = Client(from_kubeconfig(tmp_path / "kubeconfig"))
    yield asking
    asking.close()


def command(cluster: FakeCluster, action: str, **target: str) -> None:
    wanted = {"kind": "Queue", "name": "research", **target}
    body = {"metadata": {"generateName": "c-"}, "action": action, "target": wanted}
    cluster.server.store.create(COMMANDS, "default", body)


def waiting(cluster: FakeCluster) -> list[str]:
    return [each["action"] for each in cluster.server.store.list(COMMANDS, "default")[0]]


def carry_out(client: Client, cluster: FakeCluster, *, alone: bool = True) -> None:
    found = [read_command(each) for each in cluster.server.store.list(COMMANDS, "default")[0]]
    carry_out_commands(client, found[::-1], lambda: alone)


def test_a_command_is_carried_out_recorded_and_deleted(client, cluster):
    command(cluster, "CloseQueue")

    carry_out(client, cluster)

    assert cluster.queue("research")["spec"]["state"] == "Closed"
    assert waiting(cluster) == []
    assert Command.objects.get().result == Command.DONE


def test_commands_are_left_alone_where_others_handle_them(client, cluster):
    command(cluster, "CloseQueue")
    carry_out(client, cluster, alone=False)
    command(cluster, "AbortJob", kind="Job", name="train")
    carry_out(client, cluster)

    assert waiting(cluster) == ["AbortJob"]


@pytest.mark.parametrize(
    ("action", "target"),
    [("CloseQueue", {"name": "gone"}), ("CloseQueue", {"uid": "another"}), ("Dance", {})],
)
def test_a_command_that_cannot_be_carried_out_is_deleted(client, cluster, action, target):
    command(cluster, action, **target)

    carry_out(client, cluster)

    assert waiting(cluster) == []
    assert "state" not in cluster.queue("research")["spec"]


def test_a_command_waits_for_an_api_server_that_is_away(client, cluster):
    command(cluster, "CloseQueue")
    cluster.server.plan("GET", f"{QUEUES}/research", Answer(503, "ServiceUnavailable", "away"))
    with pytest.raises(ClusterAway):
        carry_out(client, cluster)
    assert waiting(cluster) == ["CloseQueue"]

    carry_out(client, cluster)

    assert cluster.queue("research")["spec"]["state"] == "Closed"
    assert waiting(cluster) == []


def told_controller(client: Client, cluster: FakeCluster, *, alone: bool = True) -> QueueController:
    controller = QueueController(client, frozenset({"state"}), lambda: alone)
    controller.tell([read_queue(each) for each in cluster.server.store.list(QUEUE, "")[0]], ())
    return controller


def test_a_status_is_left_alone_where_others_write_it(client, cluster):
    told_controller(client, cluster, alone=False).step()
    assert "status" not in cluster.queue("research")

    told_controller(client, cluster).step()
    assert cluster.queue("research")["status"]["state"] == "Open"


def test_a_queue_that_a_webhook_refuses_to_name_a_state_for_stops_no_other(client, cluster):
    cluster.has("vision", parent="research")
    cluster.has("zebra", parent="root")
    cluster.changes("research", lambda queue: {**queue, "spec": {"state": "Closed"}})
    cluster.tells()
    message = 'admission webhook "x" denied the request: it breaks a rule'
    cluster.server.plan("PATCH", f"{QUEUES}/vision", Answer(409, "Conflict", message))

    told_controller(client, cluster).step()

    assert "status" not in cluster.queue("vision")
    assert cluster.queue("zebra")["status"]["state"] == "Open"


def test_a_status_counts_podgroups_and_says_the_state(cluster):
    cluster.mirror.has(podgroup("g1", queue="research"), podgroup("g2", queue="research"))

    status = wanted_statuses(with_suspended=True)["research"]

    assert (status["state"], status["pending"], status["running"]) == ("Open", 2, 0)


def test_volcanos_definition_has_no_suspended(cluster):
    cluster.has("vision", parent="root", state="Suspended")
    cluster.tells()

    assert wanted_statuses(with_suspended=True)["vision"]["state"] == "Suspended"
    assert wanted_statuses(with_suspended=False)["vision"]["state"] == "Open"


def test_only_what_differs_is_written():
    before = {"state": "Open", "running": 2, "allocated": {"cpu": "4", "memory": "1Gi"}}
    after = {"state": "Open", "running": 0, "pending": 0, "allocated": {"cpu": "5"}}

    assert changed_fields(before, after) == {
        "running": 0,
        "allocated": {"cpu": "5", "memory": None},
    }
    assert changed_fields(after, after) == {}
