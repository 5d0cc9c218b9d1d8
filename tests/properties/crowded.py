"""Full clusters as scenario files: teams with more than their due, and gangs that want theirs.

Made anew from a number, in the options of the scenarios that Volcano was watched on.
"""

from __future__ import annotations

from random import Random
from typing import Any

Scenario = dict[str, Any]

PROPORTION = {
    "actions": "enqueue, allocate, preempt, reclaim, shed, backfill",
    "tiers": [
        [{"name": "priority"}, {"name": "gang"}, {"name": "conformance"}],
        [
            {"name": name}
            for name in ("overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack")
        ],
    ],
}


def amounts(cpu: int, memory: int) -> dict[str, str]:
    return {"cpu": str(cpu), "memory": f"{memory}Gi"}


def crowded(seed: int, conf: Scenario | None = None) -> Scenario:
    """One scenario; without `conf` it runs with the default policy."""
    random = Random(seed)
    nodes = [_node(random, number) for number in range(random.randint(1, 3))]
    queues = list(_queues(random, sum(int(node["allocatable"]["cpu"]) for node in nodes)))
    leaves = [
        queue["name"]
        for queue in queues
        if not any(other.get("parent") == queue["name"] for other in queues)
    ]
    running, placed = _running(random, nodes, leaves)
    new, wanted = _new(random, nodes, leaves)
    scenario: Scenario = {
        "name": f"crowded {seed}",
        "nodes": nodes,
        "queues": queues,
        "podgroups": running + new,
        "pods": placed + wanted,
    }
    scenario["priorityClasses"] = [{"name": "low", "value": 10}, {"name": "high", "value": 100}]
    return scenario if conf is None else {**scenario, "conf": conf}


def _node(random: Random, number: int) -> Scenario:
    cpu = random.randint(6, 16)
    return {
        "name": f"n{number}",
        "labels": {"host": f"n{number}"},
        "allocatable": {**amounts(cpu, 3 * cpu), "pods": "110"},
    }


def _queues(random: Random, total: int) -> list[Scenario]:
    """Two or three teams that divide the cluster, some of them into smaller ones."""
    queues: list[Scenario] = []
    for team in "abc"[: random.randint(2, 3)]:
        due = random.randint(2, max(2, total // 3))
        queues.append(
            {"name": team, "deserved": amounts(due, 3 * due), "reclaimable": random.random() < 0.9}
        )
        if due >= 4 and random.random() < 0.6:
            half = amounts(due // 2, 3 * (due // 2))
            queues.extend(
                {
                    "name": f"{team}-{part}",
                    "parent": team,
                    "deserved": half,
                    "priority": random.choice((0, 0, 2)),
                }
                for part in "ab"
            )
    return queues


def _running(
    random: Random,
    nodes: list[Scenario],
    leaves: list[str],
) -> tuple[list[Scenario], list[Scenario]]:
    """Jobs until nothing more fits."""
    free = {
        node["name"]: [int(node["allocatable"]["cpu"]), 3 * int(node["allocatable"]["cpu"])]
        for node in nodes
    }
    groups = list[Scenario]()
    pods = list[Scenario]()
    for number in range(12):
        cpu = random.randint(1, 3)
        memory = random.randint(1, 6)
        mine: list[Scenario] = []
        for member in range(random.randint(1, 4)):
            fitting = [name for name, room in free.items() if room[0] >= cpu and room[1] >= memory]
            if fitting:
                place = random.choice(fitting)
                free[place] = [free[place][0] - cpu, free[place][1] - memory]
                pod = _pod(f"run{number}", member, cpu, memory)
                mine.append(
                    {**pod, "node": place, "phase": "Running", "preemptable": random.random() < 0.9}
                )
        minimum = random.choice((0, 0, 1, len(mine)))
        if mine:
            groups.append(
                {
                    "name": f"run{number}",
                    "queue": random.choice(leaves),
                    "minMember": minimum,
                    "phase": "Running",
                }
            )
            groups[-1]["priorityClassName"] = random.choice(("low", "high"))
            pods.extend(mine)
    return groups, pods


def _new(
    random: Random,
    nodes: list[Scenario],
    leaves: list[str],
) -> tuple[list[Scenario], list[Scenario]]:
    groups = list[Scenario]()
    pods = list[Scenario]()
    for number in range(random.randint(1, 5)):
        size = random.choice((1, 1, 2, 3))
        cpu = random.randint(1, 4)
        memory = random.randint(1, 8)
        groups.append(
            {
                "name": f"new{number}",
                "queue": random.choice(leaves),
                "minMember": size,
                "priorityClassName": "high",
            }
        )
        bound = (
            {"nodeSelector": {"host": random.choice(nodes)["name"]}}
            if random.random() < 0.3
            else {}
        )
        pods.extend(
            {**_pod(f"new{number}", member, cpu, memory), **bound} for member in range(size)
        )
    return groups, pods


def _pod(group: str, member: int, cpu: int, memory: int) -> Scenario:
    return {"name": f"{group}-p{member}", "podgroup": group, "requests": amounts(cpu, memory)}
