"""Who has to go, and that nobody has to go twice."""

from __future__ import annotations

from dataclasses import replace

from scheduler.engine.policy import Flag, PluginConfig
from tests.engine.builders import (
    CAPACITY,
    GPU,
    amounts,
    binds,
    cluster,
    evicted,
    job,
    node,
    policy,
    queue,
    run,
    waiting,
    with_actions,
)


def _mixed_gang(name, queue_name, *cores):
    """A gang with one pod for each of these sizes."""
    work = job(name, queue_name, tasks=len(cores), cpu=1)
    pods = tuple(
        replace(pod, request=amounts(cpu=size)) for pod, size in zip(work.pods, cores, strict=True)
    )
    return replace(work, pods=pods)


def _reclaim(*others):
    """q1 has all of n1 and n2, with pods that would go in the order run-3 (n1), run-2 and run-1
    (n2), run-0 (n1); n3 is out of reach.
    """
    running = job("run", "q1", tasks=4, min=0, cpu=1, on=["n1", "n2", "n2", "n1"], created=1.0)
    kept = job("kept", "q3", cpu=8, on="n3")
    queues = [queue("q1"), queue("q2", deserved=5), queue("q3", reclaimable=False)]
    nodes = [node("n1", cpu=2), node("n2", cpu=2), node("n3", cpu=8), node("n4", cpu=2)]
    return run(
        cluster(
            nodes=nodes,
            queues=queues,
            jobs=[running, kept, *others, _mixed_gang("train", "q2", 2, 1, 2)],
        ),
        CAPACITY,
    )


def test_a_pod_that_made_room_for_one_member_makes_none_for_another():
    """The first member finds room on n2, the second takes a pod of n1.

    For the third n1 is one core short, whoever was counted there.
    """
    outcome = _reclaim(job("other", "q3", cpu=2, on="n4"))

    assert (evicted(outcome), waiting(outcome)) == ([], {})


def test_members_of_different_sizes_take_different_victims():
    outcome = _reclaim(job("more", "q1", tasks=2, min=0, cpu=1, on="n4", priority=1))

    assert evicted(outcome) == ["run-2", "run-1", "run-3", "more-1", "more-0"]
    assert waiting(outcome) == {"train-0": "n2", "train-1": "n1", "train-2": "n4"}


def test_a_queue_that_was_spared_on_one_node_may_still_lose_on_another():
    """On n1 three of q1 would have to go, one more than it can spare; on n2 two are enough."""
    running = job("run", "q1", tasks=6, min=0, cpu=1, on=["n2", "n2", "n2", "n1", "n1", "n1"])
    snapshot = cluster(
        nodes=[node("n1", cpu=3), node("n2", cpu=4)],
        queues=[queue("q1", deserved=4), queue("q2", deserved=3)],
        jobs=[running, job("train", "q2", cpu=3)],
    )

    outcome = run(snapshot, CAPACITY)

    assert evicted(outcome) == ["run-2", "run-1"]
    assert waiting(outcome) == {"train-0": "n2"}


def test_a_queue_with_just_its_due_of_one_resource_is_spared_there_where_others_can_go():
    """q1 has two cores too many and exactly its memory: the pod without memory goes, though by rank
    it would be the last.
    """
    lean = job("lean", "q1", min=0, cpu=2, on="n1", priority=1)
    broad = job("broad", "q1", tasks=2, min=0, cpu=2, memory="4Gi", on="n1")
    snapshot = cluster(
        nodes=[node("n1", cpu=6)],
        queues=[
            queue("q1", deserved={"cpu": 4, "memory": "8Gi"}),
            queue("q2", deserved={"cpu": 2, "memory": "8Gi"}),
        ],
        jobs=[lean, broad, job("train", "q2", cpu=2, memory="4Gi")],
    )

    assert evicted(run(snapshot, CAPACITY)) == ["lean-0"]


def test_each_pod_of_a_gang_takes_from_the_queue_that_has_most_by_then():
    """q1 is at four times its deserved and q2 at three.

    When the first victim is gone both are at three.
    """
    runs = [
        job("a", "q1", tasks=4, min=0, cpu=1, on="n1"),
        job("b", "q2", tasks=3, min=0, cpu=1, on="n1"),
    ]
    queues = [queue("q1", deserved=1), queue("q2", deserved=1), queue("q3", deserved=4)]
    snapshot = cluster(
        nodes=[node("n1", cpu=7)], queues=queues, jobs=[*runs, job("train", "q3", tasks=2, cpu=1)]
    )

    assert evicted(run(snapshot, CAPACITY)) == ["a-3", "b-2"]


def test_a_job_that_has_lost_its_gang_is_taken_from_last():
    """Where gangs are not spared: ready jobs go before a job that is no longer ready, so the second
    victim is of the other job.
    """
    loose = policy(
        "allocate preempt",
        ["priority", PluginConfig("gang", {Flag.PREEMPTABLE: False})],
        ["predicates", "proportion"],
    )
    runs = [job(name, "q1", tasks=2, cpu=2, on="n1") for name in ("one", "two")]
    snapshot = cluster(
        nodes=[node("n1", cpu=8)],
        queues=[queue("q1")],
        jobs=[*runs, job("high", "q1", tasks=2, cpu=2, priority=5)],
    )

    assert evicted(run(snapshot, loose)) == ["two-1", "one-1"]


def test_as_long_as_the_node_is_short_whoever_is_next_has_to_go():
    """As in Volcano: the pod without a device comes first in the order, and only then the one whose
    device is needed.
    """
    works = [
        job("a", "q1", min=0, cpu=1, gpu=1, on="n1"),
        job("b", "q1", min=0, cpu=1, on="n1"),
        job("train", "q2", cpu=1, gpu=1),
    ]
    queues = [queue("q1"), queue("q2", deserved={"cpu": 2, "gpu": 1})]
    snapshot = cluster(nodes=[node("n1", cpu=8, **{GPU: 1})], queues=queues, jobs=works)

    assert evicted(run(snapshot, CAPACITY)) == ["b-0", "a-0"]


RECLAIM_FIRST = with_actions(CAPACITY, "enqueue reclaim allocate")


def _asks_beside(*runs):
    queues = [queue("q1"), queue("q2", deserved=2)]
    nodes = [node("n1", cpu=2), node("n2", cpu=2)]
    return run(
        cluster(nodes=nodes, queues=queues, jobs=[*runs, job("train", "q2", cpu=1)]), RECLAIM_FIRST
    )


def test_reclaim_before_allocate_keeps_idle_room_beside_pods_that_it_could_have_reclaimed():
    """As in Volcano: the pod waits there until the next session, and nobody has to go."""
    outcome = _asks_beside(job("one", "q1", cpu=1, on="n1"), job("two", "q1", cpu=2, on="n2"))

    assert (evicted(outcome), waiting(outcome), binds(outcome)) == ([], {"train-0": "n1"}, {})


def test_reclaim_before_allocate_leaves_an_empty_node_to_allocate():
    """Unlike Volcano, which would look only at the node that is full, and evict there."""
    outcome = _asks_beside(job("two", "q1", cpu=2, on="n2"))

    assert (evicted(outcome), waiting(outcome), binds(outcome)) == ([], {}, {"train-0": "n1"})


def test_preempt_makes_room_on_the_node_that_suits_the_pod_best():
    """b comes before a in the order of victims, but n1 with its idle cores scores higher: as in
    Volcano a goes.
    """
    packing = policy(
        "allocate preempt", ["priority", "gang"], ["predicates", "proportion", "binpack"]
    )
    lower = [job("a", "q1", min=0, cpu=2, on="n1"), job("b", "q1", tasks=2, min=0, cpu=2, on="n2")]
    nodes = [node("n1", cpu=4), node("n2", cpu=4)]
    outcome = run(
        cluster(
            nodes=nodes,
            queues=[queue("q1")],
            jobs=[*lower, job("high", "q1", tasks=2, cpu=2, priority=5)],
        ),
        packing,
    )

    assert evicted(outcome) == ["a-0"]
    assert waiting(outcome) == {"high-0": "n1", "high-1": "n1"}


def test_preempt_takes_the_lowest_victims_where_nodes_suit_alike():
    plain = policy("allocate preempt", ["priority", "gang"], ["predicates", "proportion"])
    lower = [job("a", "q1", min=0, cpu=4, on="n1"), job("b", "q1", min=0, cpu=4, on="n2")]
    nodes = [node("n1", cpu=4), node("n2", cpu=4)]
    outcome = run(
        cluster(
            nodes=nodes, queues=[queue("q1")], jobs=[*lower, job("high", "q1", cpu=2, priority=5)]
        ),
        plain,
    )

    assert (evicted(outcome), waiting(outcome)) == (["b-0"], {"high-0": "n2"})
