"""Random clusters: a few nodes, a tree of queues, podgroups that run or wait.

No node is over-full to begin with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from scheduler.domain.nodes import Node
from scheduler.domain.queues import ROOT, DequeueStrategy, QueueSpec, QueueState, QueueTree
from scheduler.domain.resources import Resources
from scheduler.domain.workloads import Phase, Pod, PodGroup, PodStatus
from scheduler.engine.policy import Flag, PluginConfig, Policy
from scheduler.engine.presets import FUMAROLE, VOLCANO
from scheduler.scenarios.clusters import Cluster, derived

GIB = 2**30
GPU = "nvidia.com/gpu"


def policy(
    queue_plugin: PluginConfig, actions: str = "enqueue, allocate, preempt, reclaim, shed, backfill"
) -> Policy:
    return Policy(
        tuple(actions.split(", ")),
        (
            (PluginConfig("priority"), PluginConfig("gang"), PluginConfig("conformance")),
            (
                PluginConfig("overcommit"),
                PluginConfig("drf"),
                PluginConfig("predicates"),
                queue_plugin,
                PluginConfig("binpack"),
            ),
        ),
    )


POLICIES = {
    "fumarole": FUMAROLE,
    "volcano": VOLCANO,
    "proportion": policy(PluginConfig("proportion")),
    "flat capacity": policy(PluginConfig("capacity")),
    "quotas in a tree": policy(
        PluginConfig("capacity", {Flag.HIERARCHY: True}, {"ancestorReclaimLevel": 1})
    ),
}
policies = st.sampled_from(sorted(POLICIES)).map(lambda name: POLICIES[name])


@dataclass(frozen=True)
class Wishes:
    """What a property leaves out because it is about something else."""

    states: bool = True
    guarantees: bool = True
    fifo: bool = True
    min_resources: bool = True
    odd_queues: bool = True  # podgroups in inner or unknown queues


EVERYTHING = Wishes()
PLAIN = Wishes(states=False, guarantees=False, fifo=False, min_resources=False, odd_queues=False)


def amounts(cpu: int, memory: int, gpu: int) -> Resources:
    return Resources(
        {"cpu": cpu * 1000, "memory": memory * GIB, **({GPU: gpu * 1000} if gpu else {})}
    )


def fits_in(asked: Resources, limit: Resources) -> bool:
    """Every amount that is asked for is at most what the limit has; absent there is 0."""
    return all(amount <= limit.amount(name) for name, amount in asked.items())


def fits_where_set(asked: Resources, limit: Resources) -> bool:
    """Every amount that is asked for is at most what the limit has; absent there is no limit."""
    return all(amount <= limit[name] for name, amount in asked.items() if name in limit)


GUARANTEE = amounts(2, 4, 0)
requests = st.builds(
    amounts,
    st.integers(1, 3),
    st.integers(1, 4),
    st.sampled_from([0, 0, 0, 1, 2]),
) | st.just(Resources({"cpu": 1500}))
quotas = st.builds(amounts, st.integers(1, 12), st.integers(1, 24), st.integers(0, 4))


@st.composite
def nodes(draw: st.DrawFn) -> tuple[Node, ...]:
    sizes = st.tuples(st.integers(2, 8), st.integers(4, 16), st.sampled_from([0, 0, 4]))
    found = draw(st.lists(sizes, min_size=1, max_size=3))
    pods = draw(st.sampled_from([4, 110, 110]))
    return tuple(
        Node(f"n{index}", Resources({**amounts(*size), "pods": pods}), {"zone": "ab"[index % 2]})
        for index, size in enumerate(found)
    )


@st.composite
def queue_specs(draw: st.DrawFn, wishes: Wishes) -> tuple[QueueSpec, ...]:
    count = draw(st.integers(1, 5))
    names = [f"q{index}" for index in range(count)]
    specs = [
        _queue(draw, name, draw(st.sampled_from([ROOT, ROOT, *names[:index]])), wishes)
        for index, name in enumerate(names)
    ]
    return (QueueSpec(ROOT, parent=""), *specs)


def _queue(draw: st.DrawFn, name: str, parent: str, wishes: Wishes) -> QueueSpec:
    states = st.sampled_from(
        [QueueState.OPEN] * 9 + [QueueState.CLOSING, QueueState.SUSPENDED, QueueState.CLOSED]
    )
    capability = draw(quotas) if draw(st.integers(0, 3)) == 0 else Resources()
    may_have_guarantee = wishes.guarantees and fits_where_set(GUARANTEE, capability)
    return QueueSpec(
        name,
        parent=parent,
        weight=draw(st.integers(1, 4)),
        capability=capability,
        deserved=draw(quotas) if draw(st.booleans()) else Resources(),
        guarantee=GUARANTEE if may_have_guarantee and draw(st.integers(0, 3)) == 0 else Resources(),
        reclaimable=draw(st.sampled_from([True, True, True, False])),
        priority=draw(st.sampled_from([0, 0, 1])),
        dequeue_strategy=draw(st.sampled_from(list(DequeueStrategy)))
        if wishes.fifo
        else DequeueStrategy.TRAVERSE,
        state=draw(states) if wishes.states else QueueState.OPEN,
    )


@st.composite
def clusters(draw: st.DrawFn, wishes: Wishes = EVERYTHING) -> Cluster:
    found = draw(nodes())
    specs = draw(queue_specs(wishes))
    tree = QueueTree(specs)
    leaves = [spec.name for spec in specs if tree.is_leaf(spec.name) and spec.name != ROOT]
    places = [
        *leaves,
        *(
            [spec.name for spec in specs] + ["nowhere"]
            if wishes.odd_queues and draw(st.integers(0, 5)) == 0
            else []
        ),
    ]
    room = _Room(found)
    running = draw(st.integers(0, 5))
    waiting = draw(st.integers(1, 4))
    jobs = [
        draw(_job(index, places, room, wishes, runs=index < running))
        for index in range(running + waiting)
    ]
    groups = tuple(group for group, _ in jobs)
    pods = tuple(pod for _, members in jobs for pod in members)
    return Cluster(
        found,
        tuple(derived(spec, tree) for spec in specs),
        groups,
        pods,
        session=10,
        taken_at=1000.0,
    )


class _Room:
    """What is left on each node while running pods are put there."""

    def __init__(self, found: tuple[Node, ...]) -> None:
        self.left = {node.name: node.allocatable for node in found}

    def take(self, request: Resources) -> str:
        whole = request + Resources({"pods": 1})
        for name, left in self.left.items():
            if fits_in(whole, left):
                self.left[name] = left - whole
                return name
        return ""


@st.composite
def _job(
    draw: st.DrawFn,
    index: int,
    places: list[str],
    room: _Room,
    wishes: Wishes,
    *,
    runs: bool,
) -> tuple[PodGroup, list[Pod]]:
    members = draw(st.integers(1, 4))
    request = draw(st.just(Resources()) if draw(st.integers(0, 9)) == 0 else requests)
    running = draw(st.sampled_from([members, members, members - 1])) if runs else 0
    least = draw(st.integers(0, members + (draw(st.integers(0, 9)) == 0)))
    group = PodGroup(
        f"job{index}",
        draw(st.sampled_from(places)),
        "ns",
        least,
        {"worker": draw(st.integers(0, members))} if draw(st.integers(0, 4)) == 0 else {},
        request * least if wishes.min_resources and draw(st.booleans()) else None,
        priority=draw(st.sampled_from([0, 0, 5, 10])),
        created=float(draw(st.integers(0, 2))),
    )
    mixed = draw(st.integers(0, 4)) == 0  # a job whose pods are not all alike
    sizes = [draw(requests) if mixed else request for _ in range(members)]
    pods = [
        draw(_pod(group, member, sizes[member], running > member, room))
        for member in range(members)
    ]
    placed = sum(pod.status is PodStatus.RUNNING for pod in pods)
    phases = (
        [Phase.RUNNING]
        if placed and placed >= least
        else [Phase.UNKNOWN, Phase.RUNNING]
        if placed
        else [Phase.PENDING, Phase.INQUEUE]
    )
    return replace(group, phase=draw(st.sampled_from(phases))), pods


@st.composite
def _pod(
    draw: st.DrawFn,
    group: PodGroup,
    member: int,
    request: Resources,
    running: bool,
    room: _Room,
) -> Pod:
    node = room.take(request) if running else ""
    status = PodStatus.RUNNING if node else PodStatus.PENDING
    if node and draw(st.integers(0, 14)) == 0:
        status = PodStatus.RELEASING
    return Pod(
        f"{group.name}-w-{member}",
        group.key,
        "ns",
        request,
        node,
        status,
        priority=draw(st.sampled_from([1, 1, 2])),
        role="worker" if group.role_minimums else "",
        preemptable=draw(st.sampled_from([True] * 5 + [False])),
        created=group.created,
    )
