"""The sample cluster of a first start: forty machines, four teams, a dozen queues, and work for
them; or its queues alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from django.db import transaction

from scheduler.admission.rules.queue_deletion import PROTECTED
from scheduler.admission.violations import Rejected, Violation
from scheduler.domain.mixes import Target
from scheduler.domain.resources import Resources, is_bytes, total, units_per_one
from scheduler.engine.presets import DEFAULT_POLICY
from scheduler.models import ClusterState, Namespace, Node, PriorityClass, Queue, SimulatedCluster
from scheduler.scenarios.policies import write_policy
from scheduler.selectors.queues.listing import cluster_total
from scheduler.services.accounts.actors import Actor
from scheduler.services.demo.workload import Stream, start_stream, submit_numbers
from scheduler.services.locks import lock_tree
from scheduler.services.queues.create_update import create_queue
from scheduler.services.queues.states import refresh_states
from scheduler.services.sessions.policies import replace_policy

GPU = "nvidia.com/gpu"
SEED = 7
JOBS_AT_ONCE = 36
FIRST_NUMBER = 900_000  # out of the way of the stream, which counts from 0

# kind, how many, allocatable
NODES: Final = (
    ("cpu", 28, {"cpu": "32", "memory": "128Gi", "pods": "110"}),
    ("gpu-large", 8, {"cpu": "64", "memory": "512Gi", GPU: "8", "pods": "110"}),
    ("gpu-small", 4, {"cpu": "48", "memory": "384Gi", GPU: "4", "pods": "110"}),
)

SAMPLE_TIMES: Final = {
    "preempt": {"minRunSeconds": 60, "patienceSeconds": 120},
    "reclaim": {"minRunSeconds": 60, "patienceSeconds": 120, "shortRunWaitSeconds": 720},
}
"""A fifth of the default policy's."""
SAMPLE_POLICY_REASON: Final = "jobs of the sample run for seconds to minutes"

PRIORITY_CLASSES: Final = (("low", 10, False), ("normal", 100, True), ("high", 1000, False))


def _queue_values(name: str, parent: str, weight: int = 1, **amounts: object) -> dict[str, object]:
    return {"name": name, "parent": parent, "weight": weight, **amounts}


QUEUES: Final = (
    _queue_values(
        "research",
        "root",
        4,
        deserved={"cpu": "640", "memory": "4Ti", GPU: "56"},
        guarantee={GPU: "16", "cpu": "96"},
    ),
    _queue_values(
        "vision",
        "research",
        2,
        deserved={"cpu": "240", "memory": "1536Gi", GPU: "20"},
        guarantee={GPU: "8"},
        capability={GPU: "40"},
    ),
    _queue_values(
        "language",
        "research",
        3,
        deserved={"cpu": "320", "memory": "2Ti", GPU: "32"},
        guarantee={GPU: "8"},
    ),
    _queue_values(
        "sandbox",
        "research",
        1,
        deserved={"cpu": "64", "memory": "256Gi", GPU: "4"},
        capability={"cpu": "256", GPU: "12"},
    ),
    _queue_values(
        "production",
        "root",
        3,
        deserved={"cpu": "512", "memory": "2560Gi", GPU: "16"},
        guarantee={"cpu": "128", "memory": "512Gi"},
        priority=10,
    ),
    _queue_values(
        "serving",
        "production",
        2,
        deserved={"cpu": "256", "memory": "1536Gi", GPU: "16"},
        guarantee={"cpu": "128"},
        capability={GPU: "20"},
        priority=10,
        reclaimable=False,
    ),
    _queue_values(
        "etl",
        "production",
        1,
        deserved={"cpu": "256", "memory": "1Ti"},
        capability={"cpu": "640"},
    ),
    _queue_values(
        "analytics",
        "root",
        2,
        deserved={"cpu": "320", "memory": "1536Gi"},
        capability={"cpu": "800", "memory": "4Ti"},
    ),
    _queue_values("reports", "analytics", 2, deserved={"cpu": "192", "memory": "1Ti"}),
    _queue_values(
        "adhoc",
        "analytics",
        1,
        deserved={"cpu": "128", "memory": "512Gi"},
        dequeue_strategy="fifo",
    ),
    _queue_values("batch", "root", 1, deserved={"cpu": "128", "memory": "512Gi"}),
)

TARGETS: Final = (
    Target("etl", "production", ("olga", "pablo"), takes_gpu=False),
    Target("vision", "research", ("alice", "bob"), takes_cpu=False),
    Target("language", "research", ("chen", "dalia", "erik"), takes_cpu=False),
    Target("sandbox", "research", ("alice", "chen", "farid")),
    Target("serving", "production", ("olga",), takes_cpu=False),
    Target("reports", "analytics", ("greta", "hiro"), takes_gpu=False),
    Target("adhoc", "analytics", ("greta", "ines"), takes_gpu=False),
    Target("batch", "default", ("jonas", "kamila"), takes_gpu=False),
)


@transaction.atomic
def load_sample_cluster() -> None:
    """Machines, queues and priority classes at once, then the first jobs, and a stream of more."""
    _create_nodes()
    PriorityClass.objects.bulk_create(
        PriorityClass(name=name, value=value, global_default=default)
        for name, value, default in PRIORITY_CLASSES
    )
    Namespace.objects.bulk_create(
        Namespace(name=name) for name in ("research", "production", "analytics")
    )
    for queue in QUEUES:
        _create_queue(queue)
    refresh_states()
    ClusterState.objects.filter(pk=1).update(name="sample")
    replace_policy(sample_policy_text(), reason=SAMPLE_POLICY_REASON)
    SimulatedCluster.objects.filter(pk=1).update(seed=SEED, settings={"failure_probability": 0.02})
    submit_numbers(
        "steady",
        range(FIRST_NUMBER, FIRST_NUMBER + JOBS_AT_ONCE),
        seed=SEED,
        targets=TARGETS,
    )
    start_stream(Stream("steady", seed=SEED, targets=TARGETS))


def sample_policy_text() -> str:
    """The default policy with times that suit the sample: its jobs run for seconds to minutes,
    where real ones run for hours.
    """
    configurations = dict(DEFAULT_POLICY.configurations)
    for action, settings in SAMPLE_TIMES.items():
        configurations[action] = {**configurations[action], **settings}
    return write_policy(replace(DEFAULT_POLICY, configurations=configurations))


def load_sample_tree(*, by: Actor, dry_run: bool = False) -> list[str]:
    """The sample's queues alone, cut to the size of the cluster that is there, by the rules of
    every door; all of them or none.

    Raises `Rejected` where there are queues already, and `Forbidden`.
    """
    with transaction.atomic():
        lock_tree()
        if Queue.objects.exclude(name__in=PROTECTED).exists():
            message = "There are queues already: the sample tree is for an empty cluster."
            raise Rejected(
                [
                    Violation(
                        "tree_not_empty", "", "", message, "delete them first, or make your own"
                    )
                ],
                by_state=True,
            )
        has = cluster_total()
        for queue in QUEUES:
            create_queue(_queue_manifest(queue, has), by=by)
        transaction.set_rollback(dry_run)
    return [str(queue["name"]) for queue in QUEUES]


def _queue_manifest(queue: dict[str, object], has: Resources) -> dict[str, object]:
    plain = {}
    for key, value in queue.items():
        if key in ("parent", "weight", "priority", "reclaimable"):
            plain[key] = value
    quotas = {}
    for name in ("deserved", "guarantee", "capability"):
        quotas[name] = _fit_to_cluster(queue.get(name), has).to_quantities()
    spec = {
        **plain,
        **quotas,
        "guarantee": {"resource": quotas["guarantee"]},
        "dequeueStrategy": queue.get("dequeue_strategy", "traverse"),
    }
    return {"metadata": {"name": queue["name"]}, "spec": spec}


def _fit_to_cluster(amounts: object, has: Resources) -> Resources:
    """In proportion to the sample's own cluster, in whole cores, devices and Gi.

    Nothing of what this cluster does not have.
    """
    given = Resources.parse(amounts)  # type: ignore[arg-type]
    whole = sample_total()
    scaled = {}
    for name, amount in given.items():
        if has.amount(name):
            scaled[name] = _round_down(name, amount * has.amount(name) // whole[name])
    return Resources(scaled)


def _round_down(resource: str, amount: int) -> int:
    if is_bytes(resource):
        unit = 2**30
    else:
        unit = units_per_one(resource)
    return amount // unit * unit


def sample_total() -> Resources:
    return total(node.allocatable for node in _sample_nodes())


def _create_nodes() -> None:
    Node.objects.bulk_create(_sample_nodes())


def _sample_nodes() -> Iterator[Node]:
    for kind, count, amounts in NODES:
        for number in range(1, count + 1):
            yield Node(
                name=f"{kind}-{number:02d}",
                kind=kind,
                labels=_sample_labels(kind, number),
                allocatable=Resources.parse(amounts),
            )


def _sample_labels(kind: str, number: int) -> dict[str, str]:
    """Racks of four in two zones, so that the map of the cluster has something to group by."""
    rack = (number - 1) // 4 + 1
    return {
        "node.fumarole.io/kind": kind,
        "topology.fumarole.io/rack": f"{kind}-r{rack}",
        "topology.kubernetes.io/zone": "ab"[(rack - 1) % 2],
    }


def _create_queue(values: dict[str, object]) -> None:
    amounts = {}
    for name in ("deserved", "guarantee", "capability"):
        amounts[name] = Resources.parse(values.get(name))  # type: ignore[arg-type]
    others = {}
    for name, value in values.items():
        if name not in (*amounts, "parent"):
            others[name] = value
    Queue.objects.create(parent=Queue.objects.get(name=values["parent"]), **others, **amounts)
