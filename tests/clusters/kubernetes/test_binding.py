"""Binding through every fault: what is said of a pod is what is the case."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.clusters.kubernetes.binding import BindOrder, BindResult, bind_pod, bind_pods
from scheduler.clusters.kubernetes.client import Client, Timeouts
from scheduler.clusters.kubernetes.errors import NotFound
from scheduler.clusters.kubernetes.resources import PODS
from tests.clusters.kubernetes.conftest import credentials_for
from tests.control_plane import objects
from tests.control_plane.fake.faults import Answer, Fault, Late, Reset

BINDING = "/api/v1/namespaces/default/pods/p/binding"
POD = "/api/v1/namespaces/default/pods/p"


@pytest.fixture
def order(client: Client) -> BindOrder:
    pod = client.create(PODS, objects.pod("p"), "default")
    return BindOrder(pod["metadata"]["uid"], "default", "p", "n1")


def node_of(client: Client, name: str = "p") -> str:
    return str(client.get(PODS, name, "default")["spec"].get("nodeName", ""))


def test_a_pod_is_bound(client, order):
    answer = bind_pod(client, order)

    assert (answer.result, answer.node) == (BindResult.BOUND, "n1")
    assert node_of(client) == "n1"


def test_asking_twice_is_as_good_as_once(client, order):
    answers = [bind_pod(client, order), bind_pod(client, order)]

    assert [answer.result for answer in answers] == [BindResult.BOUND, BindResult.BOUND]


def test_a_pod_that_another_scheduler_took_is_elsewhere(client, order):
    binding = objects.binding("p", "n9", order.uid)
    client.create_subresource(PODS, "p", "binding", binding, "default")

    answer = bind_pod(client, order)

    assert (answer.result, answer.node) == (BindResult.ELSEWHERE, "n9")


def test_a_pod_that_is_gone_or_replaced_is_gone(client, order):
    client.delete(PODS, "p", "default")
    gone = bind_pod(client, order)
    client.create(PODS, objects.pod("p"), "default")
    replaced = bind_pod(client, order)

    assert (gone.result, replaced.result) == (BindResult.GONE, BindResult.GONE)
    assert node_of(client) == ""


@pytest.mark.parametrize(
    ("fault", "result"),
    [
        pytest.param(Reset(is_done=True), BindResult.BOUND, id="done-and-answer-lost"),
        pytest.param(Reset(is_done=False), BindResult.NOT_BOUND, id="lost-before-it-was-done"),
        pytest.param(Answer(500, "InternalError"), BindResult.UNKNOWN, id="server-failed"),
        pytest.param(Answer(503, "ServiceUnavailable"), BindResult.UNKNOWN, id="unavailable"),
        pytest.param(Answer(429, "TooManyRequests"), BindResult.UNKNOWN, id="too-many"),
        pytest.param(Answer(409, "Conflict"), BindResult.NOT_BOUND, id="conflict-without-a-node"),
        pytest.param(Answer(403, "Forbidden"), BindResult.NOT_BOUND, id="forbidden"),
    ],
)
def test_every_doubt_is_settled_by_a_look_or_stays_a_doubt(
    client, server, order, fault: Fault, result
):
    server.plan("POST", BINDING, fault)

    assert bind_pod(client, order).result is result


def test_a_timeout_is_settled_by_a_look(server, client, order, monkeypatch):
    hasty = Client(credentials_for(server.address), timeouts=Timeouts(read=0.2))
    monkeypatch.setattr(hasty, "get", client.get)  # only the answer to the order is late
    server.plan("POST", BINDING, Late(30))

    assert bind_pod(hasty, order).result in (BindResult.BOUND, BindResult.NOT_BOUND)


@pytest.mark.parametrize("fault", [Answer(500, "InternalError"), Reset()], ids=["fails", "lost"])
def test_without_a_look_nothing_is_claimed(client, server, order, fault):
    server.plan("POST", BINDING, Reset(is_done=True))
    server.plan("GET", POD, fault, times=2)

    assert bind_pod(client, order).result is BindResult.UNKNOWN


def test_many_orders_get_their_answers_in_order(client):
    orders = []
    for number in range(20):
        pod: Any = client.create(PODS, objects.pod(f"p{number}"), "default")
        orders.append(BindOrder(pod["metadata"]["uid"], "default", f"p{number}", f"n{number % 3}"))
    orders.insert(5, BindOrder("none", "default", "nobody", "n0"))

    answers = bind_pods(client, orders, threads=4)

    assert [answer.order for answer in answers] == orders
    assert [answer.result for answer in answers].count(BindResult.BOUND) == 20
    assert answers[5].result is BindResult.GONE
    assert [node_of(client, f"p{number}") for number in range(20)] == [
        f"n{number % 3}" for number in range(20)
    ]


def test_no_orders_need_no_server():
    assert bind_pods(Client(credentials_for("http://127.0.0.1:1")), []) == []


def test_an_order_for_nothing_leaves_nothing(client):
    bind_pod(client, BindOrder("none", "default", "nobody", "n1"))

    with pytest.raises(NotFound):
        client.get(PODS, "nobody", "default")
