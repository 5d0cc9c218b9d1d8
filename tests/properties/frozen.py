"""Random frozen clusters: nodes with GPUs, queues in a tree, and gangs of which some run."""

from __future__ import annotations

from hypothesis import strategies as some

from tests.engine.builders import cluster, job, node, queue
from tests.engine.scenes import NOW, aged

LEAVES = ("q1", "q2", "q3", "q4")


@some.composite
def frozen_clusters(draw, most_gangs=10):
    """Some queues have guarantees, some gangs lost members with a node, some pods ask for cores."""
    nodes = [
        node(f"n{number}", cpu=8, gpu=draw(some.sampled_from([2, 4, 8])))
        for number in range(draw(some.integers(1, 4)))
    ]
    free = {found.name: found.allocatable["nvidia.com/gpu"] // 1000 for found in nodes}
    cores = {found.name: 8 for found in nodes}
    jobs = []
    for number in range(draw(some.integers(1, most_gangs))):
        jobs.append(_gang(draw, f"j{number}", free, cores))
    return cluster(nodes=nodes, queues=_queues(draw), jobs=jobs, taken_at=NOW)


def _queues(draw):
    due = [{"gpu": draw(some.integers(0, 6)), "cpu": draw(some.integers(0, 6))} for _ in LEAVES]
    guaranteed = [{"gpu": min(share["gpu"], draw(some.integers(0, 2)))} for share in due]
    above = {name: due[0][name] + due[1][name] for name in ("gpu", "cpu")}
    parents = ("t1", "t1", "root", "root")
    leaves = [
        queue(name, parent=parent, deserved=share, guarantee=least)
        for name, parent, share, least in zip(LEAVES, parents, due, guaranteed, strict=True)
    ]
    return [queue("root"), queue("t1", deserved=above), *leaves]


def _gang(draw, name, free, cores):
    tasks = draw(some.integers(1, 3))
    gpu = draw(some.integers(1, 3))
    cpu = draw(some.integers(0, 2)) or None
    work = job(
        name,
        draw(some.sampled_from(LEAVES)),
        tasks=tasks,
        min=draw(some.integers(1, tasks)),
        gpu=gpu,
        cpu=cpu,
        on=_places(draw, free, cores, tasks, gpu, cpu or 0),
        priority=draw(some.integers(0, 2)),
    )
    return aged(work, draw(some.integers(0, 500)))


def _places(draw, free, cores, tasks, gpu, cpu):
    """None of its pods run, or all of them, or some."""
    wanted = draw(some.sampled_from([0, tasks, tasks, draw(some.integers(0, tasks))]))
    places = [""] * tasks
    for number in range(wanted):
        fitting = [name for name in free if free[name] >= gpu and cores[name] >= cpu]
        if not fitting:
            return places
        free[fitting[0]] -= gpu
        cores[fitting[0]] -= cpu
        places[number] = fitting[0]
    return places
