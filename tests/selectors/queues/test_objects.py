"""What is counted for the objects of queues: the same whether the whole tree is looked at or only
what has work in it.
"""

from __future__ import annotations

import random

import pytest
from django.utils import timezone

from scheduler.models import Queue
from scheduler.selectors.queues.objects import JOB_COUNTS, queue_counts, tree_counts
from scheduler.selectors.queues.one_queue import counts_of_queue
from tests.services.queues.builders import job, podgroup, queue

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def test_counts_are_those_of_the_whole_tree_and_idle_queues_are_not_looked_at():
    for name, parent in (
        ("p", "root"),
        ("a", "p"),
        ("b", "a"),
        ("c", "p"),
        ("idle", "root"),
        ("below", "idle"),
    ):
        queue(name, parent)
    for number, (place, phase) in enumerate(
        (("b", "Running"), ("b", "Pending"), ("c", "Completed"))
    ):
        podgroup(f"g{number}", place, phase)
    job("j", "c", phase="Running", podgroup_phase="Running")

    few = queue_counts()
    all_of_them = tree_counts()

    keys = dict(Queue.objects.values_list("name", "pk"))
    assert {name: few.of(key) for name, key in keys.items()} == {
        name: all_of_them.of(key) for name, key in keys.items()
    }
    assert few.all_of(keys.values()) == {key: few.of(key) for key in keys.values()}
    assert few.gangs_below(keys["p"]) == (1, 0, 2, 0, 1)
    assert few.parents.keys() == {keys[name] for name in ("root", "p", "a", "b", "c")}
    assert all_of_them.names == {key: name for name, key in keys.items()}


@pytest.mark.parametrize("seed", range(5))
def test_counts_of_one_queue_are_those_that_all_have(seed: int):
    choose = random.Random(seed)
    names = ["root"]
    for number in range(15):
        names.append(f"q{number}")
        queue(names[-1], choose.choice(names[:-1]))
    for number in range(30):
        phase = choose.choice(["Pending", "Running", "Completed"])
        podgroup(f"g{number}", choose.choice(names), phase)
        job(f"j{number}", choose.choice(names), choose.choice(["Running", "Failed"]), phase)
    for name in choose.sample(names, 8):
        field = choose.choice(["min_run_seconds", "max_waiting_jobs", "max_pods_per_job"])
        Queue.objects.filter(name=name).update(**{field: choose.choice([1, 1, 2, 3])})
    gone = choose.choice(list(Queue.objects.filter(children=None)))
    Queue.objects.filter(pk=gone.pk).update(deleted_at=timezone.now())

    everything = queue_counts()

    for key in Queue.objects.values_list("pk", flat=True):
        assert counts_of_queue(key).of(key) == everything.of(key)


def test_jobs_are_counted_and_work_without_a_job_is_unknown():
    queue("a")
    for name, phase, gang in (
        ("j1", "Pending", "Running"),
        ("j2", "Running", "Running"),
        ("j3", "Aborting", "Running"),
        ("j4", "Completed", "Completed"),
        ("j5", "Failed", "Completed"),
        ("j6", "Aborted", "Completed"),
        ("j7", "Terminated", "Completed"),
    ):
        job(name, "a", phase, gang)
    podgroup("outside", "a")

    counts = queue_counts().jobs_of(Queue.objects.get(name="a").pk)

    assert dict(zip(JOB_COUNTS, counts, strict=True)) == {
        "pending": 1,
        "running": 2,
        "completed": 1,
        "failed": 1,
        "aborted": 2,
        "unknown": 1,
    }
