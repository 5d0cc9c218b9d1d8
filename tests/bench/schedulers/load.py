"""The cluster and the pods, the same for every scheduler."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.resources import NODES, PODS
from tests.control_plane import objects

GANG = 20
_SHARE_IN_GANGS = 0.6
_CORES_OF_NODE = 16
_THREADS = 8
_SEED = 20

Marking = Callable[[dict[str, Any], str], dict[str, Any]]
"""A pod and the name of its gang in, the pod as its scheduler wants it out."""


@dataclass(frozen=True, slots=True)
class Load:
    """`rate` is how many pods are created in a second; 0 for as many as the API server takes."""

    pods: int
    nodes: int
    rate: float = 0.0

    @property
    def gangs(self) -> int:
        return max(1, int(self.pods * _SHARE_IN_GANGS) // GANG)

    @property
    def singles(self) -> int:
        return max(0, self.pods - self.gangs * GANG)

    @property
    def all_pods(self) -> int:
        return self.gangs * GANG + self.singles

    def in_words(self) -> str:
        pace = "created as fast as the API server takes them"
        if self.rate:
            pace = f"{self.rate:g} created a second"
        return (
            f"{self.nodes:,} nodes of {_CORES_OF_NODE} cores; {self.all_pods:,} pods, "
            f"{self.gangs:,} gangs of {GANG} and {self.singles:,} alone; {pace}"
        )

    def gang_names(self) -> list[str]:
        return [f"gang-{number}" for number in range(self.gangs)]

    def units(self) -> list[str]:
        """Gangs and single pods, mixed in the same way each time."""
        found = [*self.gang_names(), *(f"single-{number}" for number in range(self.singles))]
        random.Random(_SEED).shuffle(found)
        return found


def make_nodes(client: Client, load: Load) -> None:
    """The API server taints each new node, and no controller takes the taint away."""

    def make(number: int) -> None:
        name = f"n{number:04}"
        node = objects.node(name, cpu=str(_CORES_OF_NODE), memory="64Gi", is_kwok=True)
        client.create(NODES, node)
        client.patch(NODES, name, {"spec": {"taints": []}})

    _for_all(range(load.nodes), make)


def pod_of(unit: str, number: int, scheduler: str) -> dict[str, Any]:
    """Every third gang asks for two cores a pod."""
    cores = "1"
    if unit.startswith("gang") and int(unit.partition("-")[2]) % 3 == 0:
        cores = "2"
    return objects.pod(f"{unit}-{number}", cpu=cores, scheduler=scheduler)


class Creating:
    """Creates the pods of all units; what a gang needs beside its pods comes first."""

    def __init__(
        self,
        client: Client,
        load: Load,
        scheduler: str,
        make_gang: Callable[[Client, str, int], None],
        mark: Marking,
    ) -> None:
        self._client = client
        self._load = load
        self._scheduler = scheduler
        self._make_gang = make_gang
        self._mark = mark
        self._lock = threading.Lock()
        self._next_at = 0.0

    def run(self) -> None:
        _for_all(self._load.units(), self._create)

    def _create(self, unit: str) -> None:
        if not unit.startswith("gang"):
            self._wait_for_turn()
            self._client.create(PODS, pod_of(unit, 0, self._scheduler), "default")
            return
        self._make_gang(self._client, unit, GANG)
        for number in range(GANG):
            self._wait_for_turn()
            pod = self._mark(pod_of(unit, number, self._scheduler), unit)
            self._client.create(PODS, pod, "default")

    def _wait_for_turn(self) -> None:
        if not self._load.rate:
            return
        with self._lock:
            now = time.monotonic()
            self._next_at = max(now, self._next_at + 1 / self._load.rate)
            pause = self._next_at - now
        time.sleep(pause)


def _for_all(items: Iterable[Any], work: Callable[[Any], object]) -> None:
    with ThreadPoolExecutor(_THREADS) as threads:
        list(threads.map(work, items))
