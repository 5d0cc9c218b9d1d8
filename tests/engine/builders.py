"""A cluster in a few lines: `cluster(nodes=[node("n1", cpu=8)], queues=[queue("q1")],
jobs=[job("train", "q1", tasks=2, cpu=4)])`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from scheduler.domain.nodes import Node, Taint
from scheduler.domain.queues import DequeueStrategy, QueueSpec, QueueState
from scheduler.domain.resources import Resources
from scheduler.domain.snapshot import Queue, Snapshot
from scheduler.domain.workloads import Phase, Pod, PodGroup, PodStatus
from scheduler.engine import run_session
from scheduler.engine.policy import Flag, PluginConfig, Policy
from scheduler.engine.presets import VOLCANO

GPU = "nvidia.com/gpu"


def amounts(cpu=None, memory=None, gpu=None, **others):
    """cpu in cores, memory as written ("4Gi"), gpu in whole devices."""
    given = {"cpu": cpu, "memory": memory, GPU: gpu, **others}
    return Resources.parse({name: str(value) for name, value in given.items() if value is not None})


def node(
    name,
    cpu=8,
    memory="64Gi",
    pods=110,
    labels=None,
    taints=(),
    unschedulable=False,
    ready=True,
    **others,
):
    return Node(
        name,
        amounts(cpu, memory, pods=pods, **others),
        labels or {},
        tuple(Taint(*taint) for taint in taints),
        unschedulable,
        ready,
    )


def queue(
    name,
    weight=1,
    parent="root",
    deserved=None,
    guarantee=None,
    capability=None,
    held_by="",
    state=QueueState.OPEN,
    fifo=False,
    **others,
):
    """Amounts are dicts of `amounts`, or a number of cores."""
    spec = QueueSpec(
        name,
        parent="" if name == "root" else parent,
        weight=weight,
        deserved=_amounts(deserved),
        guarantee=_amounts(guarantee),
        capability=_amounts(capability),
        dequeue_strategy=DequeueStrategy.FIFO if fifo else DequeueStrategy.TRAVERSE,
        **others,
    )
    return Queue(spec, state, held_by)


def _amounts(given):
    if given is None:
        return Resources()
    return amounts(**given) if isinstance(given, dict) else amounts(cpu=given)


@dataclass(frozen=True)
class Workload:
    group: PodGroup
    pods: tuple[Pod, ...]


def job(
    name,
    queue="default",
    tasks=1,
    min=None,
    on=None,
    phase=None,
    cpu=None,
    memory=None,
    gpu=None,
    min_resources=None,
    pod=None,
    **group,
):
    """`on` places its pods: one node for all, or a list with one entry per pod ("" for pending).

    Running if all are placed.
    """
    nodes = [on or ""] * tasks if isinstance(on, str | None) else on
    pods = tuple(
        _pod(name, number, place, amounts(cpu, memory, gpu), pod or {})
        for number, place in enumerate(nodes)
    )
    default = Phase.RUNNING if nodes and all(nodes) else Phase.INQUEUE
    return Workload(
        PodGroup(
            name,
            queue,
            min_member=tasks if min is None else min,
            phase=default if phase is None else phase,
            min_resources=_amounts(min_resources) if min_resources is not None else None,
            **group,
        ),
        pods,
    )


def _pod(name, number, place, request, attributes):
    status = PodStatus.RUNNING if place else PodStatus.PENDING
    return replace(
        Pod(f"{name}-{number}", f"default/{name}", request=request, node=place, status=status),
        **attributes,
    )


def cluster(nodes=(), queues=(), jobs=(), **snapshot):
    return Snapshot.build(
        nodes=nodes,
        queues=queues,
        podgroups=[work.group for work in jobs],
        pods=[pod for work in jobs for pod in work.pods],
        **snapshot,
    )


def tier(*plugins):
    return tuple(
        plugin if isinstance(plugin, PluginConfig) else PluginConfig(plugin) for plugin in plugins
    )


def policy(actions, *tiers, configurations=None):
    """`policy("allocate", ["gang"], ["proportion"])`, flags that are not named on."""
    return Policy(
        tuple(actions.split()),
        tuple(tier(*names) for names in tiers),
        configurations or {},
    )


BASIC = ("priority", "gang", "conformance")
PROPORTION = policy(
    "enqueue allocate preempt reclaim shed backfill",
    BASIC,
    ["overcommit", "drf", "predicates", "proportion"],
)
CAPACITY = policy(
    "enqueue allocate preempt reclaim shed backfill", BASIC, ["predicates", "capacity"]
)
TREE = policy(
    "enqueue allocate preempt reclaim shed backfill",
    BASIC,
    ["predicates", PluginConfig("capacity", {Flag.HIERARCHY: True})],
)


def with_actions(policy, actions):
    return replace(policy, actions=tuple(actions.split()))


def configured(policy, **configurations):
    return replace(policy, configurations=configurations)


def run(snapshot, policy=VOLCANO):
    return run_session(snapshot, policy)


def binds(outcome):
    return {bind.pod.removeprefix("default/"): bind.node for bind in outcome.binds}


def evicted(outcome):
    return [victim.pod.removeprefix("default/") for victim in outcome.evictions]


def waiting(outcome):
    """Pods with a place kept for them."""
    return {kept.pod.removeprefix("default/"): kept.node for kept in outcome.reservations}


def phase(outcome, name):
    return outcome.phases[f"default/{name}"]


def reason(outcome, name):
    return outcome.reasons[f"default/{name}"]


def cores(outcome, what="deserved", at_open=False, resource="cpu"):
    """What each queue deserves (or another figure), in whole units."""
    unit = 1 if resource in ("memory", "pods") else 1000
    queues = outcome.queues_at_open if at_open else outcome.queues
    return {
        name: getattr(figures, what).amount(resource) / unit for name, figures in queues.items()
    }


def one_node(*jobs, cpu=2, queues=("default",), **node_):
    return cluster(
        nodes=[node("n1", cpu=cpu, **node_)],
        queues=[queue(name) if isinstance(name, str) else name for name in queues],
        jobs=jobs,
    )


ALLOCATE = policy("allocate", BASIC)
TWO_QUEUES = ("q1", "q2")
