"""List and watch, through every fault: nothing is missed and nothing is told twice as new."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.errors import ServerError, TooMany
from scheduler.clusters.kubernetes.read import READERS
from scheduler.clusters.kubernetes.resources import QUEUES
from scheduler.clusters.kubernetes.watch import Watch
from scheduler.clusters.kubernetes.watch_events import (
    Bookmark,
    Changed,
    Listed,
    Lost,
    Removed,
    Unreadable,
    WatchTimes,
)
from tests.clusters.kubernetes.conftest import credentials_for
from tests.control_plane import objects
from tests.control_plane.fake.faults import Answer, Broken, Expired, Silent
from tests.running import random_port

QUICK = WatchTimes(first_back_off=0.01, longest_back_off=0.05)
PATH = QUEUES.path()


@pytest.fixture
def watch(client: Client) -> Iterator[Watch[Any]]:
    following: Watch[Any] = Watch(client, QUEUES, READERS[QUEUES], times=QUICK)
    yield following
    following.stop()


def names(listed: Any) -> list[str]:
    assert isinstance(listed, Listed)
    return sorted(queue.meta.name for queue in listed.values)


def next_news(events: Iterator[Any]) -> Any:
    """The next event that is no bookmark."""
    for event in events:
        if not isinstance(event, Bookmark):
            return event
    raise AssertionError("the watch has ended")


def create(client: Client, name: str, **spec: Any) -> None:
    client.create(QUEUES, objects.queue(name, **spec))


def test_first_everything_then_every_change(watch, client):
    create(client, "a")
    events = iter(watch)
    assert names(next(events)) == ["a"]

    create(client, "b", weight=2)
    made = next_news(events)
    client.patch(QUEUES, "b", {"spec": {"weight": 3}})
    changed = next_news(events)
    client.delete(QUEUES, "b")
    gone = next_news(events)

    assert isinstance(made, Changed)
    assert (made.value.meta.name, made.value.spec.weight) == ("b", 2)
    assert isinstance(changed, Changed)
    assert changed.value.spec.weight == 3
    assert isinstance(gone, Removed)
    assert gone.value.meta.uid == made.value.meta.uid
    assert int(made.resource_version) < int(changed.resource_version) < int(gone.resource_version)


def test_a_watch_goes_on_from_a_stored_version_without_a_list(watch, client, server):
    create(client, "a")
    watch.since = next(iter(watch)).resource_version
    create(client, "b")
    server.requests.clear()

    event = next_news(iter(watch))

    assert isinstance(event, Changed)
    assert event.value.meta.name == "b"
    assert all("watch=1" in path for _method, path in server.requests)


def test_a_version_that_the_server_has_forgotten_leads_to_a_list(watch, client, server):
    create(client, "a")
    watch.since = next(iter(watch)).resource_version
    create(client, "b")
    client.delete(QUEUES, "a")
    server.store.forget_history()

    assert names(next(iter(watch))) == ["b"]


def test_a_410_in_the_middle_of_a_watch_leads_to_a_list(watch, client, server):
    server.plan("WATCH", PATH, Expired(after_events=1))
    events = iter(watch)
    assert names(next(events)) == []

    create(client, "a")
    first = next_news(events)

    assert isinstance(first, Changed)
    assert names(next_news(events)) == ["a"]


def test_a_410_that_comes_again_and_again_is_told_and_waited_for(watch, server):
    server.plan("WATCH", PATH, Expired(), times=3)
    events = iter(watch)

    told = [next_news(events) for _number in range(6)]

    assert [type(event) for event in told] == [Listed, Listed, Lost, Listed, Lost, Listed]


def test_a_broken_watch_goes_on_where_it_was(watch, client, server):
    server.plan("WATCH", PATH, Broken(after_events=1))
    events = iter(watch)
    next(events)
    create(client, "a")
    create(client, "b")

    told = [next_news(events) for _number in range(3)]

    assert [type(event) for event in told] == [Changed, Lost, Changed]
    assert [told[0].value.meta.name, told[2].value.meta.name] == ["a", "b"]


def test_a_silent_watch_is_given_up(client, server):
    times = WatchTimes(silence=0.2, first_back_off=0.01)
    watch: Watch[Any] = Watch(client, QUEUES, READERS[QUEUES], times=times)
    server.plan("WATCH", PATH, Silent())
    events = iter(watch)
    next(events)
    create(client, "a")

    lost = next_news(events)
    change = next(event for event in events if isinstance(event, Changed))
    watch.stop()

    assert isinstance(lost, Lost)
    assert change.value.meta.name == "a"


def test_a_watch_that_the_server_ends_in_due_time_goes_on_unnoticed(client, server):
    times = WatchTimes(server_timeout=1, first_back_off=0.01)
    watch: Watch[Any] = Watch(client, QUEUES, READERS[QUEUES], times=times)
    events = iter(watch)
    next(events)
    bookmark = next(events)
    create(client, "a")

    change = next_news(events)
    watch.stop()

    assert isinstance(bookmark, Bookmark)
    assert isinstance(change, Changed)
    assert sum("watch=1" in path for _method, path in server.requests) >= 2


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(Answer(500, "InternalError"), ServerError), (Answer(429, "TooManyRequests"), TooMany)],
)
def test_a_refused_watch_is_told_and_tried_again(watch, client, server, answer, kind):
    server.plan("WATCH", PATH, answer, times=2)
    events = iter(watch)
    next(events)

    first = next_news(events)
    second = next_news(events)
    create(client, "a")

    assert isinstance(first, Lost)
    assert isinstance(first.error, kind)
    assert isinstance(second, Lost)
    assert second.retry_seconds > 0
    assert isinstance(next_news(events), Changed)


def test_a_server_that_asks_for_time_gets_it(watch, server):
    server.plan("WATCH", PATH, Answer(429, "TooManyRequests", retry_after=5))
    events = iter(watch)
    next(events)

    assert next_news(events).retry_seconds == 5.0


def test_a_list_that_the_server_forgets_half_way_is_made_again_whole(
    watch, client, server, monkeypatch
):
    for number in range(5):
        create(client, f"q{number}")
    monkeypatch.setattr("scheduler.clusters.kubernetes.watch.PAGE_SIZE", 2)
    server.plan("GET", PATH, Answer(410, "Expired"))

    assert len(names(next(iter(watch)))) == 5


def test_one_object_that_cannot_be_read_stops_nothing(client):
    def read(raw: Any) -> str:
        if raw["metadata"]["name"].startswith("bad"):
            raise ValueError("nonsense")
        return str(raw["metadata"]["name"])

    watch = Watch(client, QUEUES, read, times=QUICK)
    for name in ("bad-1", "good-1"):
        create(client, name)
    events = iter(watch)
    listed = next(events)
    for name in ("bad-2", "good-2"):
        create(client, name)
    told = [next_news(events), next_news(events)]
    watch.stop()

    assert isinstance(listed, Listed)
    assert listed.values == ("good-1",)
    assert [item.key for item in listed.unreadable] == ["bad-1"]
    assert isinstance(told[0], Unreadable)
    assert (told[0].key, told[0].problem) == ("bad-2", "ValueError: nonsense")
    assert isinstance(told[1], Changed)


@pytest.mark.parametrize(
    "line", [b"<html>a proxy\n", b'{"type": "ADDED"}\n', b'{"type": "ADDED", "object": {}}\n']
)
def test_lines_that_are_no_events_are_a_loss(watch, client, monkeypatch, line):
    real = client.open_watch
    broken = urllib3.HTTPResponse(io.BytesIO(line), status=200, preload_content=False)
    given = iter([broken])
    monkeypatch.setattr(client, "open_watch", lambda *a, **k: next(given, None) or real(*a, **k))
    events = iter(watch)
    next(events)

    lost = next_news(events)
    create(client, "a")

    assert isinstance(lost, Lost)
    assert isinstance(next_news(events), Changed)


# Stopping


def in_thread(events: Iterator[Any]) -> tuple[threading.Thread, list[Any]]:
    told: list[Any] = []

    def run() -> None:
        told.extend(events)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, told


def test_a_watch_that_waits_for_events_stops_at_once(watch):
    events = iter(watch)
    next(events)
    thread, told = in_thread(events)
    while watch._stream is None:
        thread.join(0.01)

    watch.stop()
    thread.join(30)

    assert not thread.is_alive()
    assert not any(isinstance(event, Lost) for event in told)


def test_a_watch_that_waits_to_try_again_stops_at_once():
    times = WatchTimes(first_back_off=600.0, longest_back_off=600.0)
    nowhere = Client(credentials_for(f"http://127.0.0.1:{random_port()}"))
    watch: Watch[Any] = Watch(nowhere, QUEUES, READERS[QUEUES], times=times)
    events = iter(watch)
    assert isinstance(next(events), Lost)
    thread, told = in_thread(events)

    watch.stop()
    thread.join(30)

    assert not thread.is_alive()
    assert told == []


def test_a_watch_that_was_stopped_before_it_began_tells_nothing(watch):
    watch.stop()

    assert list(watch) == []


def test_a_reader_that_leaves_closes_the_connection(watch):
    events = iter(watch)
    next(events)
    events.close()

    assert watch._stream is None


def test_it_knows_when_it_last_heard_of_the_server(watch):
    assert watch.heard_at is None

    next(iter(watch))

    assert watch.heard_at is not None
