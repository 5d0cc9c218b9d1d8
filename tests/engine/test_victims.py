"""Who has to go, and that nobody has to go twice."""

from __future__ import annotations

from dataclasses import replace

from tests.engine.builders import CAPACITY, amounts, cluster, evicted, job, node, queue, run, waiting


def _mixed_gang(name, queue_name, *cores):
    """A gang with one pod for each of these sizes."""
    work = job(name, queue_name, tasks=len(cores), cpu=1)
    pods = tuple(replace(pod, request=amounts(cpu=size)) for pod, size in zip(work.pods, cores, strict=True))
    return replace(work, pods=pods)


def _reclaim(*others):
    """q1 has all of n1 and n2, with pods that would go in the order run-3 (n1), run-2 and run-1 (n2), run-0 (n1); n3 is out of reach."""
    running = job("run", "q1", tasks=4, min=0, cpu=1, on=["n1", "n2", "n2", "n1"], created=1.0)
    kept = job("kept", "q3", cpu=8, on="n3")
    queues = [queue("q1"), queue("q2", deserved=5), queue("q3", reclaimable=False)]
    nodes = [node("n1", cpu=2), node("n2", cpu=2), node("n3", cpu=8), node("n4", cpu=2)]
    return run(cluster(nodes=nodes, queues=queues, jobs=[running, kept, *others, _mixed_gang("train", "q2", 2, 1, 2)]), CAPACITY)


def test_a_pod_that_made_room_for_one_member_makes_none_for_another():
    """The first member finds room on n2, the second takes a pod of n1; for the third n1 is one core short, whoever was counted there."""
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
