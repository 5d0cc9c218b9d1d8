"""The cluster in use, ready to be asked: a simulated one with its state loaded, and saved again
afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from scheduler.clusters import SIMULATED, load_cluster
from scheduler.clusters.base import Cluster
from scheduler.clusters.simulated import SimulatedCluster as Simulation
from scheduler.clusters.simulated import SimulatedPod as SimulatedPodValue
from scheduler.clusters.simulated import SimulationSettings
from scheduler.conf import conf
from scheduler.models import Node, SimulatedCluster, SimulatedPod
from scheduler.models.bulk import as_parameter, execute, values_table
from scheduler.services.locks import alone_with_pods

LONGEST_LEAP = 30.0
"""Real seconds that the simulated clock makes up for at the most: a cluster that was switched off
does not finish its jobs meanwhile.
"""


@contextmanager
def cluster_transaction() -> Iterator[None]:
    """What is asked of a simulated cluster and what is written about it are one transaction: both
    happen or neither.

    A real cluster is not part of any transaction; there every step commits for itself, and is
    repeated after a crash.
    """
    if conf().cluster != SIMULATED:
        yield
        return
    with transaction.atomic():
        alone_with_pods()
        yield


@contextmanager
def cluster_in_use(pod_ids: Iterable[int] = (), nodes: Iterable[str] = ()) -> Iterator[Cluster]:
    """`pod_ids` and `nodes` name what will be asked about, beside the pods that are due: only these
    are loaded.
    """
    if conf().cluster != SIMULATED:
        yield load_cluster(conf().cluster)()
        return
    with simulation(pod_ids, nodes) as cluster:
        yield cluster


@contextmanager
def simulation(pod_ids: Iterable[int] = (), nodes: Iterable[str] = ()) -> Iterator[Simulation]:
    with transaction.atomic():
        state = SimulatedCluster.objects.select_for_update().get(pk=1)
        clock = _seconds_to_advance(state, timezone.now())
        wanted = set(pod_ids)
        names = set(nodes)
        cluster = Simulation.holding(
            _load_pods(clock, wanted, names),
            clock=clock,
            seed=state.seed,
            settings=SimulationSettings.read(state.settings),
        )
        cluster.ready_nodes = frozenset(
            Node.objects.filter(ready=True, name__in=names).values_list("name", flat=True)
        )
        yield cluster
        _save_pods(cluster)
        state.save(update_fields=["clock", "advanced_at"])


def _seconds_to_advance(state: SimulatedCluster, now: datetime) -> float:
    if state.advanced_at:
        passed = (now - state.advanced_at).total_seconds()
    else:
        passed = 0.0
    state.clock += min(max(passed, 0.0), LONGEST_LEAP) * state.speed
    state.advanced_at = now
    return state.clock


def _load_pods(clock: float, pod_ids: set[int], nodes: set[str]) -> list[SimulatedPodValue]:
    """Only the pods that have something to do now, and those that are asked for: the others go on
    by themselves.
    """
    rows = {row.pod_id: row for row in SimulatedPod.objects.filter(next_at__lte=clock)}
    if pod_ids:
        rows |= SimulatedPod.objects.in_bulk(list(pod_ids))
    elif nodes:
        rows |= {row.pod_id: row for row in SimulatedPod.objects.filter(node_name__in=nodes)}
    return [
        SimulatedPodValue(
            row.pod_id,
            row.node_name,
            row.next_at,
            row.run_seconds,
            row.exit_code,
            row.running,
            row.leaving,
            row.message,
        )
        for row in rows.values()
    ]


_COLUMNS = {
    "pod_id": "bigint",
    "node_name": "text",
    "next_at": "float8",
    "run_seconds": "float8",
    "exit_code": "integer",
    "running": "boolean",
    "leaving": "boolean",
    "message": "text",
}


def _save_pods(cluster: Simulation) -> None:
    if cluster.gone:
        SimulatedPod.objects.filter(pk__in=cluster.gone).delete()
    rows = [_row_of(cluster.pods[pod_id]) for pod_id in sorted(cluster.changed)]
    if not rows:
        return
    names = ", ".join(_COLUMNS)
    updates = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name != "pod_id")
    execute(
        f"INSERT INTO scheduler_simulatedpod ({names}) SELECT {names} FROM "
        f"{values_table('d', _COLUMNS)} WHERE true "
        f"ON CONFLICT (pod_id) DO UPDATE SET {updates}",
        [as_parameter(rows)],
    )


def _row_of(pod: SimulatedPodValue) -> dict[str, object]:
    return {
        "pod_id": pod.pod_id,
        "node_name": pod.node,
        "next_at": pod.next_at,
        "run_seconds": pod.run_seconds,
        "exit_code": pod.exit_code,
        "running": pod.running,
        "leaving": pod.leaving,
        "message": pod.message[:512],
    }
