"""Clusters that several worked examples run on."""

from __future__ import annotations

from scheduler.domain.workloads import Phase
from tests.engine.builders import cluster, job, node, queue


def tree(jobs, a1=0):
    return cluster(
        nodes=[node("n1", cpu=16)],
        queues=[
            queue("root"),
            queue("a", deserved=8, guarantee=4),
            queue("a1", parent="a", deserved=5, guarantee=2),
            queue("a2", parent="a", deserved=3),
            queue("b", deserved=8),
            queue("b1", parent="b", deserved=8),
        ],
        jobs=jobs,
    )


FULL_TREE = (
    job("B", "a2", tasks=6, min=0, cpu=1, on="n1"),
    job("C", "b1", tasks=10, min=0, cpu=1, on="n1"),
)


def guaranteed(guarantee=2, j2_min=7, **new):
    return cluster(
        nodes=[node("n1", cpu=10)],
        queues=[queue("q1"), queue("q6", guarantee=guarantee)],
        jobs=[
            job("j1", "q1", tasks=3, cpu=1, on="n1"),
            job("j2", "q1", tasks=7, min=j2_min, cpu=1, on="n1"),
            job(
                "j6",
                "q6",
                phase=Phase.PENDING,
                tasks=guarantee,
                cpu=1,
                min_resources=guarantee,
                **new,
            ),
        ],
    )
