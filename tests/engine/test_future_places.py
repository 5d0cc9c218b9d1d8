"""A large gang gets a place in the future, and its nodes are filled meanwhile with what ends in
time.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.engine.presets import FUMAROLE
from tests.engine.builders import Workload, binds, cluster, configured, job, node, queue, run

NOW = 1000.0
ASIDE = configured(FUMAROLE, allocate={"setAside": 8})
NONE_ASIDE = configured(FUMAROLE, allocate={"setAside": 0})


def running(name, on, ends_in, queue="big", cpu=8):
    """A pod that has run for 100 s and is expected to end."""
    work = job(name, queue, cpu=cpu, on=on, expected_seconds=100.0 + ends_in)
    return Workload(work.group, tuple(replace(pod, started=NOW - 100.0) for pod in work.pods))


def scene(small_seconds, **small):
    """`large` needs both nodes. One is free; the other will be in 60 s."""
    return cluster(
        nodes=[node("n1", cpu=8), node("n2", cpu=8)],
        queues=[queue("root"), queue("big", deserved=16), queue("small")],
        jobs=[
            running("old", "n2", ends_in=60, queue="small"),
            job("large", "big", tasks=2, cpu=8, created=1.0),
            job("short", "small", cpu=4, created=2.0, expected_seconds=small_seconds, **small),
        ],
        taken_at=NOW,
    )


@pytest.mark.parametrize(("seconds", "started"), [(50.0, ["short-0"]), (70.0, []), (None, [])])
def test_only_what_ends_in_time_is_put_where_a_gang_will_start(seconds, started):
    assert sorted(binds(run(scene(seconds), ASIDE))) == started


def test_without_places_in_the_future_small_jobs_keep_a_large_gang_waiting():
    assert sorted(binds(run(scene(70.0), NONE_ASIDE))) == ["short-0"]


@pytest.mark.parametrize(("waited", "started"), [(100.0, ["short-0"]), (700.0, [])])
def test_a_gang_beyond_its_due_gets_a_place_in_the_future_after_a_long_wait(waited, started):
    snapshot = scene(70.0)
    snapshot.groups.created[snapshot.groups.rows["default/large"]] = NOW - waited
    queues = [
        replace(found, spec=replace(found.spec, deserved=found.spec.deserved))
        for found in snapshot.queues
    ]
    queues = [queue("big", deserved=8) if found.name == "big" else found for found in queues]
    snapshot.replace_queues(queues)

    assert sorted(binds(run(snapshot, ASIDE))) == started


def test_a_gang_within_its_due_does_not_heed_the_place_of_one_that_would_borrow():
    snapshot = scene(70.0)
    snapshot.replace_queues([queue("root"), queue("big"), queue("small", deserved=16)])

    assert sorted(binds(run(snapshot, ASIDE))) == ["short-0"]


def test_who_fits_beside_the_gang_may_stay_longer():
    snapshot = cluster(
        nodes=[node("n1", cpu=8), node("n2", cpu=12)],
        queues=[queue("root"), queue("big", deserved=16), queue("small")],
        jobs=[
            running("old", "n1", ends_in=60, queue="small"),
            job("large", "big", tasks=2, cpu=8, created=1.0),
            job("beside", "small", cpu=4, created=2.0),
        ],
        taken_at=NOW,
    )

    assert binds(run(snapshot, ASIDE)) == {"beside-0": "n2"}


def test_who_is_overdue_is_not_counted_on():
    snapshot = scene(50.0)
    snapshot.groups.expected_seconds[snapshot.groups.rows["default/old"]] = 10.0

    assert sorted(binds(run(snapshot, ASIDE))) == ["short-0"]


def test_a_gang_takes_what_pods_leave_at_that_moment_before_what_is_idle():
    """Two pods of `large` would fit on n2 now, the third in 60 s; by then n1 and n3 have room for
    all three, so that n2 need not stay idle.
    """
    snapshot = cluster(
        nodes=[node("n1", cpu=8), node("n2", cpu=8), node("n3", cpu=4)],
        queues=[queue("root"), queue("big", deserved=16), queue("small")],
        jobs=[
            running("first", "n1", ends_in=60, queue="small"),
            running("second", "n3", ends_in=60, queue="small", cpu=4),
            job("large", "big", tasks=3, cpu=4, created=1.0),
            job("long", "small", cpu=8, created=2.0),
        ],
        taken_at=NOW,
    )

    assert binds(run(snapshot, ASIDE)) == {"long-0": "n2"}


@pytest.mark.parametrize(("waited", "started"), [(10.0, []), (100.0, ["short-0"])])
def test_nothing_is_set_aside_for_a_borrower_while_gangs_within_their_due_find_no_room(
    waited, started
):
    """`due` has a place of its own, beside which there is room for `short`; beside `large` not."""
    snapshot = cluster(
        nodes=[node("n1", cpu=8), node("n2", cpu=8)],
        queues=[
            queue("root"),
            queue("big", deserved=8),
            queue("other", deserved=12),
            queue("small"),
        ],
        jobs=[
            running("old", "n2", ends_in=60, queue="small"),
            job("large", "big", tasks=2, cpu=8, created=NOW - 700.0),
            job("due", "other", tasks=3, cpu=4, created=NOW - waited, min_resources={"cpu": 12}),
            job("short", "small", cpu=4, created=NOW - 5.0, expected_seconds=500.0),
        ],
        taken_at=NOW,
    )

    assert sorted(binds(run(snapshot, ASIDE))) == started
