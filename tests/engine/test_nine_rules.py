"""The nine rules of decision 26, each with a scenario that breaks it under Volcano's rules."""

from __future__ import annotations

from scheduler.domain.workloads import Phase
from scheduler.engine.presets import FUMAROLE, VOLCANO
from scheduler.scenarios.clusters import cluster_of
from scheduler.simulation.runs import run_to_rest
from tests.engine import test_future_places
from tests.engine.builders import binds, cluster, evicted, job, node, queue, run, waiting
from tests.engine.scenes import HALVES, aged, gpus, scene

LONG_AGO = 9_000


def actions(outcome):
    return {eviction.action for eviction in outcome.evictions}


def test_1_only_a_queue_that_is_short_takes_and_only_what_it_is_short_of():
    """q2 has more GPUs than its due and fewer cores. Volcano's rules let it take GPUs for that."""
    queues = (
        queue("q1", deserved={"gpu": 4, "cpu": 2}),
        queue("q2", deserved={"gpu": 2, "cpu": 6}),
    )
    snapshot = scene(
        aged(job("a", "q1", tasks=5, min=1, gpu=1, cpu=1, on="n1"), LONG_AGO),
        aged(job("c", "q2", tasks=3, min=3, gpu=1, on="n1"), LONG_AGO),
        job("b", "q2", gpu=1, cpu=1),
        queues=queues,
    )

    assert evicted(run(snapshot, VOLCANO)) == ["a-4"]
    assert evicted(run(snapshot, FUMAROLE)) == []


def test_2_room_that_was_made_is_used_by_the_gang_it_was_made_for():
    """It lost its phase Running, and its queue would not let in a newcomer of its size."""
    promised = {"reserved_node": "n1", "reserved_until": 30}
    kept = job("kept", "q1", gpu=8, pod=promised, phase=Phase.PENDING, min_resources={"gpu": 8})
    other = job("other", "q2", tasks=2, gpu=1, on="n2", min_resources={"gpu": 2})
    snapshot = scene(
        kept,
        other,
        nodes=[("n1", 8, 8), ("n2", 8, 2)],
        queues=(gpus("q1", 8), gpus("q2", 2)),
    )
    snapshot.session = 5

    assert binds(run(snapshot, VOLCANO)) == {"kept-0": "n1"}
    assert binds(run(snapshot, FUMAROLE)) == {"kept-0": "n1"}


def test_3_gangs_go_whole_or_keep_their_minimum():
    """Volcano's rules break a gang, and what is left of it must be shed."""
    snapshot = scene(
        aged(job("a", "q1", tasks=4, gpu=1, on="n1"), LONG_AGO),
        aged(job("b", "q1", tasks=4, gpu=1, on="n1"), LONG_AGO),
        job("c", "q2", gpu=1),
        queues=HALVES,
    )

    assert actions(run(snapshot, VOLCANO)) == {"reclaim", "shed"}
    assert actions(run(snapshot, FUMAROLE)) == {"reclaim"}


def test_4_a_gang_that_has_just_started_is_left_in_peace():
    snapshot = scene(
        aged(job("a", "q1", tasks=8, min=1, gpu=1, on="n1"), 5),
        job("c", "q2", gpu=1),
        queues=HALVES,
    )

    assert len(evicted(run(snapshot, VOLCANO))) == 1
    assert evicted(run(snapshot, FUMAROLE)) == []


def test_5_a_large_gang_that_waits_keeps_no_small_one_out():
    """The large gang is admitted, and has no room; the small one would have."""
    large = job("large", "q1", gpu=8, min_resources={"gpu": 8}, phase=Phase.INQUEUE)
    small = job("small", "q2", gpu=2, min_resources={"gpu": 2}, phase=Phase.PENDING, created=2.0)
    runs = aged(job("a", "q1", tasks=4, gpu=1, on="n1"), LONG_AGO)
    snapshot = scene(large, small, runs, queues=(gpus("q1", 8), queue("q2")))

    assert binds(run(snapshot, VOLCANO)) == {}
    assert binds(run(snapshot, FUMAROLE)) == {"small-0": "n1"}


def test_6_a_large_gang_gets_its_nodes_in_the_future():
    """A pod that would stay for longer than it takes until the gang has room does not start."""
    snapshot = test_future_places.scene(70.0)

    assert sorted(binds(run(snapshot, VOLCANO))) == ["short-0"]
    assert sorted(binds(run(snapshot, FUMAROLE))) == []


def test_7_pods_without_gpus_go_to_nodes_without_gpus():
    snapshot = cluster(
        nodes=[node("cpu-1", cpu=8), node("gpu-1", cpu=8, gpu=4)],
        queues=[queue("root"), queue("q1")],
        jobs=[job("a", "q1", cpu=2, gpu=1, on="gpu-1"), job("report", "q1", cpu=2)],
    )

    assert binds(run(snapshot, VOLCANO)) == {"report-0": "gpu-1"}
    assert binds(run(snapshot, FUMAROLE)) == {"report-0": "cpu-1"}


def test_8_a_cluster_on_which_nothing_changes_comes_to_rest():
    """Each queue is short of one resource and has too much of the other."""
    queues = (
        queue("q1", deserved={"gpu": 6, "cpu": 2}),
        queue("q2", deserved={"gpu": 2, "cpu": 6}),
    )
    jobs = [
        aged(job("a", "q1", tasks=4, min=4, gpu=1, cpu=1, on="n1"), LONG_AGO),
        aged(job("b", "q2", tasks=4, min=4, gpu=1, cpu=1, on="n1"), LONG_AGO),
        job("c", "q1", tasks=2, gpu=1, cpu=1),
        job("d", "q2", tasks=2, gpu=1, cpu=1),
    ]
    frozen = cluster_of(scene(*jobs, queues=queues))

    assert run_to_rest(frozen, VOLCANO, 40).after is None
    assert run_to_rest(frozen, FUMAROLE, 40).after <= 10


def test_9_a_guarantee_is_met_at_once():
    """The GPUs that q2 is guaranteed run a gang that just started, and would be free soon."""
    queues = (gpus("q1", 4), queue("q2", deserved={"gpu": 4}, guarantee={"gpu": 4}))
    busy = aged(job("a", "q1", tasks=8, min=4, gpu=1, on="n1", expected_seconds=100.0), 5)
    snapshot = scene(busy, job("c", "q2", tasks=4, gpu=1), queues=queues)

    outcome = run(snapshot, FUMAROLE)

    assert len(evicted(outcome)) == 4
    assert len(waiting(outcome)) == 4
