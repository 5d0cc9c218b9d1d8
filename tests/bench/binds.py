"""python -m tests.bench.binds [--pods N] [--nodes N]: gangs bound on a real API server.

PostgreSQL, Redis, a real API server with KWOK's nodes, and a whole Fumarole beside it: watcher,
scheduler, worker and beat as processes of their own. All pods wait when it starts, and fill nearly
all of the room. Told are the processor time of each process for each bind, which a busy machine
hardly changes, and the binds in a second, which depend on the machine: all share its processors.
Ends with an error if a pod is not bound, a gang is not whole, or a node holds more than it has.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.credentials import from_kubeconfig
from scheduler.clusters.kubernetes.resources import NODES, PODGROUPS, PODS, QUEUES
from tests.bench.database import a_database
from tests.control_plane import objects, programs
from tests.control_plane.fumarole import Fumarole, processor_seconds_of
from tests.control_plane.placed import GROUP, broken_gangs, overcommitted
from tests.control_plane.plane import ControlPlane

GANG = 20
_QUEUES_MADE = 10
_CORES_OF_NODE = 16
_THREADS = 8
_PATIENCE_SECONDS = 1800.0
_LOOK_SECONDS = 0.5


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.binds", description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000, help="in gangs of 20")
    parser.add_argument("--nodes", type=int, default=0, help="of 16 cores; a tenth of the pods")
    parser.add_argument("--keep-logs", type=Path, help="a folder for what the processes wrote")
    options = parser.parse_args(arguments)
    gangs = options.pods // GANG
    nodes = options.nodes or gangs * GANG // 10
    with ExitStack() as stack:
        folder = options.keep_logs or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        stack.enter_context(a_database())
        plane = stack.enter_context(ControlPlane(programs.find(), folder / "plane"))
        kwok = stack.enter_context(plane.kwok())
        _Bench(plane, kwok.pid, folder, gangs, nodes).run()
    return 0


class _Bench:
    def __init__(
        self, plane: ControlPlane, kwok: int, folder: Path, gangs: int, nodes: int
    ) -> None:
        self._plane = plane
        self._kwok = kwok
        self._folder = folder
        self._gangs = gangs
        self._nodes = nodes
        self._pods = gangs * GANG
        self._client = Client(from_kubeconfig(plane.kubeconfig))

    def run(self) -> None:
        print(f"{self._pods} pods in gangs of {GANG}, {self._nodes} nodes; {_load()}")
        began = time.monotonic()
        self._make_cluster()
        print(f"the cluster is made in {time.monotonic() - began:.0f} s")
        fumarole = Fumarole(
            self._folder / "fumarole",
            kubeconfig=self._plane.kubeconfig,
            database=os.environ["DATABASE_URL"],
        )
        with fumarole:
            self._watch_it_bind(fumarole)
        self._check()

    # The cluster

    def _make_cluster(self) -> None:
        for number in range(_QUEUES_MADE):
            self._client.create(QUEUES, objects.queue(f"queue-{number}", weight=1))
        _for_all(self._nodes, self._make_node)
        _for_all(self._gangs, self._make_gang)

    def _make_node(self, number: int) -> None:
        """The API server taints each new node, and no controller takes the taint away."""
        name = f"n{number:04}"
        node = objects.node(name, cpu=str(_CORES_OF_NODE), memory="64Gi", is_kwok=True)
        self._client.create(NODES, node)
        self._client.patch(NODES, name, {"spec": {"taints": []}})

    def _make_gang(self, number: int) -> None:
        """Every second one asks for two cores a pod: all together need 15 of 16 cores."""
        name = f"gang-{number}"
        queue = f"queue-{number % _QUEUES_MADE}"
        group = objects.podgroup(name, queue=queue, min_member=GANG)
        self._client.create(PODGROUPS, group, "default")
        for index in range(GANG):
            cores = str(1 + number % 2)
            pod = objects.pod(f"{name}-{index}", cpu=cores, annotations={GROUP: name})
            self._client.create(PODS, pod, "default")

    # What is measured

    def _watch_it_bind(self, fumarole: Fumarole) -> None:
        from scheduler.models import Mirror, Pod

        began = time.monotonic()
        _wait_until(lambda: Mirror.objects.exclude(synced_at=None).exists())
        print(f"the mirror is complete after {time.monotonic() - began:.1f} s")
        _wait_until(lambda: Pod.objects.exclude(phase="Pending").exists(), 0.05)
        before = self._processor_seconds(fumarole)
        began = time.monotonic()
        curve = []
        while not curve or curve[-1] < self._pods:
            time.sleep(_LOOK_SECONDS)
            curve.append(Pod.objects.filter(phase__in=("Bound", "Running")).count())
            if time.monotonic() - began > _PATIENCE_SECONDS:
                raise TimeoutError(f"{curve[-1]} of {self._pods} pods were bound")
        seconds = time.monotonic() - began
        spent = self._processor_seconds(fumarole)
        self._say(curve, seconds, {name: spent[name] - before[name] for name in spent})

    def _say(self, curve: list[int], seconds: float, spent: dict[str, float]) -> None:
        print(f"bound: {self._pods} pods in {seconds:.1f} s, {self._pods / seconds:.0f} a second")
        step = max(1, round(5 / _LOOK_SECONDS))
        print(f"bound every {step * _LOOK_SECONDS:.0f} s: {curve[::step]}")
        for name, amount in spent.items():
            each = amount * 1000 / self._pods
            print(f"{name:14} {amount:6.1f} s of processor, {each:.2f} ms a bind")
        print(f"{'all':14} {sum(spent.values()):6.1f} s of processor; {_load()}")

    def _processor_seconds(self, fumarole: Fumarole) -> dict[str, float]:
        found = {name: fumarole.processor_seconds(name) for name in fumarole.names}
        for name, pid in (*self._plane.pids().items(), ("kwok", self._kwok)):
            found[name] = processor_seconds_of(pid)
        return found

    def _check(self) -> None:
        pods = self._client.list(PODS)
        problems = overcommitted(self._client.list(NODES), pods)
        problems += broken_gangs(pods, {f"gang-{number}": GANG for number in range(self._gangs)})
        waiting = [pod for pod in pods if not pod["spec"].get("nodeName")]
        print(f"by the API server's own objects: {len(pods) - len(waiting)} pods have a node")
        print(f"nodes that hold more than they have, gangs that are not whole: {len(problems)}")
        for problem in problems[:20]:
            print(f"  {problem}")
        assert not problems
        assert not waiting


def _load() -> str:
    one, five, _ = os.getloadavg()
    return f"load {one:.1f} in the last minute, {five:.1f} in five, {os.cpu_count()} processors"


def _for_all(number: int, work: Callable[[int], object]) -> None:
    with ThreadPoolExecutor(_THREADS) as threads:
        list(threads.map(work, range(number)))


def _wait_until(is_so: Callable[[], object], step: float = 0.1) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError("nothing happened")
        time.sleep(step)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
