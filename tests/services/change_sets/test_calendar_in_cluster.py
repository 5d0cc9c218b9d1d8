"""The calendar of a real cluster: each queue is sent by itself. The API server is a fake one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.models import ChangeSet, Occurrence
from scheduler.services.change_sets.calendar import keep_calendar
from scheduler.services.change_sets.drafts import create_change_set
from scheduler.services.change_sets.plans import Wish, plan_change_set
from tests.control_plane import objects
from tests.control_plane.fake.faults import Answer
from tests.fake_cluster import QUEUES, FakeCluster, fake_cluster
from tests.services.change_sets.builders import edit
from tests.services.change_sets.clock import SetClock, at

pytestmark = pytest.mark.django_db
UNLUCKY = Answer(403, "Forbidden", 'admission webhook "y" denied the request: bad luck')
AWAY = Answer(503, "ServiceUnavailable", "the server is away")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[FakeCluster]:
    with fake_cluster(tmp_path) as running:
        running.has("old", weight=3, parent="root")
        running.tells()
        yield running


@pytest.fixture
def clock(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> SetClock:
    set_clock = SetClock(monkeypatch, at("2026-11-18T12:00"))
    documents = [edit("old", weight=7), edit("research", weight=9), edit("fresh", parent="root")]
    change_set = create_change_set("more", documents)
    plan_change_set(change_set.pk, Wish("2026-11-19T10:00", "2026-11-19T12:00"))
    return set_clock


def turn() -> Occurrence:
    return Occurrence.objects.get()


def weights(cluster: FakeCluster) -> tuple[int, int]:
    """In the cluster, of both queues."""
    return tuple(cluster.queue(name)["spec"]["weight"] for name in ("old", "research"))


def exists(cluster: FakeCluster, name: str) -> bool:
    found, _ = cluster.server.store.list(QUEUES, "")
    return any(each["metadata"]["name"] == name for each in found)


def let_pass(clock: SetClock, moment: str) -> None:
    clock.set(moment)
    keep_calendar()


def test_a_turn_begins_and_ends_when_the_mirror_has_it(cluster: FakeCluster, clock: SetClock):
    let_pass(clock, "2026-11-19T10:00")
    assert (turn().state, weights(cluster), exists(cluster, "fresh")) == ("Beginning", (7, 9), True)
    sent = cluster.writes()
    keep_calendar()
    assert (turn().state, cluster.writes()) == ("Beginning", sent)  # sent once

    cluster.tells()
    keep_calendar()
    assert (turn().state, cluster.writes()) == ("Holding", sent)

    let_pass(clock, "2026-11-19T12:00")
    for _ in range(3):
        cluster.tells()
        keep_calendar()
    assert (turn().message, turn().state) == ("", "Ended")
    assert (weights(cluster), exists(cluster, "fresh")) == ((3, 3), False)
    assert ChangeSet.objects.get().state == "Draft"


def test_while_the_api_server_is_away_it_is_tried_again(cluster: FakeCluster, clock: SetClock):
    cluster.server.plan("PATCH", f"{objects.QUEUES}/research*", AWAY)

    let_pass(clock, "2026-11-19T10:00")
    cluster.tells()
    assert (turn().state, weights(cluster)) == ("Beginning", (7, 3))
    clock.pass_by(seconds=2)
    keep_calendar()
    cluster.tells()
    keep_calendar()

    assert (turn().state, weights(cluster)) == ("Holding", (7, 9))


def test_what_the_server_refuses_is_a_conflict_that_says_what_may_be_written(
    cluster: FakeCluster, clock: SetClock
):
    cluster.server.plan("PATCH", f"{objects.QUEUES}/research*", UNLUCKY)

    let_pass(clock, "2026-11-19T10:00")

    assert turn().state == "BeginConflict"
    assert "bad luck" in turn().message
    assert "Look at old, fresh" in turn().message or "Look at fresh, old" in turn().message


def test_a_field_that_others_changed_is_a_conflict_and_nothing_is_sent(
    cluster: FakeCluster, clock: SetClock
):
    cluster.changes("old", lambda queue: {**queue, "spec": {**queue["spec"], "weight": 5}})
    cluster.tells()

    let_pass(clock, "2026-11-19T10:00")

    assert (turn().state, cluster.writes()) == ("BeginConflict", [])
    assert turn().message == "Queue old was changed: spec.weight from 3 to 5."
