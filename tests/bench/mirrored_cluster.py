"""python -m tests.bench.mirrored_cluster [--nodes N] [--pods N]: a mirror of a large real cluster.

A real API server with KWOK's nodes, PostgreSQL, Redis, and `manage.py watcher` as a process of its
own. Only the watcher's processor time and memory are told, so the servers beside it do not count.
What took how long depends on the machine: they share its processors.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scheduler.clusters.kubernetes.binding import BindOrder, BindResult, bind_pods
from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.credentials import from_kubeconfig
from scheduler.clusters.kubernetes.errors import ApiError
from scheduler.clusters.kubernetes.read import READERS
from scheduler.clusters.kubernetes.resources import NODES, PODGROUPS, PODS, QUEUES
from scheduler.clusters.kubernetes.watch import Watch
from scheduler.clusters.kubernetes.watch_events import Changed, Listed, Removed
from tests.bench.database import a_database
from tests.control_plane import objects, programs
from tests.control_plane.plane import ControlPlane
from tests.dashboard.conftest import RedisServer

GANG = 20
QUEUES_MADE = 20
_THREADS = 8
_PATIENCE_SECONDS = 1800.0
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_PROBES_WHEN_QUIET = 100


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.mirrored_cluster", description=__doc__
    )
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=10_000)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, a_database():
        redis = RedisServer(Path(folder))
        redis.start()
        try:
            with ControlPlane(programs.find(), Path(folder)) as plane, plane.kwok():
                bench = _Bench(plane, redis.url, options.nodes, options.pods)
                bench.run()
        finally:
            redis.stop()
    return 0


class _Bench:
    def __init__(self, plane: ControlPlane, redis: str, nodes: int, pods: int) -> None:
        self._plane = plane
        self._redis = redis
        self._nodes = nodes
        self._pods = pods // GANG * GANG
        self._client = Client(from_kubeconfig(plane.kubeconfig))
        self._heard = _Counter(plane)

    def run(self) -> None:
        _timed("the cluster is made", self._make_cluster)
        with self._watcher() as watcher:
            self._first_look(watcher)
            self._lag("lag when quiet", _probes(self._probe, _PROBES_WHEN_QUIET))
            self._heard.start()
            self._under_load("bound and running", watcher, self._bind_all, self._all_run)
            self._after_a_kill()
            self._under_load("deleted", watcher, self._delete_half, self._half_are_gone)
            print(f"watcher: {watcher.memory()}")
        self._compare()

    # The cluster

    def _make_cluster(self) -> None:
        for number in range(QUEUES_MADE):
            self._client.create(QUEUES, objects.queue(f"queue-{number}", weight=1))
        self._client.create(NODES, objects.node("probe"))
        _for_all(self._nodes, self._make_node)
        _for_all(self._pods // GANG, self._make_gang)

    def _make_node(self, number: int) -> None:
        self._client.create(NODES, objects.node(f"n{number:04}", cpu="64", is_kwok=True))

    def _make_gang(self, number: int) -> None:
        name = f"gang-{number}"
        queue = f"queue-{number % QUEUES_MADE}"
        group = objects.podgroup(name, queue=queue, min_member=GANG)
        self._client.create(PODGROUPS, group, "default")
        for index in range(GANG):
            annotations = {"scheduling.k8s.io/group-name": name}
            pod = objects.pod(f"{name}-{index}", scheduler="volcano", annotations=annotations)
            self._client.create(PODS, pod, "default")

    def _bind_all(self) -> None:
        orders = []
        for number, raw in enumerate(self._client.list(PODS)):
            meta = raw["metadata"]
            node = f"n{number % self._nodes:04}"
            orders.append(BindOrder(meta["uid"], meta["namespace"], meta["name"], node))
        answers = bind_pods(self._client, orders, _THREADS)
        assert all(answer.result is BindResult.BOUND for answer in answers)

    def _all_run(self) -> bool:
        from scheduler.models import Pod

        return Pod.objects.filter(phase="Running").count() == self._pods

    def _delete_half(self) -> None:
        def delete_gang(number: int) -> None:
            for index in range(GANG):
                name = f"gang-{number}-{index}"
                self._client.delete(PODS, name, "default", grace_seconds=0)
            self._client.delete(PODGROUPS, f"gang-{number}", "default")

        _for_all(self._pods // GANG // 2, delete_gang)

    def _half_are_gone(self) -> bool:
        from scheduler.models import PodGroup

        return PodGroup.objects.count() == self._pods // GANG - self._pods // GANG // 2

    # What is measured

    @contextmanager
    def _watcher(self) -> Iterator[_Process]:
        environment = {
            **os.environ,
            "SCHEDULER_CLUSTER": "kubernetes",
            "KUBECONFIG": str(self._plane.kubeconfig),
            "REDIS_URL": self._redis,
            "LOG_LEVEL": "WARNING",
            "SCHEDULER_LEASE_SECONDS": "30",
        }
        process = subprocess.Popen([sys.executable, "manage.py", "watcher"], env=environment)
        try:
            yield _Process(process.pid)
        finally:
            process.terminate()
            process.wait(60)

    def _first_look(self, watcher: _Process) -> None:
        from scheduler.models import Mirror

        _wait_until(lambda: Mirror.objects.exclude(cluster_uid="").exists())
        began = time.monotonic()
        processor = watcher.processor_seconds()
        _wait_until(lambda: Mirror.objects.exclude(synced_at=None).exists())
        spent = watcher.processor_seconds() - processor
        found = self._nodes + self._pods + self._pods // GANG
        print(
            f"first look: {time.monotonic() - began:.1f} s, {spent:.1f} s of processor, "
            f"{spent * 1000 / found:.3f} ms an object; {watcher.memory()}"
        )

    def _under_load(
        self, what: str, watcher: _Process, change: Callable[[], None], is_done: Callable[[], bool]
    ) -> None:
        events = self._heard.events
        processor = watcher.processor_seconds()
        is_over = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            lags = pool.submit(_probes, self._probe, None, is_over)
            began = time.monotonic()
            change()
            asked = time.monotonic() - began
            _wait_until(is_done)
            mirrored = time.monotonic() - began
            is_over.set()
            self._lag(f"lag while {what}", lags.result())
        spent = watcher.processor_seconds() - processor
        heard = self._heard.events - events
        print(
            f"{what}: asked for in {asked:.1f} s, mirrored after {mirrored:.1f} s, {heard} events, "
            f"{spent:.1f} s of processor, {spent * 1000 / heard:.3f} ms an event"
        )

    def _after_a_kill(self) -> None:
        """kill -9 of the API server: everything is listed again, and then a pod is missing."""
        from scheduler.models import Pod

        doomed = f"gang-{self._pods // GANG - 1}-0"
        self._plane.kill_api_server()
        self._plane.start_api_server()
        began = time.monotonic()
        _insist(lambda: self._client.delete(PODS, doomed, "default", grace_seconds=0))
        _wait_until(lambda: not Pod.objects.filter(name=doomed).exists())
        print(
            f"API server killed: all pods are listed again {time.monotonic() - began:.1f} s after"
        )

    def _probe(self) -> float:
        """From the answer of the API server to a change until its row is there, in seconds."""
        from scheduler.models import Node

        wanted = not Node.objects.get(name="probe").unschedulable
        self._client.patch(NODES, "probe", {"spec": {"unschedulable": wanted}})
        answered = time.monotonic()
        _wait_until(lambda: Node.objects.filter(name="probe", unschedulable=wanted).exists(), 0.005)
        return time.monotonic() - answered

    def _lag(self, what: str, lags: list[float]) -> None:
        ordered = sorted(lags)
        last = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
        median = statistics.median(ordered)
        print(f"{what}: p50 {median * 1000:.0f} ms, p99 {last * 1000:.0f} ms ({len(lags)} probes)")

    def _compare(self) -> None:
        from tests.services.cluster.mirror.both_sides import differences

        found = differences(self._plane.api)
        print(f"differences between mirror and cluster at the end: {len(found)}")
        for line in found[:20]:
            print(f"  {line}")
        assert not found


def _probes(
    probe: Callable[[], float], most: int | None, is_over: threading.Event | None = None
) -> list[float]:
    """One after the other; so many, or until it is over."""
    from django.db import connection

    lags: list[float] = []
    while most is None or len(lags) < most:
        if is_over is not None and is_over.is_set() and lags:
            break
        lags.append(probe())
    if is_over is not None:
        connection.close()
    return lags


class _Counter:
    """How many events of pods, podgroups and nodes the API server sends."""

    def __init__(self, plane: ControlPlane) -> None:
        self._client = Client(from_kubeconfig(plane.kubeconfig))
        self._listed = threading.Semaphore(0)
        self.events = 0

    def start(self) -> None:
        """Returns when it listens."""
        for resource in (PODS, PODGROUPS, NODES):
            watch = Watch(self._client, resource, READERS[resource])
            threading.Thread(target=self._count, args=(watch,), daemon=True).start()
            self._listed.acquire()

    def _count(self, watch: Watch[Any]) -> None:
        for event in watch:
            self.events += isinstance(event, Changed | Removed)
            if isinstance(event, Listed):
                self._listed.release()


class _Process:
    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")

    def processor_seconds(self) -> float:
        fields = (self._folder / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND

    def memory(self) -> str:
        found = {}
        for line in (self._folder / "status").read_text().splitlines():
            name, _, value = line.partition(":")
            found[name] = value.strip()
        now = int(found["VmRSS"].split()[0]) // 1024
        most = int(found["VmHWM"].split()[0]) // 1024
        return f"{now} MB of memory, at most {most} MB"


def _for_all(number: int, work: Callable[[int], object]) -> None:
    with ThreadPoolExecutor(_THREADS) as threads:
        list(threads.map(work, range(number)))


def _timed(what: str, work: Callable[[], None]) -> None:
    began = time.monotonic()
    work()
    print(f"{what}: {time.monotonic() - began:.1f} s")


def _insist(ask: Callable[[], object]) -> None:
    """Of a server that has just started."""
    while True:
        try:
            ask()
            return
        except ApiError:
            time.sleep(0.1)


def _wait_until(is_so: Callable[[], object], step: float = 0.02) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError("the mirror did not follow")
        time.sleep(step)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
