"""A queue's number changes with its own gangs and pods, and with nobody else's."""

from __future__ import annotations

import pytest

from scheduler.models import Pod, PodGroup
from scheduler.selectors.jobs import pulses
from scheduler.selectors.jobs.pulses import Pulses
from tests.dashboard.work import small_cluster, submitted

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader() -> Pulses:
    small_cluster()
    pulses = Pulses()
    pulses.read()
    return pulses


def changed(reader: Pulses, before: dict[str, int]) -> set[str]:
    return {name for name, number in reader.read().items() if before.get(name) != number}


def test_the_first_reading_knows_every_queue(reader: Pulses):
    assert {"vision", "language", "batch", "root"} <= set(reader.read())


def test_nothing_changes_while_nothing_happens(reader: Pulses):
    assert changed(reader, dict(reader.read())) == set()


def test_a_submitted_job_changes_its_queue_alone(reader: Pulses):
    before = dict(reader.read())

    submitted("late", "vision", "sam")

    assert changed(reader, before) == {"vision"}


def test_a_pod_counts_for_the_queue_of_its_gang(reader: Pulses):
    before = dict(reader.read())

    Pod.objects.filter(podgroup__queue__name="language").update(borrowed=True)

    assert changed(reader, before) == {"language"}


def test_a_deleted_gang_may_have_been_anybodys(reader: Pulses):
    before = dict(reader.read())

    PodGroup.objects.filter(name="train-2").delete()

    assert {"vision", "batch"} <= changed(reader, before)


def test_too_much_news_counts_as_news_for_all(reader: Pulses, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pulses, "_MOST", 1)
    before = dict(reader.read())

    submitted("late", "vision", "sam", replicas=4)

    assert {"vision", "batch"} <= changed(reader, before)
