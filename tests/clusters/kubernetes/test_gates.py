"""The gate of queues on a real server: it is opened to bind a pod, and no other gate is."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.clusters.kubernetes.binding import BindOrder, BindResult, bind_pod
from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.errors import Invalid
from scheduler.clusters.kubernetes.gates import QUEUE_GATE, only_queue_holds, open_queue_gate
from scheduler.clusters.kubernetes.resources import PODS
from tests.control_plane import objects


def make_pod(client: Client, *gates: str) -> BindOrder:
    pod = objects.pod("p")
    pod["spec"]["schedulingGates"] = [{"name": gate} for gate in gates]
    made = client.create(PODS, pod, "default")
    return BindOrder(made["metadata"]["uid"], "default", "p", "n1")


def spec_of(client: Client) -> dict[str, Any]:
    return client.get(PODS, "p", "default")["spec"]


@pytest.mark.kubernetes
def test_a_pod_that_only_its_queue_held_is_bound(real_client):
    answer = bind_pod(real_client, make_pod(real_client, QUEUE_GATE))

    assert answer.result is BindResult.BOUND
    assert spec_of(real_client)["nodeName"] == "n1"


@pytest.mark.kubernetes
def test_a_pod_behind_another_gate_keeps_all_its_gates(real_client):
    order = make_pod(real_client, QUEUE_GATE, "kueue.x-k8s.io/admission")

    answer = bind_pod(real_client, order)

    assert answer.result is BindResult.NOT_BOUND
    assert len(spec_of(real_client)["schedulingGates"]) == 2


@pytest.mark.kubernetes
def test_only_the_gate_of_queues_is_opened_and_only_of_this_pod(real_client):
    order = make_pod(real_client, QUEUE_GATE, "kueue.x-k8s.io/admission")

    with pytest.raises(Invalid):
        open_queue_gate(real_client, "another", "default", "p")
    for _ in range(2):
        open_queue_gate(real_client, order.uid, "default", "p")

    assert spec_of(real_client)["schedulingGates"] == [{"name": "kueue.x-k8s.io/admission"}]


@pytest.mark.parametrize(
    ("gates", "expected"),
    [((), False), ((QUEUE_GATE,), True), ((QUEUE_GATE, "other"), False), (("other",), False)],
)
def test_whether_only_the_queue_holds_a_pod(gates, expected):
    assert only_queue_holds(gates) is expected
