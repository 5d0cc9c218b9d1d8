"""Evicting: gone, on its way, or held back, and by whom."""

from __future__ import annotations

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.eviction import EvictOrder, EvictResult, evict_pod
from scheduler.clusters.kubernetes.resources import DISRUPTION_BUDGETS, NODES, PODS
from tests.control_plane import objects
from tests.control_plane.fake.faults import Answer

EVICTION = "/api/v1/namespaces/default/pods/p/eviction"
POD_OF_OTHERS = "11111111-1111-1111-1111-111111111111"


def bound_pod(client: Client, name: str = "p") -> EvictOrder:
    pod = client.create(PODS, objects.pod(name, labels={"app": "web"}), "default")
    uid = pod["metadata"]["uid"]
    client.create_subresource(PODS, name, "binding", objects.binding(name, "n1", uid), "default")
    return EvictOrder(uid, "default", name)


def protect(client: Client) -> None:
    """A budget that allows no disruption."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep-web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    client.create(DISRUPTION_BUDGETS, budget, "default")


def test_a_pod_is_asked_to_leave(client):
    order = bound_pod(client)

    assert evict_pod(client, order).result is EvictResult.LEAVING
    assert client.get(PODS, "p", "default")["metadata"]["deletionTimestamp"]


def test_a_pod_that_is_gone_is_gone(client):
    assert evict_pod(client, EvictOrder("none", "default", "p")).result is EvictResult.GONE


def test_another_pod_of_the_same_name_stays(client):
    bound_pod(client)

    answer = evict_pod(client, EvictOrder(POD_OF_OTHERS, "default", "p"))

    assert answer.result is EvictResult.GONE
    assert "deletionTimestamp" not in client.get(PODS, "p", "default")["metadata"]


def test_a_busy_server_says_when_to_ask_again(client, server):
    order = bound_pod(client)
    server.plan("POST", EVICTION, Answer(429, "TooManyRequests", retry_after=7))

    answer = evict_pod(client, order)

    assert (answer.result, answer.retry_after) == (EvictResult.HELD, 7.0)


def test_a_server_that_fails_is_asked_again(client, server):
    order = bound_pod(client)
    server.plan("POST", EVICTION, Answer(500, "InternalError"))

    assert evict_pod(client, order).result is EvictResult.FAILED
    assert evict_pod(client, order).result is EvictResult.LEAVING


def test_a_real_server_names_the_budget_that_holds_a_pod(real_client):
    real_client.create(NODES, objects.node("n1"))
    order = bound_pod(real_client)
    running = {"status": {"phase": "Running"}}
    real_client.patch(PODS, "p", running, "default", "status")
    protect(real_client)

    answer = evict_pod(real_client, order)

    assert answer.result is EvictResult.HELD
    assert "keep-web" in answer.message


def test_a_real_server_evicts_by_uid(real_client):
    order = bound_pod(real_client)

    other = evict_pod(real_client, EvictOrder(POD_OF_OTHERS, "default", "p"))
    ours = evict_pod(real_client, order)

    assert (other.result, ours.result) == (EvictResult.GONE, EvictResult.LEAVING)
