"""A preview of a change set with 1,000 queues and 10,000 waiting pods: the scene, the first session
and the way ahead, each with its time.

python -m pytest tests/bench/test_preview.py -s
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from scheduler.domain.tables import Floats
from scheduler.models import Queue
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.change_sets.drafts import create_change_set
from scheduler.services.change_sets.preview import (
    Question,
    Scene,
    prospect_of,
    scene_after,
    scene_now,
)
from scheduler.services.demo.setup import ensure_builtin_objects
from tests.bench.clusters import Size, roomy
from tests.bench.database import fill

QUEUES = int(os.environ.get("QUEUES", "1000"))
PODS = int(os.environ.get("PODS", "10000"))
NODES = int(os.environ.get("NODES", "200"))


def timed(what: str, act: Callable[[], Any]) -> Any:
    cpu = time.process_time()
    wall = time.monotonic()
    found = act()
    used = time.process_time() - cpu
    print(f"{what}: {used:.2f} s CPU, {time.monotonic() - wall:.2f} s")
    return found


@pytest.mark.django_db
def test_a_preview_of_a_large_cluster():
    ensure_builtin_objects()
    fill(roomy(Size(nodes=NODES, pending=PODS, running=NODES * 5, queues=QUEUES)))
    names = list(Queue.objects.exclude(name="root").values_list("name", flat=True))[:10]
    documents = []
    for name in names:
        documents.append({"kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 50}})
    print(f"\n{Queue.objects.count()} queues, {PODS} waiting pods, {NODES} nodes")
    items = create_change_set("bench", documents).changes

    now = timed("reading the cluster", scene_now)
    then = timed("the cluster after the set", lambda: scene_after(now, Question(items), SYSTEM))
    print("no pod ends")
    look(now, then, nobody_knows(now))
    print("pods end all the time")
    look(now, then, drawn_lengths(now))


def look(now: Scene, then: Scene, lengths: Floats) -> None:
    before = timed("  an hour ahead as it is", lambda: prospect_of(now, 60, lengths))
    after = timed("  an hour ahead with the set", lambda: prospect_of(then, 60, lengths))
    print(f"  gangs that start: {len(before.starts)} and {len(after.starts)}, until {after.halt}")

    assert before.first_binds
    assert after.first_binds


def nobody_knows(scene: Scene) -> Floats:
    return np.full(len(scene.snapshot.groups), np.nan)


def drawn_lengths(scene: Scene) -> Floats:
    """From a minute to two hours, so that something ends all the time."""
    return np.random.default_rng(7).uniform(60.0, 7200.0, len(scene.snapshot.groups))
