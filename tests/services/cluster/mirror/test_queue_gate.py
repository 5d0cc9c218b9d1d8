"""Whether a pod is too large for its queue or one above it."""

from __future__ import annotations

import pytest

from scheduler.clusters.kubernetes.resources import QUEUES
from scheduler.clusters.kubernetes.watch_events import Changed
from scheduler.domain.resources import Resources
from scheduler.services.cluster.mirror.queue_gate import fits_in_queues
from scheduler.services.cluster.mirror.store import Store
from tests.mirrored import queue


@pytest.fixture
def store() -> Store:
    made = Store()
    for each in (
        queue("root", ""),
        queue("wide", capability={"cpu": "4"}),
        queue("below", "wide"),
        queue("round", "about"),
        queue("about", "round"),
    ):
        made.take(Changed(QUEUES, "1", each))
    return made


@pytest.mark.parametrize(
    ("name", "cpu", "expected"),
    [
        ("wide", "4", True),
        ("wide", "5", False),
        ("below", "5", False),
        ("root", "500", True),
        ("round", "1", True),
        ("not-there", "1", True),
    ],
)
def test_every_queue_up_to_root_must_be_able_to_hold_it(store, name, cpu, expected):
    assert fits_in_queues(store, name, Resources.parse({"cpu": cpu})) is expected


def test_what_a_queue_does_not_limit_it_can_hold(store):
    assert fits_in_queues(store, "wide", Resources.parse({"nvidia.com/gpu": "64"}))
