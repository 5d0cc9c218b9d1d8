"""The watcher beside a real API server: lists, changes, restarts of both, and a random history."""

from __future__ import annotations

import os
import random
import signal
import threading
from typing import Any

import pytest

from scheduler.models import Mirror, Node, Pod, PodGroup, Queue
from tests.control_plane import objects
from tests.control_plane.objects import wait_until
from tests.services.cluster.mirror.beside import (
    insist,
    wait_until_equal,
    watcher_process,
    watching,
)
from tests.services.cluster.mirror.both_sides import QUEUES_PATH, stored_podgroups
from tests.services.cluster.mirror.history import (
    GROUPS,
    NAMESPACES,
    NODES,
    PODS,
    History,
    bind,
    delete,
    grouped,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kubernetes]


def test_what_is_there_is_mirrored_and_so_is_every_change(control_plane):
    api = control_plane.api
    api.post(NODES, objects.node("n1"))
    api.post(QUEUES_PATH, objects.queue("research", weight=3))
    api.post(GROUPS, objects.podgroup("gang", queue="research", min_member=2))
    api.post(PODS, grouped("gang-0", "gang", cpu="2"))
    api.post(PODS, objects.pod("web", cpu="500m", scheduler="default-scheduler"))
    bind(api, "web", "n1")

    with watching(control_plane):
        wait_until_equal(api)
        assert Node.objects.get().taken.amount("cpu") == 500
        assert stored_podgroups()["gang"] == "research"
        assert Mirror.objects.get().positions["pods"].isdigit()

        bind(api, "gang-0", "n1")
        api.patch(f"{NODES}/n1", {"spec": {"unschedulable": True}})
        api.post(NODES, objects.node("n2", labels={"zone": "b"}))
        api.patch(f"{QUEUES_PATH}/research", {"spec": {"weight": 7}})
        wait_until_equal(api)
        assert Pod.objects.get(name="gang-0").phase == "Bound"
        assert Queue.objects.get(name="research").weight == 7

        delete(api, f"{PODS}/gang-0")
        delete(api, f"{PODS}/web")
        api.delete(f"{NODES}/n2")
        wait_until_equal(api)
        assert list(Node.objects.values_list("name", flat=True)) == ["n1"]
        assert not Pod.objects.exists()


def test_a_namespace_that_is_deleted_takes_its_podgroups_and_pods_along(control_plane):
    api = control_plane.api
    api.post(NAMESPACES, {"metadata": {"name": "team"}})
    api.post(GROUPS.replace("default", "team", 1), objects.podgroup("gang"))
    api.post(PODS.replace("default", "team", 1), grouped("gang-0", "gang"))

    with control_plane.controllers(), watching(control_plane):
        wait_until_equal(api)
        assert PodGroup.objects.filter(namespace="team").exists()

        api.delete(f"{NAMESPACES}/team")

        wait_until(lambda: not Pod.objects.filter(namespace="team").exists(), "the pods to go")
        wait_until(lambda: not PodGroup.objects.exists(), "the podgroups to go")
        wait_until_equal(api)


def test_an_api_server_that_is_killed_and_comes_back(control_plane):
    api = control_plane.api
    api.post(NODES, objects.node("n1"))
    with watching(control_plane):
        wait_until_equal(api)

        control_plane.kill_api_server()
        control_plane.start_api_server()
        insist(lambda: api.post(NODES, objects.node("n2")))
        insist(lambda: api.delete(f"{NODES}/n1"))

        wait_until_equal(api)
        assert list(Node.objects.values_list("name", flat=True)) == ["n2"]


def test_a_watcher_that_is_killed_at_any_moment_does_no_harm(control_plane):
    api = control_plane.api
    chance = random.Random(7)
    for round_number in range(3):
        with watcher_process(control_plane) as process:
            for number in range(20):
                api.post(NODES, objects.node(f"n{round_number}-{number}"))
            wait_until(Node.objects.exists, "the watcher to begin")
            threading.Event().wait(chance.uniform(0.0, 0.3))
            process.send_signal(signal.SIGKILL)
        delete(api, f"{NODES}/n{round_number}-{chance.randrange(20)}")

    with watcher_process(control_plane):
        wait_until_equal(api)
    assert Node.objects.count() == 57


# A random history


@pytest.mark.parametrize("seed", [1, 2])
def test_after_any_history_the_mirror_equals_the_cluster(control_plane, seed):
    live_through(control_plane, seed, rounds=6)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1000 + int(os.environ.get("HISTORIES", "20"))))
def test_after_long_histories_too(control_plane, seed):
    live_through(control_plane, seed, rounds=20)


def live_through(plane: Any, seed: int, rounds: int) -> None:
    history = History(plane.api, seed)
    for _ in range(20):
        history.step()

    with watching(plane):
        for _ in range(rounds):
            for _ in range(25):
                history.step()
            wait_until_equal(plane.api)
