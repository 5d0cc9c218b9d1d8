"""A snapshot kept between sessions and changed row by row is the same as one built anew."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from scheduler.domain.nodes import Node, NodeTable
from scheduler.domain.queues import QueueSpec
from scheduler.domain.resources import Resources
from scheduler.domain.snapshot import Queue, Snapshot
from scheduler.domain.tables import LOST_NODE, NO_NODE, NO_QUEUE
from scheduler.domain.workloads import Pod, PodGroup, PodStatus

ONE = Resources.parse({"cpu": "1", "memory": "1Gi"})


def snapshot(pods=6):
    return Snapshot.build(
        nodes=[Node(name, ONE * 8) for name in ("n1", "n2")],
        queues=[QueueSpec("q1"), QueueSpec("q2")],
        podgroups=[PodGroup("g1", "q1"), PodGroup("g2", "q2")],
        pods=[
            Pod(f"p{number}", f"default/g{number % 2 + 1}", request=ONE) for number in range(pods)
        ],
    )


def summed_anew(resident):
    sums = resident.__dict__.pop("aggregates")
    fresh = resident.aggregates
    resident.aggregates = sums
    return fresh


def assert_in_step(resident):
    fresh = summed_anew(resident)
    for name, kept in vars(resident.aggregates).items():
        assert (kept == getattr(fresh, name)).all(), name


@pytest.mark.parametrize("seed", range(20))
def test_sums_stay_in_step_with_any_change_of_pods(seed):
    random = Random(seed)
    resident = snapshot()
    for _ in range(12):
        rows = np.array(sorted(random.sample(range(len(resident.pods)), 2)))
        change = random.choice(["status", "node", "add", "remove"])
        if change == "status":
            resident.change_pods(
                rows,
                status=[random.choice(list(PodStatus)[1:]) for _ in rows],
                node=random.randrange(2),
            )
        elif change == "node":
            resident.change_pods(rows, node=random.choice([NO_NODE, LOST_NODE, 0, 1]))
        elif change == "add":
            resident.add_pods(
                key=["default/new"],
                group=[random.randrange(2)],
                pod_class=[0],
                status=[PodStatus.RUNNING],
                node=[1],
            )
        else:
            resident.remove_pods(
                np.array(
                    [row for row in rows if resident.pods.status[row] != PodStatus.GONE],
                    dtype=np.intp,
                )
            )

        assert_in_step(resident)


def test_podgroups_are_added_with_their_sums():
    resident = snapshot()
    _ = resident.aggregates

    (row,) = resident.add_groups([PodGroup("g3", "q2", min_member=2)])
    resident.add_pods(
        key=["default/x"],
        group=[row],
        pod_class=[0],
        status=[PodStatus.PENDING],
        node=[NO_NODE],
    )

    assert resident.groups.key[row] == "default/g3"
    assert resident.groups.queue[row] == 1
    assert resident.aggregates.group_counts[row, PodStatus.PENDING] == 1
    assert_in_step(resident)


def test_a_node_that_goes_leaves_its_pods_lost_and_the_others_where_they_are():
    resident = snapshot()
    resident.change_pods(
        np.array([0, 1]),
        status=PodStatus.RUNNING,
        node=np.array([0, 1]),
        reserved_node=np.array([0, 1]),
    )

    resident.replace_nodes(
        NodeTable.build([Node("n0", ONE), Node("n2", ONE * 8)], resident.resources)
    )

    assert resident.pods.node[:2].tolist() == [LOST_NODE, 1]
    assert resident.pods.reserved_node[:2].tolist() == [NO_NODE, 1]
    assert resident.aggregates.node_used[1].tolist() == [1000, 2**30, 1]


def test_a_queue_that_goes_leaves_its_podgroups_without_one():
    resident = snapshot()

    resident.replace_queues([Queue(QueueSpec("a")), Queue(QueueSpec("q2"))])

    assert resident.groups.queue.tolist() == [NO_QUEUE, 1]


def test_nodes_and_queues_must_come_in_the_order_of_their_names():
    table = NodeTable.build([Node("b"), Node("a")], ("cpu", "memory", "pods"))
    assert table.names == ["a", "b"]

    with pytest.raises(ValueError, match="nodes must come in the order of their names"):
        NodeTable(
            ["b", "a"],
            table.allocatable,
            table.ready,
            table.unschedulable,
            table.labels,
            table.taints,
        )
    built = snapshot()
    with pytest.raises(ValueError, match="queues must come in the order of their names"):
        Snapshot(
            built.resources,
            built.nodes,
            built.queues[::-1],
            built.classes,
            built.groups,
            built.pods,
        )


def test_a_pod_whose_podgroup_is_not_there_is_left_out():
    assert len(Snapshot.build(pods=[Pod("p", "default/nobody")]).pods) == 0


def test_a_copy_is_changed_without_the_original():
    kept = snapshot()
    counts = kept.aggregates.group_counts.copy()

    tried = kept.copy()
    group = int(tried.add_groups([PodGroup("g3", "q1")])[0])
    pod_class = tried.classes.number(Pod("new", "default/g3", request=ONE * 3).pod_class())
    tried.add_pods(
        key=["default/new"],
        group=[group],
        pod_class=[pod_class],
        status=[PodStatus.PENDING],
        node=[NO_NODE],
    )
    tried.change_pods(np.arange(2), node=0, status=PodStatus.RUNNING)

    assert_in_step(tried)
    assert (len(kept.pods), len(kept.groups), len(kept.classes)) == (6, 2, 1)
    assert (kept.aggregates.group_counts == counts).all()
    assert (kept.pods.node == NO_NODE).all()
    assert "default/g3" in tried.groups.rows
    assert "default/g3" not in kept.groups.rows
