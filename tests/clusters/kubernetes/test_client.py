"""Requests to an API server: what is sent, and what becomes of faults."""

from __future__ import annotations

import pytest

from scheduler.clusters.kubernetes.client import Client, Timeouts
from scheduler.clusters.kubernetes.credentials import Credentials, Identity, Server
from scheduler.clusters.kubernetes.discovery import cluster_uid
from scheduler.clusters.kubernetes.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    NoAnswer,
    NotFound,
    TooMany,
    Unavailable,
)
from scheduler.clusters.kubernetes.resources import NAMESPACES, NODES, PODS, QUEUES
from tests.clusters.kubernetes.conftest import credentials_for
from tests.control_plane import objects
from tests.control_plane.fake.faults import Answer, Late, Reset
from tests.running import random_port


def test_an_object_from_its_creation_to_its_end(client):
    made = client.create(QUEUES, objects.queue("science", weight=1))
    client.patch(QUEUES, "science", {"spec": {"weight": 2}})
    client.patch(QUEUES, "science", {"status": {"state": "Open"}}, subresource="status")
    found = client.get(QUEUES, "science")

    assert found["metadata"]["uid"] == made["metadata"]["uid"]
    assert (found["spec"]["weight"], found["status"]["state"]) == (2, "Open")

    client.delete(QUEUES, "science", uid=made["metadata"]["uid"])
    with pytest.raises(
        NotFound, match=r"^GET /apis/scheduling\.volcano\.sh/v1beta1/queues/science: "
    ):
        client.get(QUEUES, "science")


def test_a_list_comes_in_pages(client, server):
    for number in range(5):
        client.create(PODS, objects.pod(f"p{number}"), "default")

    pages = list(client.pages(PODS, page_size=2))

    assert [len(page.items) for page in pages] == [2, 2, 1]
    assert len({page.resource_version for page in pages}) == 1
    assert len(client.list(PODS, "default", page_size=0)) == 5


def test_a_pod_is_bound_once(client):
    pod = client.create(PODS, objects.pod("p"), "default")
    binding = objects.binding("p", "n1", pod["metadata"]["uid"])

    client.create_subresource(PODS, "p", "binding", binding, "default")
    with pytest.raises(Conflict, match=r"^POST /api/v1/namespaces/default/pods/p/binding: "):
        client.create_subresource(PODS, "p", "binding", binding, "default")

    assert client.get(PODS, "p", "default")["spec"]["nodeName"] == "n1"


def test_what_is_there_already_is_an_error_of_its_own(client):
    client.create(NODES, objects.node("n1"))

    with pytest.raises(AlreadyExists):
        client.create(NODES, objects.node("n1"))


def test_a_change_of_an_older_version_is_a_conflict(client):
    made = client.create(QUEUES, objects.queue("science"))
    client.patch(QUEUES, "science", {"spec": {"weight": 2}})
    old = {"resourceVersion": made["metadata"]["resourceVersion"]}

    with pytest.raises(Conflict):
        client.patch(QUEUES, "science", {"metadata": old, "spec": {"weight": 3}})


def test_too_many_requests_say_when_to_come_back(client, server):
    server.plan("GET", "/api/v1/nodes", Answer(429, "TooManyRequests", retry_after=4))

    with pytest.raises(TooMany) as error:
        client.list(NODES)

    assert error.value.retry_after == 4.0


def test_a_server_that_is_not_there_is_unavailable():
    address = f"http://127.0.0.1:{random_port()}"

    with pytest.raises(Unavailable, match=f"cannot connect to {address}: .*refused"):
        Client(credentials_for(address)).list(NODES)


def test_an_answer_that_comes_too_late_is_no_answer(server):
    server.plan("GET", "/api/v1/nodes", Late(30))
    client = Client(credentials_for(server.address), timeouts=Timeouts(read=0.05))

    with pytest.raises(NoAnswer, match=r"GET /api/v1/nodes: no answer within 0\.05 s"):
        client.list(NODES)


def test_a_lost_write_is_not_sent_again(client, server):
    server.plan("POST", "/api/v1/nodes", Reset(is_done=True))

    with pytest.raises(NoAnswer, match="lost the connection"):
        client.create(NODES, objects.node("n1"))

    assert len(client.list(NODES)) == 1
    assert [method for method, _path in server.requests].count("POST") == 1


def test_a_lost_read_is_sent_again_once(client, server):
    server.plan("GET", "/api/v1/nodes", Reset())

    assert client.list(NODES) == []

    server.plan("GET", "/api/v1/nodes", Reset(), times=2)
    with pytest.raises(NoAnswer):
        client.list(NODES)


def test_credentials_that_the_server_refuses_are_loaded_again(server):
    given: list[str] = []

    def load() -> Identity:
        given.append(f"t{len(given)}")
        return Identity(token=given[-1])

    client = Client(Credentials(Server(server.address), load))
    server.plan("GET", "/api/v1/nodes", Answer(401, "Unauthorized"))

    assert client.list(NODES) == []
    assert given == ["t0", "t1"]


def test_credentials_that_are_refused_twice_are_an_error(client, server):
    server.plan("GET", "/api/v1/nodes", Answer(401, "Unauthorized"), times=2)

    with pytest.raises(ApiError) as error:
        client.list(NODES)

    assert error.value.status == 401


def test_a_name_cannot_leave_its_path(client, server):
    with pytest.raises(ApiError):
        client.get(NODES, "../namespaces")

    assert server.requests[-1][1] == "/api/v1/nodes/..%2Fnamespaces"


def test_the_cluster_is_known_by_its_own_namespace(client):
    if "kube-system" not in [item["metadata"]["name"] for item in client.list(NAMESPACES)]:
        client.create(
            NAMESPACES,
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}},
        )

    assert cluster_uid(client) == client.get(NAMESPACES, "kube-system")["metadata"]["uid"]
