"""The process that mirrors a cluster, with events from a made-up API server."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from scheduler.clusters.kubernetes.errors import Forbidden
from scheduler.clusters.kubernetes.resources import NODES, PODS
from scheduler.clusters.kubernetes.watch_events import Changed, Listed, Lost
from scheduler.domain.taken_over import TakenOver
from scheduler.models import Mirror, Node
from scheduler.selectors.cluster.mirror import taken_over
from scheduler.services.cluster.mirror import state, watcher
from scheduler.services.cluster.mirror.flush import WATCHER
from scheduler.services.cluster.mirror.watcher import Watcher, collect
from scheduler.services.sessions import lease
from tests.control_plane.objects import wait_until
from tests.mirrored import is_synced, kubernetes_mode, node

pytestmark = pytest.mark.django_db(transaction=True)


class MadeUpFeed:
    """Says what a test wants it to say."""

    resources = frozenset({NODES, PODS})
    follows_status = False
    neighbours = state.Neighbours()

    def __init__(self) -> None:
        self.events: queue.Queue[object] = queue.Queue()
        self.silent_seconds = 0.0
        self.is_connected = threading.Event()
        self.is_closed = False

    def connect(self, events):
        state.begin(cluster_uid="made-up", server="https://made.up", version="v1", name="test")
        self.events = events
        self.events.put(Listed(NODES, "1", (node("n1"),)))
        self.is_connected.set()
        return self

    def queue_controller(self) -> None:
        return None

    def job_controller(self) -> None:
        return None

    def reporter(self) -> None:
        return None

    def heard_seconds_ago(self) -> float:
        return self.silent_seconds

    def must_begin_anew(self) -> bool:
        return False

    def close(self) -> None:
        self.is_closed = True


@contextmanager
def running(feed: MadeUpFeed, holder: str = "watcher:1") -> Iterator[Watcher]:
    made = Watcher(feed.connect, holder)

    def run() -> None:
        try:
            made.run()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    with kubernetes_mode():
        thread.start()
        try:
            yield made
        finally:
            made.stop()
            thread.join(30)
    assert not thread.is_alive()


def test_it_writes_once_everything_was_listed_and_then_every_change():
    feed = MadeUpFeed()
    with running(feed):
        assert feed.is_connected.wait(60)
        assert not is_synced()

        feed.events.put(Listed(PODS, "1", ()))
        wait_until(is_synced, "the first write")
        feed.events.put(Changed(NODES, "2", node("n2")))
        wait_until(lambda: Node.objects.count() == 2, "the change")

    assert feed.is_closed


def test_a_second_watcher_stands_by(monkeypatch):
    monkeypatch.setattr(watcher, "RETRY_SECONDS", 0.05)
    held = lease.acquire("elsewhere:1:x", 60, WATCHER)
    assert held is not None
    feed = MadeUpFeed()
    with running(feed):
        threading.Event().wait(0.3)
        assert not Mirror.objects.exists()

        lease.release(held, WATCHER)
        wait_until(Mirror.objects.exists, "the second watcher to take over")


def test_an_api_server_that_goes_silent_is_named():
    feed = MadeUpFeed()
    feed.silent_seconds = 20.0
    with running(feed):
        assert feed.is_connected.wait(60)
        feed.events.put(Listed(PODS, "1", ()))
        wait_until(
            lambda: Mirror.objects.filter(problem__contains="does not answer").exists(),
            "the problem to be told",
        )
        feed.silent_seconds = 0.0
        wait_until(lambda: Mirror.objects.filter(problem="").exists(), "the problem to be over")


def test_what_comes_within_a_moment_is_one_batch():
    events: queue.Queue[object] = queue.Queue()
    for number in range(3):
        events.put(Changed(NODES, str(number), node("n1")))

    assert len(list(collect(events))) == 3
    assert list(collect(queue.Queue())) == []


def test_a_right_that_is_missing_is_named_until_it_is_there():
    feed = MadeUpFeed()
    with running(feed):
        assert feed.is_connected.wait(60)
        feed.events.put(Lost(PODS, Forbidden("GET /api/v1/pods", 403, "pods is forbidden.")))
        wait_until(
            lambda: Mirror.objects.filter(problem__contains="may not read pods").exists(),
            "the missing right to be told",
        )
        feed.events.put(Listed(PODS, "1", ()))
        wait_until(lambda: Mirror.objects.filter(problem="").exists(), "the problem to be over")
        wait_until(is_synced, "the first write")


def test_what_is_taken_over_and_who_else_places_pods_is_noted():
    feed = MadeUpFeed()
    with running(feed):
        assert feed.is_connected.wait(60)
        taken = TakenOver(namespaces=("team-a",))
        feed.neighbours = state.Neighbours(taken, frozenset({"volcano"}))
        wait_until(
            lambda: Mirror.objects.filter(other_schedulers=["volcano"]).exists(), "the neighbours"
        )

    assert taken_over() == taken
