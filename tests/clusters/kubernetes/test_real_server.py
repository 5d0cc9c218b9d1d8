"""Credentials, client, watch and reading against a real API server."""

from __future__ import annotations

import json
import random
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.credentials import (
    Credentials,
    Server,
    from_kubeconfig,
    token_in_file,
)
from scheduler.clusters.kubernetes.discovery import cluster_uid, served_resources, server_version
from scheduler.clusters.kubernetes.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Unauthorized,
    Unavailable,
)
from scheduler.clusters.kubernetes.read import READERS
from scheduler.clusters.kubernetes.resources import (
    FOLLOWED,
    NODES,
    PODGROUPS,
    PODS,
    QUEUES,
    Resource,
)
from scheduler.clusters.kubernetes.values import PodObject
from scheduler.clusters.kubernetes.watch import Watch
from scheduler.clusters.kubernetes.watch_events import (
    Bookmark,
    Changed,
    Listed,
    Lost,
    Removed,
    WatchTimes,
)
from scheduler.domain.resources import Resources
from tests.clusters.kubernetes.raw import container
from tests.control_plane import objects

WHO_AM_I = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False)
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", True)
ROLE_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False
)
QUICK = WatchTimes(first_back_off=0.05, longest_back_off=0.5)


def user_of(client: Client) -> str:
    """Who the server takes us for."""
    body = {"apiVersion": WHO_AM_I.api_version, "kind": WHO_AM_I.kind}
    return str(client.create(WHO_AM_I, body)["status"]["userInfo"]["username"])


def real_pod(name: str, **spec: Any) -> dict[str, Any]:
    pod = objects.pod(name)
    pod["spec"].update(spec)
    return pod


# Requests


def test_it_knows_which_cluster_and_what_it_serves(real_client):
    assert server_version(real_client).startswith("v1.")
    assert len(cluster_uid(real_client)) == 36
    assert served_resources(real_client) == FOLLOWED


def test_errors_are_told_apart(real_client, control_plane):
    real_client.create(QUEUES, objects.queue("science"))
    nobody = Client(from_kubeconfig(control_plane.user("nobody")))

    with pytest.raises(AlreadyExists):
        real_client.create(QUEUES, objects.queue("science"))
    with pytest.raises(NotFound):
        real_client.get(QUEUES, "other")
    with pytest.raises(Invalid):
        real_client.create(PODS, {**objects.pod("p"), "spec": {"containers": []}}, "default")
    with pytest.raises(Forbidden, match=r'^GET /api/v1/nodes: nodes is forbidden: User "nobody"'):
        nobody.list(NODES)


def test_a_change_of_an_older_version_is_a_conflict(real_client):
    made = real_client.create(QUEUES, objects.queue("science", weight=1))
    real_client.patch(QUEUES, "science", {"spec": {"weight": 2}})
    old = {"resourceVersion": made["metadata"]["resourceVersion"]}

    with pytest.raises(Conflict):
        real_client.patch(QUEUES, "science", {"metadata": old, "spec": {"weight": 3}})


def test_fields_of_another_manager_are_taken_only_by_force(real_client):
    body = {**objects.queue("science", weight=1), "metadata": {"name": "science"}}
    real_client.apply(QUEUES, "science", body, field_manager="kubectl")
    ours = {**body, "spec": {"weight": 5}}

    with pytest.raises(Conflict):
        real_client.apply(QUEUES, "science", ours)

    assert real_client.apply(QUEUES, "science", ours, force=True)["spec"]["weight"] == 5


def test_a_pod_is_bound_by_its_uid_and_once(real_client):
    real_client.create(NODES, objects.node("n1"))
    pod = real_client.create(PODS, objects.pod("p"), "default")
    uid = pod["metadata"]["uid"]
    other = "11111111-1111-1111-1111-111111111111"

    with pytest.raises(Conflict):
        real_client.create_subresource(
            PODS, "p", "binding", objects.binding("p", "n1", other), "default"
        )
    real_client.create_subresource(PODS, "p", "binding", objects.binding("p", "n1", uid), "default")
    with pytest.raises(Conflict):
        real_client.create_subresource(
            PODS, "p", "binding", objects.binding("p", "n1", uid), "default"
        )

    assert real_client.get(PODS, "p", "default")["spec"]["nodeName"] == "n1"


def test_a_delete_of_another_uid_is_a_conflict(real_client):
    real_client.create(QUEUES, objects.queue("science"))

    with pytest.raises(Conflict):
        real_client.delete(QUEUES, "science", uid="11111111-1111-1111-1111-111111111111")


def test_a_server_with_another_authority_is_not_trusted(real_client, control_plane):
    server = real_client.credentials.server
    stranger = Credentials(Server(server.url), real_client.credentials.load)

    with pytest.raises(Unavailable, match="certificate verify failed"):
        Client(stranger).list(NODES)


# Reading


def test_what_the_server_fills_in_is_read(real_client):
    spec = {
        "containers": [container(requests={"cpu": "0.0015"}), container("b", {"cpu": "1"})],
        "initContainers": [container("side", {"cpu": "2"}, restartPolicy="Always")],
        "resources": {"limits": {"memory": "1Gi"}},
        "priorityClassName": "system-node-critical",
        "schedulingGates": [{"name": "example.com/wait"}],
    }
    real_client.create(PODS, real_pod("p", **spec), "default")

    (pod,) = [READERS[PODS](raw) for raw in real_client.list(PODS)]

    assert isinstance(pod, PodObject)
    assert pod.requests == Resources({"cpu": 3002, "memory": 2**30})
    assert pod.priority == 2_000_001_000
    assert pod.gates == ("example.com/wait",)
    assert pod.unsupported == ()


def test_everything_in_a_cluster_that_runs_is_read(real_client, control_plane):
    real_client.create(QUEUES, objects.queue("default", weight=1))
    with control_plane.kwok(), control_plane.controllers(), control_plane.volcano_controllers():
        real_client.create(NODES, objects.node("n1", is_kwok=True))
        path = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
        control_plane.api.post(path, objects.volcano_job("train", replicas=2))
        let_podgroups_in(real_client)
        objects.wait_until(
            lambda: len(real_client.list(PODS, "default")) == 2, "the pods of the job"
        )
        groups = read_all(real_client, PODGROUPS)  # Volcano deletes it with the end of the job
        for raw in real_client.list(PODS, "default"):
            name = raw["metadata"]["name"]
            body = objects.binding(name, "n1", raw["metadata"]["uid"])
            real_client.create_subresource(PODS, name, "binding", body, "default")
        objects.wait_until(
            lambda: all(pod.exit_code == 0 for pod in read_all(real_client, PODS)), "the end"
        )
        pods = read_all(real_client, PODS)
        read = {resource.name: read_all(real_client, resource) for resource in FOLLOWED}

    assert {(pod.group, pod.task, pod.task_index) for pod in pods} == {
        (pods[0].group, "worker", 0),
        (pods[0].group, "worker", 1),
    }
    assert [(group.meta.name, group.phase) for group in groups] == [(pods[0].group, "Inqueue")]
    assert [job.flaws for job in read["jobs.batch.volcano.sh"]] == [()]
    assert all(node.ready for node in read["nodes"])
    assert all(queue.flaws == () for queue in read["queues.scheduling.volcano.sh"])


def let_podgroups_in(client: Client) -> None:
    """As a scheduler does: Volcano makes the pods of a job only then."""
    objects.wait_until(lambda: client.list(PODGROUPS), "the podgroup of the job")
    for raw in client.list(PODGROUPS):
        inqueue = {"status": {"phase": "Inqueue"}}
        client.patch(PODGROUPS, raw["metadata"]["name"], inqueue, raw["metadata"]["namespace"])


def read_all(client: Client, resource: Resource) -> list[Any]:
    return [READERS[resource](raw) for raw in client.list(resource)]


# Watching


def known_after(events: Iterator[Any], known: dict[str, Any], version: int) -> dict[str, Any]:
    """What somebody knows who follows the events up to this version: uid -> version."""
    for event in events:
        if isinstance(event, Listed):
            known = {value.meta.uid: value.meta.resource_version for value in event.values}
        elif isinstance(event, Changed):
            known[event.value.meta.uid] = event.value.meta.resource_version
        elif isinstance(event, Removed):
            known.pop(event.value.meta.uid, None)
        if not isinstance(event, Lost) and int(event.resource_version) >= version:
            return known
    raise AssertionError("the watch has ended")


def truth(client: Client) -> tuple[dict[str, str], int]:
    """All queues by uid, after one more change whose version a watch can wait for."""
    mark = client.create(QUEUES, objects.queue(f"mark-{random.randrange(10**12)}"))
    found = {}
    for raw in client.list(QUEUES):
        found[raw["metadata"]["uid"]] = raw["metadata"]["resourceVersion"]
    return found, int(mark["metadata"]["resourceVersion"])


def change_at_random(client: Client, chance: random.Random) -> None:
    name = f"q{chance.randrange(8)}"
    try:
        if chance.random() < 0.4:
            client.create(QUEUES, objects.queue(name))
        elif chance.random() < 0.7:
            client.patch(QUEUES, name, {"spec": {"weight": chance.randrange(1, 100)}})
        else:
            client.delete(QUEUES, name)
    except (AlreadyExists, NotFound):
        pass


def test_a_watch_follows_any_history_through_restarts_of_the_server(real_client, control_plane):
    chance = random.Random(7)
    watch = Watch(real_client, QUEUES, READERS[QUEUES], times=QUICK)
    events = iter(watch)
    known: dict[str, Any] = {}
    for round_number in range(4):
        for _change in range(20):
            change_at_random(real_client, chance)
        if round_number % 2:
            control_plane.kill_api_server()
            control_plane.start_api_server()
        expected, version = truth(real_client)
        known = known_after(events, known, version)

        assert known == expected
    watch.stop()


def test_a_version_that_is_too_old_leads_to_a_list(real_client):
    real_client.create(NODES, objects.node("n1"))
    watch = Watch(real_client, NODES, READERS[NODES], since="1", times=QUICK)

    event = next(iter(watch))
    watch.stop()

    assert isinstance(event, Listed)
    assert [node.meta.name for node in event.values] == ["n1"]


def test_a_new_watch_goes_on_where_another_stopped(real_client):
    first = Watch(real_client, NODES, READERS[NODES], times=QUICK)
    version = next(iter(first)).resource_version
    first.stop()
    real_client.create(NODES, objects.node("n1"))

    watch = Watch(real_client, NODES, READERS[NODES], since=version, times=QUICK)
    event = next(event for event in watch if not isinstance(event, Bookmark))
    watch.stop()

    assert isinstance(event, Changed)
    assert event.value.meta.name == "n1"


def test_a_server_that_is_gone_is_told_and_found_again(real_client, control_plane):
    watch = Watch(real_client, NODES, READERS[NODES], times=QUICK)
    events = iter(watch)
    next(events)

    control_plane.kill_api_server()
    lost = next(event for event in events if not isinstance(event, Bookmark))
    control_plane.start_api_server()
    real_client.create(NODES, objects.node("n1"))
    found: set[str] = set()
    while "n1" not in found:
        event = next(events)
        if isinstance(event, Listed):
            found = {node.meta.name for node in event.values}
        elif isinstance(event, Changed):
            found.add(event.value.meta.name)
    watch.stop()

    assert isinstance(lost, Lost)


def test_a_watch_over_tls_stops_at_once(real_client):
    watch = Watch(real_client, NODES, READERS[NODES], times=QUICK)
    events = iter(watch)
    next(events)
    told: list[Any] = []
    thread = threading.Thread(target=lambda: told.extend(events), daemon=True)
    thread.start()
    objects.wait_until(lambda: watch._stream is not None, "the watch")

    watch.stop()
    thread.join(30)

    assert not thread.is_alive()
    assert not any(isinstance(event, Lost) for event in told)


# Credentials


def account_token(client: Client, name: str) -> str:
    """A new service account that may do everything, and a token of it."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    client.create(ACCOUNTS, account, "default")
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    role = {"apiGroup": ROLE_BINDINGS.group, "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {"metadata": {"name": name}, "subjects": [subject], "roleRef": role}
    client.create(ROLE_BINDINGS, binding)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    return str(
        client.create_subresource(ACCOUNTS, name, "token", request, "default")["status"]["token"]
    )


def test_a_token_file_that_is_renewed_is_read_when_the_server_refuses(real_client, tmp_path):
    file = tmp_path / "token"
    file.write_text("of yesterday")
    inside = Client(Credentials(real_client.credentials.server, lambda: token_in_file(file)))
    with pytest.raises(Unauthorized):
        inside.list(NODES)

    file.write_text(account_token(real_client, "robot"))

    assert user_of(inside) == "system:serviceaccount:default:robot"


PLUGIN = """
import json, os, pathlib, sys
folder = pathlib.Path(sys.argv[1])
answers = json.loads((folder / "answers.json").read_text())
status = answers.pop(0)
(folder / "answers.json").write_text(json.dumps(answers or [status]))
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


def plugin_client(folder: Path, kubeconfig: Path, answers: list[dict[str, str]]) -> Client:
    """Its credentials come from a program, which gives these answers one after the other."""
    (folder / "plugin.py").write_text(PLUGIN)
    (folder / "answers.json").write_text(json.dumps(answers))
    config = yaml.safe_load(kubeconfig.read_text())
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(folder / "plugin.py"), str(folder)],
        "interactiveMode": "Never",
    }
    config["users"][0]["user"] = {"exec": plugin}
    path = folder / "config"
    path.write_text(yaml.safe_dump(config))
    return Client(from_kubeconfig(path))


def certificate_of(kubeconfig: Path) -> dict[str, str]:
    """The certificate of a user, as a plugin gives it."""
    identity = from_kubeconfig(kubeconfig).identity()
    return {"clientCertificateData": identity.certificate, "clientKeyData": identity.key}


def test_a_program_is_asked_again_when_the_server_refuses_its_token(
    real_client, control_plane, tmp_path
):
    answers = [{"token": "of yesterday"}, {"token": account_token(real_client, "robot")}]
    asking = plugin_client(tmp_path, control_plane.kubeconfig, answers)

    assert user_of(asking) == "system:serviceaccount:default:robot"


def test_a_program_is_asked_again_shortly_before_its_certificate_ends(control_plane, tmp_path):
    ending = {"expirationTimestamp": "2001-01-01T00:00:00Z"}
    answers = [
        {**certificate_of(control_plane.user("ann")), **ending},
        certificate_of(control_plane.user("bob")),
    ]
    asking = plugin_client(tmp_path, control_plane.kubeconfig, answers)

    assert [user_of(asking), user_of(asking), user_of(asking)] == ["ann", "bob", "bob"]
