"""Clusters of any size for the benchmarks: the same numbers give the same cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from scheduler.domain.nodes import Node
from scheduler.domain.queues import QueueSpec
from scheduler.domain.resources import Resources
from scheduler.domain.snapshot import Queue
from scheduler.domain.workloads import Phase, Pod, PodGroup, PodStatus
from scheduler.scenarios.clusters import Cluster

GIB = 2**30
NODE = Resources({"cpu": 64_000, "memory": 256 * GIB, "nvidia.com/gpu": 8_000, "pods": 110})
ONE_GPU = Resources({"cpu": 4_000, "memory": 16 * GIB, "nvidia.com/gpu": 1_000})
SHAPES = [
    (cpu, memory, gpu)
    for cpu, memory in ((1, 2), (1, 4), (2, 4), (2, 8), (4, 8))
    for gpu in (0, 0, 0, 1)
]


@dataclass(frozen=True)
class Size:
    """How large a cluster is.

    `gangs` is the largest gang; `fullness` scales what running pods take, 1.0 fills every node.
    """

    nodes: int = 1_000
    pending: int = 1_000
    running: int = 10_000
    queues: int = 100
    largest_gang: int = 64
    seed: int = 1

    def times(self, **factors: float) -> Size:
        return replace(
            self,
            **{name: max(1, int(getattr(self, name) * factor)) for name, factor in factors.items()},
        )


def queue_tree(count: int, random: Random) -> tuple[list[Queue], list[str]]:
    """A tree of three levels with `count` queues besides root, only weights; and its leaves."""
    departments = max(1, round(count**0.5))
    specs = [
        QueueSpec(f"dep-{number:04}", weight=random.randint(1, 5)) for number in range(departments)
    ]
    leaves = [
        QueueSpec(
            f"team-{number:05}",
            parent=f"dep-{number % departments:04}",
            weight=random.randint(1, 5),
        )
        for number in range(max(1, count - departments))
    ]
    return [Queue(spec) for spec in (QueueSpec("root", parent=""), *specs, *leaves)], [
        leaf.name for leaf in leaves
    ]


def request(random: Random, crowd: int = 1) -> Resources:
    """What a pod asks for.

    Where many share a node (`crowd`), a fraction of it and no GPU, so that no node is over-full.
    """
    cpu, memory, gpu = random.choice(SHAPES)
    amounts = {"cpu": cpu * 1000 // crowd, "memory": memory * GIB // crowd}
    return Resources({**amounts, "nvidia.com/gpu": gpu * 1000} if gpu and crowd == 1 else amounts)


def roomy(size: Size) -> Cluster:
    """The scenario of the aims: gangs of 1 to `largest_gang` wait, running pods are spread over the
    nodes, and there is room.
    """
    random = Random(size.seed)
    queues, leaves = queue_tree(size.queues, random)
    nodes = tuple(Node(f"n-{number:05}", NODE) for number in range(size.nodes))
    running_groups, running_pods = _running(size, random, leaves)
    pending_groups, pending_pods = _pending(size, random, leaves)
    return Cluster(
        nodes,
        tuple(queues),
        (*running_groups, *pending_groups),
        (*running_pods, *pending_pods),
        session=10,
    )


def _running(size: Size, random: Random, leaves: list[str]) -> tuple[list[PodGroup], list[Pod]]:
    groups: list[PodGroup] = []
    pods: list[Pod] = []
    crowd = max(1, size.running // (10 * size.nodes))
    while len(pods) < size.running:
        members = min(random.randint(1, 16), size.running - len(pods))
        group = PodGroup(
            f"run-{len(groups):06}",
            random.choice(leaves),
            "bench",
            members,
            phase=Phase.RUNNING,
            created=float(len(groups)),
        )
        wants = request(random, crowd)
        groups.append(group)
        for member in range(members):
            node = f"n-{(len(pods) * 7919) % size.nodes:05}"
            pods.append(
                Pod(
                    f"{group.name}-{member}",
                    group.key,
                    "bench",
                    wants,
                    node,
                    PodStatus.RUNNING,
                    priority=1,
                    created=group.created,
                )
            )
    return groups, pods


def _pending(size: Size, random: Random, leaves: list[str]) -> tuple[list[PodGroup], list[Pod]]:
    groups: list[PodGroup] = []
    pods: list[Pod] = []
    while len(pods) < size.pending:
        members = min(random.randint(1, size.largest_gang), size.pending - len(pods))
        wants = request(random)
        created = 1e6 + len(groups)
        group = PodGroup(
            f"new-{len(groups):06}",
            random.choice(leaves),
            "bench",
            members,
            min_resources=wants * members,
            created=created,
        )
        groups.append(group)
        pods.extend(
            Pod(f"{group.name}-{member}", group.key, "bench", wants, priority=1, created=created)
            for member in range(members)
        )
    return groups, pods


def contended(size: Size, *, admitted: bool = False) -> Cluster:
    """Every node is full.

    One gang of `largest_gang` in a queue that has nothing yet asks for what it deserves.
    """
    random = Random(size.seed)
    queues, leaves = queue_tree(size.queues, random)
    nodes = tuple(Node(f"n-{number:05}", NODE) for number in range(size.nodes))
    groups, pods = _filling(size, leaves[1:])
    wants = _filling_request(size)
    phase = Phase.INQUEUE if admitted else Phase.PENDING
    group = PodGroup(
        "claim",
        leaves[0],
        "bench",
        size.largest_gang,
        min_resources=wants * size.largest_gang,
        created=1e6,
        phase=phase,
    )
    claim = [
        Pod(f"claim-{member}", group.key, "bench", wants, priority=1, created=1e6)
        for member in range(size.largest_gang)
    ]
    return Cluster(nodes, tuple(queues), (*groups, group), (*pods, *claim), session=10)


def _filling_request(size: Size) -> Resources:
    per_node = max(1, size.running // size.nodes)
    return Resources({"cpu": NODE["cpu"] // per_node, "memory": NODE["memory"] // per_node})


def _filling(size: Size, leaves: list[str]) -> tuple[list[PodGroup], list[Pod]]:
    """Jobs of eight that need only four: the other half is surplus, which reclaim may take without
    breaking a gang.
    """
    wants = _filling_request(size)
    groups = [
        PodGroup(
            f"run-{number:06}",
            leaves[number % len(leaves)],
            "bench",
            4,
            min_resources=wants * 4,
            phase=Phase.RUNNING,
            created=float(number),
        )
        for number in range(size.running // 8)
    ]
    pods = [
        Pod(
            f"{group.name}-{member}",
            group.key,
            "bench",
            wants,
            f"n-{(number * 8 + member) % size.nodes:05}",
            PodStatus.RUNNING,
            priority=1,
        )
        for number, group in enumerate(groups)
        for member in range(8)
    ]
    return groups, pods


def busy(size: Size, kind: str) -> Cluster:
    """A cluster that gives one action its work: see `_BUSY`."""
    return _BUSY[kind](size)


def _admitted(size: Size) -> Cluster:
    """Everything that waits is already admitted."""
    cluster = roomy(size)
    groups = tuple(
        replace(group, phase=Phase.INQUEUE) if group.phase is Phase.PENDING else group
        for group in cluster.podgroups
    )
    return replace(cluster, podgroups=groups)


def _urgent(size: Size) -> Cluster:
    """Full nodes; in every tenth team a job of high priority waits for one pod."""
    full = contended(size, admitted=True)
    leaves = sorted({group.queue for group in full.podgroups})[::10]
    wants = _filling_request(size)
    groups = [
        PodGroup(f"urgent-{leaf}", leaf, "bench", 1, phase=Phase.INQUEUE, priority=100, created=2e6)
        for leaf in leaves
    ]
    pods = [Pod(f"{group.name}-0", group.key, "bench", wants, priority=100) for group in groups]
    return replace(full, podgroups=(*full.podgroups, *groups), pods=(*full.pods, *pods))


def _rush(size: Size) -> Cluster:
    """Full nodes.

    In every team gangs of two with high priority wait, as many as there are nodes, of many shapes.
    """
    full = contended(size, admitted=True)
    leaves = [queue.name for queue in full.queues if queue.name.startswith("team")]
    groups, pods = _gangs("rush", size.nodes, 2, leaves, priority=100)
    return replace(full, podgroups=(*full.podgroups, *groups), pods=(*full.pods, *pods))


def _gangs(
    name: str, count: int, members: int, leaves: list[str], *, priority: int = 0, cores: int = 3
) -> tuple[list[PodGroup], list[Pod]]:
    """Gangs that are admitted, leaf after leaf, each of one of 35 shapes: up to 7 x `cores` and 5
    GiB a pod.
    """
    groups = [
        PodGroup(
            f"{name}-{number:05}",
            leaves[number % len(leaves)],
            "bench",
            members,
            phase=Phase.INQUEUE,
            priority=priority,
            created=2e6 + number,
        )
        for number in range(count)
    ]
    wants = [
        Resources({"cpu": (number % 7 + 1) * cores * 1000, "memory": (number % 5 + 1) * GIB})
        for number in range(count)
    ]
    pods = [
        Pod(f"{group.name}-{member}", group.key, "bench", wants[number], priority=max(1, priority))
        for number, group in enumerate(groups)
        for member in range(members)
    ]
    return groups, pods


def _hopeless(size: Size) -> Cluster:
    """Room for everybody but gangs, ten for each node, whose pods are larger than any node."""
    cluster = roomy(size)
    leaves = [queue.name for queue in cluster.queues if queue.name.startswith("team")]
    groups, pods = _gangs("never", size.nodes * 10, 2, leaves, cores=65)
    return replace(cluster, podgroups=(*cluster.podgroups, *groups), pods=(*cluster.pods, *pods))


def _starving(size: Size) -> Cluster:
    """Full nodes; every tenth running job is one pod short of its gang, and has been for long."""
    full = contended(size)
    short = {group.key for group in full.podgroups[::10] if group.phase is Phase.RUNNING}
    groups = tuple(
        replace(group, min_member=9, starving_since=1) if group.key in short else group
        for group in full.podgroups
    )
    return replace(full, podgroups=groups)


def _everybody(size: Size) -> Cluster:
    """Full nodes.

    In every team gangs of four wait, as many as there are nodes in five, of many shapes.
    """
    full = contended(size)
    leaves = [queue.name for queue in full.queues if queue.name.startswith("team")]
    groups, pods = _gangs("ask", size.nodes // 5, 4, leaves)
    return replace(full, podgroups=(*full.podgroups, *groups), pods=(*full.pods, *pods))


def takers(kind: str, scale: float = 1.0) -> Cluster:
    """50 gangs of 8 pods with a GPU each, against 4,000 such pods that fill 500 nodes.

    `reclaim`: the gangs are of a queue that has nothing of what it deserves, and the running pods
    of one that has everything. `preempt`: all are of one queue, and the gangs come first.
    """
    nodes = tuple(Node(f"n-{number:05}", NODE) for number in range(int(500 * scale)))
    half = NODE * (len(nodes) // 2)
    queues = (
        Queue(QueueSpec("root", parent="")),
        Queue(QueueSpec("owner", deserved=half)),
        Queue(QueueSpec("borrower", deserved=half)),
    )
    running_groups, running_pods = _elastic_jobs(int(40 * scale), len(nodes))
    queue = "owner" if kind == "reclaim" else "borrower"
    priority = 0 if kind == "reclaim" else 100
    groups, pods = _gangs_of_eight(int(50 * scale), queue, priority)
    return Cluster(nodes, queues, (*running_groups, *groups), (*running_pods, *pods), session=10)


def _elastic_jobs(count: int, nodes: int) -> tuple[list[PodGroup], list[Pod]]:
    """Jobs of 100 pods that need one of them, spread over all nodes."""
    groups: list[PodGroup] = []
    pods: list[Pod] = []
    for number in range(count):
        group = PodGroup(
            f"run-{number:05}",
            "borrower",
            "bench",
            1,
            min_resources=ONE_GPU,
            phase=Phase.RUNNING,
            created=float(number),
        )
        groups.append(group)
        for member in range(100):
            node = f"n-{len(pods) % nodes:05}"
            name = f"{group.name}-{member}"
            pods.append(
                Pod(
                    name,
                    group.key,
                    "bench",
                    ONE_GPU,
                    node,
                    PodStatus.RUNNING,
                    created=group.created,
                )
            )
    return groups, pods


def _gangs_of_eight(count: int, queue: str, priority: int) -> tuple[list[PodGroup], list[Pod]]:
    groups: list[PodGroup] = []
    pods: list[Pod] = []
    for number in range(count):
        created = 1e6 + number
        group = PodGroup(
            f"ask-{number:05}",
            queue,
            "bench",
            8,
            min_resources=ONE_GPU * 8,
            phase=Phase.INQUEUE,
            priority=priority,
            created=created,
        )
        groups.append(group)
        for member in range(8):
            name = f"{group.name}-{member}"
            pods.append(Pod(name, group.key, "bench", ONE_GPU, priority=priority, created=created))
    return groups, pods


def singles(scale: float = 1.0, queues: int = 1, shapes: int = 1) -> Cluster:
    """10,000 pods with a GPU each, every one a job of its own, and 5,000 empty nodes."""
    nodes = tuple(Node(f"n-{number:05}", NODE) for number in range(int(5_000 * scale)))
    specs = [QueueSpec("root", parent="")]
    specs.extend(QueueSpec(f"team-{number:03}") for number in range(queues))
    groups: list[PodGroup] = []
    pods: list[Pod] = []
    for number in range(int(10_000 * scale)):
        wants = ONE_GPU + Resources({"cpu": 1_000 * (number % shapes)})
        group = PodGroup(
            f"one-{number:05}",
            f"team-{number % queues:03}",
            "bench",
            1,
            min_resources=wants,
            created=1e6 + number,
        )
        groups.append(group)
        pods.append(Pod(f"{group.name}-0", group.key, "bench", wants, created=group.created))
    return Cluster(nodes, tuple(map(Queue, specs)), tuple(groups), tuple(pods), session=10)


def _undemanding(size: Size) -> Cluster:
    """What waits asks for nothing but a place."""
    cluster = _admitted(size)
    pods = tuple(replace(pod, request=Resources()) if not pod.node else pod for pod in cluster.pods)
    return replace(cluster, pods=pods)


_BUSY = {
    "admitted": _admitted,
    "preempt": _urgent,
    "rush": _rush,
    "starving": _starving,
    "best-effort": _undemanding,
    "everybody": _everybody,
    "hopeless": _hopeless,
}
