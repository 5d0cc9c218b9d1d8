"""python -m tests.bench.kubernetes [--pods N]: what pods cost our processor.

Listed, followed and bound, against a real API server, which runs beside it. Only the time of
our own threads counts, so a busy machine hardly matters.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from scheduler.clusters.kubernetes.binding import BindOrder, BindResult, bind_pods
from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.credentials import from_kubeconfig
from scheduler.clusters.kubernetes.read import READERS
from scheduler.clusters.kubernetes.resources import PODS
from scheduler.clusters.kubernetes.watch import Watch
from scheduler.clusters.kubernetes.watch_events import Changed
from tests.control_plane import objects, programs
from tests.control_plane.plane import ControlPlane

_THREADS = 8
_REPETITIONS = 3
_SIDECAR = {"name": "log", "image": "example.com/image", "restartPolicy": "Always"}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.kubernetes", description=__doc__)
    parser.add_argument("--pods", type=int, default=2000, help="how many pods (default 2000)")
    options = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory() as folder,
        ControlPlane(programs.find(), Path(folder)) as plane,
    ):
        _measure(Client(from_kubeconfig(plane.kubeconfig)), options.pods)
    return 0


def _measure(client: Client, pods: int) -> None:
    _for_all(pods, lambda number: client.create(PODS, _pod(number), "default"))
    raws = client.list(PODS)
    listing = min(_thread_seconds(lambda: client.list(PODS)) for _ in range(_REPETITIONS))
    reading = min(_thread_seconds(lambda: _read(raws)) for _ in range(_REPETITIONS))
    _say("a listed pod: ask and parse", listing, pods)
    _say("a listed pod: read", reading, pods)
    _say("a watch event, read", _follow_changes(client, pods), pods)
    _say("a bind, all threads", _bind_all(client, raws), pods)


def _bind_all(client: Client, raws: list[dict[str, Any]]) -> float:
    """The processor time of this whole process: the threads that bind are not ours to ask."""
    orders = []
    for raw in raws:
        meta = raw["metadata"]
        orders.append(BindOrder(meta["uid"], meta["namespace"], meta["name"], "n1"))
    before = time.process_time()
    answers = bind_pods(client, orders)
    spent = time.process_time() - before
    assert all(answer.result is BindResult.BOUND for answer in answers)
    return spent


def _read(raws: list[dict[str, Any]]) -> None:
    for raw in raws:
        READERS[PODS](raw)


def _follow_changes(client: Client, pods: int) -> float:
    """The processor time of following one change of each pod, after all of them were made."""
    version = next(client.pages(PODS)).resource_version
    change = {"metadata": {"labels": {"seen": "true"}}}
    _for_all(pods, lambda number: client.patch(PODS, f"pod-{number}", change, "default"))
    watch = Watch(client, PODS, READERS[PODS], since=version)
    events = iter(watch)
    seconds = _thread_seconds(lambda: _take(events, pods))
    watch.stop()
    return seconds


def _take(events: Any, changes: int) -> None:
    taken = 0
    while taken < changes:
        taken += isinstance(next(events), Changed)


def _pod(number: int) -> dict[str, Any]:
    pod = objects.pod(f"pod-{number}", annotations={"scheduling.k8s.io/group-name": "gang"})
    pod["spec"]["initContainers"] = [_SIDECAR]
    return pod


def _for_all(pods: int, ask: Callable[[int], object]) -> None:
    with ThreadPoolExecutor(_THREADS) as threads:
        list(threads.map(ask, range(pods)))


def _thread_seconds(work: Callable[[], object]) -> float:
    before = time.thread_time()
    work()
    return time.thread_time() - before


def _say(what: str, seconds: float, pods: int) -> None:
    print(f"{what:30} {1e6 * seconds / pods:7.0f} µs")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
