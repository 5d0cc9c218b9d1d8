"""The same session the straightforward way: an object for every pod, node, job and queue, one
question at a time.

This is what a competent person would write first: sums are kept up to date, nothing is sorted or
copied twice, and each pod looks at each node. It knows the default policy's enqueue and allocate,
which do all the work as long as there is room; a test holds its placements against the engine's.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from fractions import Fraction

from scheduler.domain.nodes import Node
from scheduler.domain.queues import ROOT, QueueSpec
from scheduler.domain.resources import Resources, total
from scheduler.domain.workloads import Phase, Pod, PodGroup, PodStatus
from scheduler.scenarios.clusters import Cluster

OVERCOMMIT = Fraction(6, 5)
UNLIMITED = 2**62
DEVICE = "nvidia.com/gpu"


class TwinPod:
    def __init__(self, pod: Pod) -> None:
        self.key, self.podgroup, self.node = pod.key, pod.podgroup, pod.node
        self.status = pod.status
        self.request = dict(pod.request + Resources({"pods": 1}))
        self.order = (-pod.priority, _ordinal(pod.name), pod.created, pod.key)

    @property
    def holds_room(self) -> bool:
        return self.status in (PodStatus.BINDING, PodStatus.BOUND, PodStatus.RUNNING)


def _ordinal(name: str) -> int:
    parts = name.split("-")
    return int(parts[-1]) if len(parts) >= 3 and parts[-1].isdecimal() else -1


class TwinNode:
    def __init__(self, node: Node) -> None:
        self.name = node.name
        self.allocatable = dict(node.allocatable)
        self.used: dict[str, int] = defaultdict(int)

    def fits(self, pod: TwinPod) -> bool:
        return all(
            self.used[name] + amount <= self.allocatable.get(name, 0)
            for name, amount in pod.request.items()
        )

    def score(self, pod: TwinPod) -> float:
        """nodeorder (how the balance changes) and binpack, as the default policy weighs them."""
        weighed = ["cpu", "memory", *([DEVICE] if pod.request.get(DEVICE, 0) > 0 else [])]
        after = {name: self._filled(name, pod.request.get(name, 0)) for name in weighed}
        change = (
            _balance(list(after.values()))
            - _balance([self._filled(name, 0) for name in weighed])
            + 100.0
        ) // 2
        asked = [after[name] for name in ("cpu", "memory") if pod.request.get(name, 0) > 0]
        packed = sum(asked, 0.0) * (100.0 / len(asked)) if asked else 0.0
        return change + packed

    def _filled(self, name: str, more: int) -> float:
        allocatable = self.allocatable.get(name, 0)
        return min(1.0, (self.used[name] + more) / allocatable) if allocatable else 1.0

    def take(self, pod: TwinPod) -> None:
        for name, amount in pod.request.items():
            self.used[name] += amount

    def give_back(self, pod: TwinPod) -> None:
        for name, amount in pod.request.items():
            self.used[name] -= amount


def _balance(parts: list[float]) -> float:
    """From how far apart the parts are that are used of each resource."""
    if len(parts) == 2:
        return math.floor((1.0 - abs(parts[0] - parts[1]) / 2) * 100.0)
    mean = sum(parts) / len(parts)
    return math.floor(
        (1.0 - math.sqrt(sum((part - mean) * (part - mean) for part in parts) / len(parts))) * 100.0
    )


class TwinJob:
    def __init__(self, group: PodGroup) -> None:
        self.key, self.queue_name, self.min_member = group.key, group.queue, group.min_member
        self.priority, self.created, self.phase = group.priority, group.created, group.phase
        self.min_resources = None if group.min_resources is None else dict(group.min_resources)
        self.pods: list[TwinPod] = []
        self.waiting: list[TwinPod] = []
        self.ready = 0
        self.allocated: dict[str, int] = defaultdict(int)

    def order(self, cluster_total: dict[str, int]) -> tuple[object, ...]:
        """priority, gang, drf, then age and name."""
        share = max(
            (
                self.allocated[name] / amount
                for name, amount in cluster_total.items()
                if name != "pods" and amount
            ),
            default=0.0,
        )
        return (-self.priority, float(self.ready >= self.min_member), share, self.created, self.key)

    def count(self, pod: TwinPod, sign: int) -> None:
        self.ready += sign
        for name, amount in pod.request.items():
            self.allocated[name] += sign * amount


class TwinQueue:
    def __init__(self, spec: QueueSpec) -> None:
        self.spec, self.name = spec, spec.name
        self.parent: TwinQueue | None = None
        self.children: list[TwinQueue] = []
        self.allocated: dict[str, int] = defaultdict(int)
        self.request: dict[str, int] = defaultdict(int)
        self.inqueue: dict[str, int] = defaultdict(int)
        self.elastic: dict[str, int] = defaultdict(int)
        self.deserved: dict[str, int] = {}
        self.limit: dict[str, int] = {}
        self.jobs: list[tuple[tuple[object, ...], TwinJob]] = []

    def path(self) -> list[TwinQueue]:
        """The queue, then each ancestor up to root."""
        queue: TwinQueue | None = self
        path = []
        while queue is not None:
            path.append(queue)
            queue = queue.parent
        return path

    def share(self) -> float:
        parts = [
            self.allocated[name] / amount
            for name, amount in self.deserved.items()
            if amount > 0 and name != "pods"
        ]
        return max(parts) if parts else 1.0

    def layer(self) -> tuple[object, ...]:
        return (
            -self.spec.priority,
            self.share(),
            float(not any(amount for name, amount in self.deserved.items() if name != "pods")),
        )

    def add(self, amounts: dict[str, int], kept: str, sign: int = 1) -> None:
        for queue in self.path():
            sums = getattr(queue, kept)
            for name, amount in amounts.items():
                sums[name] += sign * amount


def fill(amount: int, rows: list[tuple[int, int, int]]) -> list[int]:
    """Each (weight, floor, ceiling) gets clamp(level x weight, floor, ceiling).

    The level is found by walking the breakpoints.
    """
    rows = [(weight, floor, max(floor, ceiling)) for weight, floor, ceiling in rows]
    floors, ceilings = [floor for _, floor, _ in rows], [ceiling for _, _, ceiling in rows]
    if sum(floors) >= amount:
        return floors
    if sum(ceilings) <= amount:
        return ceilings
    level = _level(amount, rows)
    exact = [
        min(max(level * weight, Fraction(floor)), Fraction(ceiling))
        for weight, floor, ceiling in rows
    ]
    parts = [int(part) for part in exact]
    for index, part in enumerate(exact):
        if sum(parts) < amount and part.denominator != 1:
            parts[index] += 1
    return parts


def _level(amount: int, rows: list[tuple[int, int, int]]) -> Fraction:
    """Between two breakpoints the sum grows evenly with the level."""
    points = sorted(
        {
            Fraction(edge, weight)
            for weight, floor, ceiling in rows
            if weight
            for edge in (floor, ceiling)
        }
    )
    for low, high in zip([Fraction(0), *points], points, strict=False):
        below, above = _filled_to(low, rows), _filled_to(high, rows)
        if below <= amount <= above and above > below:
            return low + (high - low) * (amount - below) / (above - below)
    return points[-1]


def _filled_to(level: Fraction, rows: list[tuple[int, int, int]]) -> Fraction:
    return sum(
        (
            min(max(level * weight, Fraction(floor)), Fraction(ceiling))
            for weight, floor, ceiling in rows
        ),
        Fraction(0),
    )


class Twin:
    """One session over objects; `run` gives pod -> node."""

    def __init__(self, cluster: Cluster) -> None:
        self.nodes = [TwinNode(node) for node in sorted(cluster.nodes, key=lambda node: node.name)]
        self.total = dict(total(node.allocatable for node in cluster.nodes))
        self.queues = {
            queue.name: TwinQueue(queue.spec)
            for queue in sorted(cluster.queues, key=lambda queue: queue.name)
        }
        self.jobs = {group.key: TwinJob(group) for group in cluster.podgroups}
        self.binds: dict[str, str] = {}
        self._hang_up_the_tree()
        self._count_pods(cluster)
        self._count_jobs()
        self._share_out(self.queues[ROOT])

    def _hang_up_the_tree(self) -> None:
        for queue in self.queues.values():
            if queue.name != ROOT:
                queue.parent = self.queues[queue.spec.parent]
                queue.parent.children.append(queue)

    def _count_pods(self, cluster: Cluster) -> None:
        nodes = {node.name: node for node in self.nodes}
        for pod in map(TwinPod, cluster.pods):
            job = self.jobs[pod.podgroup]
            job.pods.append(pod)
            if pod.node:
                nodes[pod.node].take(pod)
            if pod.holds_room:
                job.count(pod, 1)
            if pod.holds_room or pod.status is PodStatus.PENDING:
                self.queues[job.queue_name].add(pod.request, "request")
            if pod.status is PodStatus.PENDING:
                job.waiting.append(pod)

    def _count_jobs(self) -> None:
        for job in self.jobs.values():
            queue = self.queues[job.queue_name]
            job.waiting.sort(key=lambda pod: pod.order)
            queue.add(job.allocated, "allocated")
            least = job.min_resources or {}
            queue.add(
                {
                    name: max(0, amount - least.get(name, 0))
                    for name, amount in job.allocated.items()
                },
                "elastic",
            )
            if job.min_resources and (
                job.phase is Phase.INQUEUE
                or (job.phase is Phase.RUNNING and job.ready >= job.min_member)
            ):
                queue.add(
                    {name: max(0, amount - job.allocated[name]) for name, amount in least.items()},
                    "inqueue",
                )

    def _share_out(self, queue: TwinQueue) -> None:
        """From root down: what each queue may have at most, and what it deserves by weight."""
        if queue.parent is None:
            queue.limit, queue.deserved = dict(self.total), dict(self.total)
        for name in self.total:
            guarantees = [child.spec.guarantee.amount(name) for child in queue.children]
            beyond = max(0, queue.limit[name] - sum(guarantees))
            for child, guarantee in zip(queue.children, guarantees, strict=True):
                child.limit[name] = min(
                    child.spec.capability.get(name, UNLIMITED), beyond + guarantee
                )
            rows = [
                (child.spec.weight, guarantee, min(child.request[name], child.limit[name]))
                for child, guarantee in zip(queue.children, guarantees, strict=True)
            ]
            for child, part in zip(queue.children, fill(queue.deserved[name], rows), strict=True):
                child.deserved[name] = part
        for child in queue.children:
            self._share_out(child)

    def run(self) -> dict[str, str]:
        self.enqueue()
        self.allocate()
        return self.binds

    def enqueue(self) -> None:
        used: dict[str, int] = defaultdict(int)
        for node in self.nodes:
            for name, amount in node.used.items():
                used[name] += amount
        self.idle = {
            name: int(amount * OVERCOMMIT) - used[name] for name, amount in self.total.items()
        }
        self.let_in = dict(self.queues[ROOT].inqueue)
        for job in sorted(
            (job for job in self.jobs.values() if job.phase is Phase.PENDING),
            key=lambda job: job.order(self.total),
        ):
            if job.min_resources is None or (
                self._within_quota(job, job.min_resources)
                and self._within_cluster(job.min_resources)
            ):
                job.phase = Phase.INQUEUE
                self._let_in(job)

    def _within_quota(self, job: TwinJob, needed: dict[str, int]) -> bool:
        return all(
            amount + queue.allocated[name] + queue.inqueue[name] - queue.elastic[name]
            <= queue.limit[name]
            for queue in self.queues[job.queue_name].path()
            for name, amount in needed.items()
            if amount
        )

    def _within_cluster(self, needed: dict[str, int]) -> bool:
        return all(
            self.let_in.get(name, 0) + amount <= self.idle[name]
            for name, amount in needed.items()
            if amount
        )

    def _let_in(self, job: TwinJob) -> None:
        if job.min_resources:
            self.queues[job.queue_name].add(job.min_resources, "inqueue")
            for name, amount in job.min_resources.items():
                self.let_in[name] = self.let_in.get(name, 0) + amount

    def allocate(self) -> None:
        for job in self.jobs.values():
            if job.phase is not Phase.PENDING and job.waiting:
                heapq.heappush(self.queues[job.queue_name].jobs, (job.order(self.total), job))
        while (queue := self._next_queue(self.queues[ROOT])) is not None:
            _, job = heapq.heappop(queue.jobs)
            if self._place(job, queue) and job.waiting:
                heapq.heappush(queue.jobs, (job.order(self.total), job))

    def _next_queue(self, queue: TwinQueue) -> TwinQueue | None:
        """The best leaf with jobs below: at each level the best child, and among equals the one
        with the best leaf.
        """
        if not queue.children:
            return queue if queue.jobs else None
        below = [
            (child, leaf)
            for child in queue.children
            if (leaf := self._next_queue(child)) is not None
        ]
        return (
            min(below, key=lambda pair: (pair[0].layer(), (*pair[1].layer(), pair[1].name)))[1]
            if below
            else None
        )

    def _place(self, job: TwinJob, queue: TwinQueue) -> bool:
        """Places pods until the gang is whole; else takes them all back."""
        placed: list[tuple[TwinPod, TwinNode]] = []
        for pod in job.waiting:
            node = self._best_node(pod) if self._may_have(queue, pod) else None
            if node is None:
                break
            self._move(job, queue, pod, node, 1)
            placed.append((pod, node))
            if job.ready >= job.min_member:
                break
        if not placed or job.ready < job.min_member:
            for pod, node in placed:
                self._move(job, queue, pod, node, -1)
            return False
        self.binds.update((pod.key, node.name) for pod, node in placed)
        del job.waiting[: len(placed)]
        return True

    def _move(
        self, job: TwinJob, queue: TwinQueue, pod: TwinPod, node: TwinNode, sign: int
    ) -> None:
        (node.take if sign > 0 else node.give_back)(pod)
        job.count(pod, sign)
        queue.add(pod.request, "allocated", sign)

    def _may_have(self, queue: TwinQueue, pod: TwinPod) -> bool:
        wanted = [
            (name, amount) for name, amount in pod.request.items() if amount and name != "pods"
        ]
        return all(
            level.allocated[name] + amount <= level.limit[name]
            for level in queue.path()
            for name, amount in wanted
        )

    def _best_node(self, pod: TwinPod) -> TwinNode | None:
        best, best_score = None, float("-inf")
        for node in self.nodes:
            if node.fits(pod):
                score = node.score(pod)
                if score > best_score:
                    best, best_score = node, score
        return best
