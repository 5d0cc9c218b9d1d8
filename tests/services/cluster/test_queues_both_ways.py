"""Queues changed from both sides of a real API server: here, by kubectl, and by Volcano's vcctl."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from django.db import connection

from scheduler.admission.violations import Rejected
from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.credentials import from_kubeconfig
from scheduler.clusters.kubernetes.installer import install
from scheduler.clusters.kubernetes.manifests import Wanted
from scheduler.conf import KubernetesConf
from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import Command, Mirror, Queue
from scheduler.services.accounts.actors import Actor
from scheduler.services.cluster import api_server
from scheduler.services.cluster.mirror import feed
from scheduler.services.cluster.mirror.feed import connect
from scheduler.services.cluster.mirror.watcher import Watcher
from scheduler.services.cluster.queue_writes import ClusterAway
from scheduler.services.queues.commands import command_queue
from scheduler.services.queues.create_update import create_queue, update_queue
from scheduler.services.queues.deletion import delete_queue
from tests.control_plane import objects
from tests.control_plane.objects import wait_until
from tests.mirrored import is_synced, kubernetes_mode

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kubernetes]

KIND = "queues.scheduling.volcano.sh"
ADMIN = Actor("ann")


@contextmanager
def watching(plane: Any, **given: Any) -> Iterator[None]:
    """A watcher in a thread of this process, and services that reach the same cluster."""
    settings = {"kubeconfig": str(plane.kubeconfig), **given}
    watcher = Watcher(partial(connect, KubernetesConf(**settings)))
    thread = threading.Thread(target=_run, args=(watcher,), name="watcher")
    with kubernetes_mode(**settings):
        thread.start()
        try:
            wait_until(is_synced, "the first look at the cluster")
            yield
        finally:
            watcher.stop()
            thread.join(30)
            api_server._client.cache_clear()
            assert not thread.is_alive()


def _run(watcher: Watcher) -> None:
    try:
        watcher.run()
    finally:
        connection.close()


def stored(plane: Any, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(plane.kubectl("get", KIND, name, "-o", "json"))
    return found


def status_of(plane: Any, name: str) -> dict[str, Any]:
    status: dict[str, Any] = stored(plane, name).get("status", {})
    return status


def names(plane: Any) -> set[str]:
    listed = json.loads(plane.kubectl("get", KIND, "-o", "json"))
    return {queue["metadata"]["name"] for queue in listed["items"]}


def wait_for(name: str, **columns: Any) -> None:
    wait_until(lambda: Queue.objects.filter(name=name, **columns).exists(), f"{name} {columns}")


def vcctl(plane: Any, *action: str) -> str:
    return str(plane.vcctl("queue", "operate", "--name", "research", "--action", *action))


def test_the_whole_life_of_a_queue_from_here(extended_control_plane):
    plane = extended_control_plane
    with watching(plane):
        made = create_queue(objects.queue("research", weight=2, parent="root"), by=ADMIN)
        assert str(made.queue.uid) == stored(plane, "research")["metadata"]["uid"]
        assert made.notices == ()

        update_queue("research", {"spec": {"weight": 5, "owner": "Ann"}}, by=ADMIN, merge=True)
        assert stored(plane, "research")["spec"]["weight"] == 5
        assert Queue.objects.get(name="research").owner == "Ann"

        for command, state in (
            (QueueCommand.SUSPEND, "Suspended"),
            (QueueCommand.RESUME, "Open"),
            (QueueCommand.CLOSE, "Closed"),
        ):
            command_queue("research", command, by=ADMIN)
            assert stored(plane, "research")["spec"]["state"] == state
            assert Queue.objects.get(name="research").state == state

        deleted = delete_queue("research", by=ADMIN)
        assert "sent to the cluster" not in deleted.message
        assert "research" not in names(plane)
        assert not Queue.objects.filter(name="research").exists()


def test_what_kubectl_changes_is_seen_here_and_a_conflict_is_told(extended_control_plane):
    plane = extended_control_plane
    with watching(plane):
        plane.kubectl("apply", "-f", "-", given=json.dumps(objects.queue("research", weight=1)))
        wait_for("research", weight=1)
        plane.kubectl(
            "patch", KIND, "research", "--type=merge", "-p", '{"spec":{"state":"Suspended"}}'
        )
        wait_for("research", state="Suspended")
        wait_until(
            lambda: stored(plane, "research")["status"].get("state") == "Suspended",
            "our status",
        )
        plane.kubectl("delete", KIND, "research")
        wait_until(lambda: not Queue.objects.filter(name="research").exists(), "its end")

        with pytest.raises(Rejected) as refused:
            create_queue(objects.queue("a", weight=-1, parent="root"), by=ADMIN)
        assert refused.value.violations


def test_volcanos_vcctl_gives_commands_that_we_carry_out_once(control_plane):
    """Nobody else handles them: the status and the annotation are ours."""
    plane = control_plane
    with watching(plane):
        plane.vcctl("queue", "create", "--name", "research", "--weight", "3")
        wait_for("research", weight=3)

        vcctl(plane, "close")
        wait_for("research", state="Closed")
        wait_until(lambda: stored(plane, "research")["status"]["state"] == "Closed", "the status")
        vcctl(plane, "open")
        wait_for("research", state="Open")
        wait_until(lambda: stored(plane, "research")["status"]["state"] == "Open", "the status")

        done = Command.objects.order_by("id").values_list("action", "result", "actor")
        assert list(done) == [
            ("CloseQueue", "Done", "kubernetes"),
            ("OpenQueue", "Done", "kubernetes"),
        ]
        wait_until(lambda: not commands(plane), "all commands to be deleted")


def test_suspended_is_an_annotation_where_the_definition_is_volcanos(control_plane):
    plane = control_plane
    plane.kubectl("apply", "-f", "-", given=json.dumps(objects.queue("research", weight=1)))
    with watching(plane):
        command_queue("research", QueueCommand.SUSPEND, by=ADMIN)

        assert Queue.objects.get(name="research").state == "Suspended"
        found = stored(plane, "research")
        assert found["metadata"]["annotations"]["fumarole.io/state"] == "Suspended"
        assert "state" not in found["spec"]
        wait_until(lambda: stored(plane, "research")["status"]["state"] == "Open", "the status")
        plane.kubectl("annotate", KIND, "research", "--overwrite", "fumarole.io/state=Open")
        wait_for("research", state="Open")


def test_beside_volcanos_controllers_both_open_and_close(control_plane):
    plane = control_plane
    with plane.volcano_controllers(), watching(plane, queue_controller="volcano"):
        create_queue(objects.queue("research", weight=1, parent="root"), by=ADMIN)
        wait_until(lambda: "state" in stored(plane, "research").get("status", {}), "Volcano")

        command_queue("research", QueueCommand.CLOSE, by=ADMIN)
        wait_until(lambda: stored(plane, "research")["status"]["state"] == "Closed", "Volcano")
        wait_for("research", state="Closed")
        vcctl(plane, "open")
        wait_for("research", state="Open")
        vcctl(plane, "close")
        wait_for("research", state="Closed")
        command_queue("research", QueueCommand.OPEN, by=ADMIN)
        wait_until(lambda: stored(plane, "research")["status"]["state"] == "Open", "Volcano")
        assert set(Command.objects.values_list("actor", flat=True)) == {"ann"}


def test_volcanos_controllers_come_and_go_and_never_do_both_look_after_queues(
    control_plane, monkeypatch
):
    """Found out by their pods, as `auto` says. Who wrote a status stands in the audit log."""
    monkeypatch.setattr(feed, "ASK_SECONDS", 0.1)
    monkeypatch.setattr(feed, "DISCOVER_SECONDS", 0.2)
    plane = control_plane
    writers = StatusWriters(plane)
    plane.kubectl("apply", "-f", "-", given=json.dumps(objects.queue("research", weight=1)))
    with watching(plane):
        vcctl(plane, "close")
        wait_until(lambda: status_of(plane, "research").get("state") == "Closed", "us")
        wait_until(lambda: not commands(plane), "our end of the command")

        _run_pod_of_volcano(plane)
        wait_until(
            Mirror.objects.filter(queue_controller=Mirror.VOLCANO, synced_at__isnull=False).exists,
            "the mirror to leave queues to Volcano",
        )
        vcctl(plane, "open")  # nobody carries it out, as only the pod is there
        assert len(commands(plane)) == 1
        with plane.volcano_controllers():
            wait_for("research", state="Open")
            wait_until(lambda: not commands(plane), "Volcano's end of the command")
            command_queue("research", QueueCommand.CLOSE, by=ADMIN)
            wait_for("research", state="Closed")

        plane.kubectl("delete", "pod", "volcano-controller", "--force", "--grace-period=0")
        wait_until(
            Mirror.objects.filter(queue_controller=Mirror.FUMAROLE).exists, "queues to be ours"
        )
        vcctl(plane, "open")
        wait_for("research", state="Open")
        wait_until(lambda: not commands(plane), "our end of the command")
        wait_until(lambda: status_of(plane, "research").get("state") == "Open", "us again")

    turns = ["fumarole", "vc-controller-manager", "fumarole"]
    wait_until(lambda: writers.turns() == turns, "each of them to have written in turn")
    ours = Command.objects.order_by("id").values_list("action", "actor")
    assert list(ours) == [
        ("CloseQueue", "kubernetes"),
        ("CloseQueue", "ann"),
        ("OpenQueue", "kubernetes"),
    ]


def _run_pod_of_volcano(plane: Any) -> None:
    """As Volcano's chart labels it. Its program runs elsewhere: there is no kubelet."""
    pod = objects.pod("volcano-controller", labels={"app": "volcano-controller"})
    plane.api.post("/api/v1/namespaces/default/pods", pod)
    path = "/api/v1/namespaces/default/pods/volcano-controller/status"
    plane.api.patch(path, {"status": {"phase": "Running"}})


class StatusWriters:
    """Which programs have written the status of the queue since, by the server's audit log."""

    def __init__(self, plane: Any) -> None:
        self._log = plane.audit_log
        self._begin = len(self._lines())

    def _lines(self) -> list[str]:
        if not self._log.exists():
            return []
        return self._log.read_text().splitlines()

    def turns(self) -> list[str]:
        """One after the other. Who wrote several times in succession had one turn."""
        found: list[str] = []
        for line in self._lines()[self._begin :]:
            event = json.loads(line)
            asked = event.get("objectRef", {})
            if (asked.get("name"), asked.get("subresource")) != ("research", "status"):
                continue
            program = event["userAgent"].partition("/")[0]
            if found[-1:] != [program]:
                found.append(program)
        return found


def test_a_queue_below_a_closed_one_opens_with_it_again(control_plane):
    """Its status says Closed, and is not taken for its own wish."""
    plane = control_plane
    plane.kubectl("apply", "-f", "-", given=json.dumps(objects.queue("research", weight=1)))
    child = objects.queue("vision", weight=1, parent="research")
    plane.kubectl("apply", "-f", "-", given=json.dumps(child))
    with watching(plane):
        command_queue("research", QueueCommand.CLOSE, by=ADMIN)
        wait_until(lambda: stored(plane, "vision")["status"]["state"] == "Closed", "the status")

        command_queue("research", QueueCommand.OPEN, by=ADMIN)

        wait_for("vision", state="Open")
        wait_until(lambda: stored(plane, "vision")["status"]["state"] == "Open", "the status")


def test_commands_that_waited_are_carried_out_in_order_and_those_done_are_only_deleted(
    control_plane,
):
    plane = control_plane
    plane.kubectl("apply", "-f", "-", given=json.dumps(objects.queue("research", weight=1)))
    for action in ("close", "open", "close"):
        vcctl(plane, action)
    middle = sorted(commands(plane), key=lambda each: int(each["metadata"]["resourceVersion"]))[1]
    Command.objects.create(
        action="OpenQueue",
        target_kind="Queue",
        target_name="research",
        request_id=middle["metadata"]["uid"],
        result=Command.DONE,
    )

    with watching(plane):
        wait_for("research", state="Closed")
        wait_until(lambda: not commands(plane), "all commands to be deleted")

    results = Command.objects.filter(actor="kubernetes").order_by("id")
    assert list(results.values_list("action", "result")) == [
        ("CloseQueue", "Done"),
        ("CloseQueue", "NoOp"),
    ]


def commands(plane: Any) -> list[dict[str, Any]]:
    listed: dict[str, Any] = json.loads(plane.kubectl("get", "commands", "-A", "-o", "json"))
    return list(listed["items"])


def test_the_account_that_is_installed_has_the_rights_for_all_of_it(control_plane):
    plane = control_plane
    client = Client(from_kubeconfig(plane.kubeconfig))
    for _ in install(client, Wanted()):
        pass
    client.close()
    token = plane.kubectl("create", "token", "fumarole", "--namespace", "fumarole").strip()
    kubeconfig = plane.token_user("account", token)

    with watching(plane, kubeconfig=str(kubeconfig)):
        create_queue(objects.queue("research", weight=2, parent="root"), by=ADMIN)
        command_queue("research", QueueCommand.SUSPEND, by=ADMIN)
        command_queue("research", QueueCommand.RESUME, by=ADMIN)
        vcctl(plane, "close")
        wait_for("research", state="Closed")
        wait_until(lambda: stored(plane, "research")["status"]["state"] == "Closed", "the status")
        delete_queue("research", by=ADMIN)
        assert "research" not in names(plane)


def test_who_may_not_write_is_told_so(control_plane):
    plane = control_plane
    reader = plane.user("reader", "readers")
    plane.kubectl("create", "clusterrole", "reader", "--verb=get,list,watch", "--resource=*.*")
    plane.kubectl("create", "clusterrolebinding", "reader", "--clusterrole=reader", "--user=reader")
    plane.kubectl("apply", "-f", "-", given=json.dumps(objects.queue("research", weight=1)))

    with watching(plane, kubeconfig=str(reader)), pytest.raises(Rejected) as refused:
        update_queue("research", {"spec": {"weight": 2}}, by=ADMIN, merge=True)

    assert refused.value.violations[0].rule_id == "forbidden_in_cluster"
    assert 'User "reader" cannot patch resource "queues"' in str(refused.value)
    assert stored(plane, "research")["spec"]["weight"] == 1


def test_while_the_api_server_is_away_nothing_is_changed(control_plane):
    plane = control_plane
    plane.kubectl("apply", "-f", "-", given=json.dumps(objects.queue("research", weight=1)))
    with watching(plane):
        plane.kill_api_server()
        with pytest.raises(ClusterAway) as refused:
            update_queue("research", {"spec": {"weight": 2}}, by=ADMIN, merge=True)
        assert "The queue research was not changed" in str(refused.value)
        assert Queue.objects.get(name="research").weight == 1

        plane.start_api_server()
        update_queue("research", {"spec": {"weight": 2}}, by=ADMIN, merge=True)
        assert stored(plane, "research")["spec"]["weight"] == 2


def test_both_sides_write_the_same_queue_and_nothing_is_lost(extended_control_plane):
    """Here its weight, there its priority, at the same time."""
    plane = extended_control_plane
    plane.kubectl("apply", "-f", "-", given=json.dumps(objects.queue("research", weight=1)))
    is_over = threading.Event()
    written: list[int] = []
    others = threading.Thread(target=_write_priorities, args=(plane.api, is_over, written))
    with watching(plane):
        others.start()
        for weight in range(2, 12):
            update_queue("research", {"spec": {"weight": weight}}, by=ADMIN, merge=True)
        is_over.set()
        others.join()

        spec = stored(plane, "research")["spec"]
        assert (spec["weight"], spec["priority"]) == (11, written[-1])
        wait_for("research", weight=11, priority=written[-1])


def _write_priorities(api: Any, is_over: threading.Event, written: list[int]) -> None:
    number = 0
    while not is_over.wait(0.01):
        number += 1
        api.patch(f"{objects.QUEUES}/research", {"spec": {"priority": number}})
        written.append(number)
