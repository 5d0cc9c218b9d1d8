"""One scheduler on one fresh cluster: started, warmed up, given the load, and measured."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import quantiles
from typing import Any

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.credentials import from_kubeconfig
from scheduler.clusters.kubernetes.errors import NotFound
from scheduler.clusters.kubernetes.resources import NODES, PODS
from tests.bench.schedulers.contestants import Contestant
from tests.bench.schedulers.load import GANG, Creating, Load, make_nodes, pod_of
from tests.bench.schedulers.timeline import Timeline, TimelineProcess
from tests.control_plane import objects, programs
from tests.control_plane.fumarole import processor_seconds_of
from tests.control_plane.placed import broken_gangs, overcommitted
from tests.control_plane.plane import ControlPlane
from tests.running import descendants_of

_PATIENCE_SECONDS = 1800.0
_SAMPLE_SECONDS = 2.0
_MEGABYTE_IN_KB = 1024

Result = dict[str, Any]


def race(contestant: Contestant, load: Load, folder: Path) -> Result:
    with ExitStack() as stack:
        options = contestant.api_server_options
        plane = stack.enter_context(
            ControlPlane(programs.find(), folder / "plane", api_server_options=options)
        )
        kwok = stack.enter_context(plane.kwok())
        client = Client(from_kubeconfig(plane.kubeconfig))
        make_nodes(client, load)
        pids = stack.enter_context(contestant.start(plane, folder))
        _warm_up(client, contestant)
        if contestant.has_gangs:
            _check_that_gangs_are_kept(client, contestant)
        servers = {**plane.pids(), "kwok": kwok.pid}
        return _measure(contestant, load, plane, client, pids, servers)


def _warm_up(client: Client, contestant: Contestant) -> None:
    """Until it has placed one pod: then it has read the cluster."""
    client.create(PODS, pod_of("probe", 0, contestant.scheduler_name), "default")
    _wait_until(lambda: client.get(PODS, "probe-0", "default")["spec"].get("nodeName"), "a probe")
    client.delete(PODS, "probe-0", "default", grace_seconds=0)
    _wait_until(lambda: _is_gone(client, "probe-0"), "the probe to go")


def _check_that_gangs_are_kept(client: Client, contestant: Contestant) -> None:
    """A gang of which one pod fits nowhere must wait as a whole."""
    contestant.make_gang(client, "large", 2)
    for number, cores in enumerate(("1", "1000")):
        pod = objects.pod(f"large-{number}", cpu=cores, scheduler=contestant.scheduler_name)
        client.create(PODS, contestant.mark(pod, "large"), "default")
    _warm_up(client, contestant)
    placed = client.get(PODS, "large-0", "default")["spec"].get("nodeName")
    assert not placed, f"{contestant.name} has divided a gang"
    for number in range(2):
        client.delete(PODS, f"large-{number}", "default", grace_seconds=0)


def _is_gone(client: Client, name: str) -> bool:
    try:
        client.get(PODS, name, "default")
    except NotFound:
        return True
    return False


def _measure(
    contestant: Contestant,
    load: Load,
    plane: ControlPlane,
    client: Client,
    pids: Mapping[str, int],
    servers: Mapping[str, int],
) -> Result:
    timeline = TimelineProcess(plane.kubeconfig, load.all_pods)
    try:
        timeline.wait_until_it_listens()
        before = _processor_seconds({**pids, **servers})
        load_before = os.getloadavg()[0]
        began = time.monotonic()
        with _MemoryWatch(pids) as memory:
            creating = Creating(
                client, load, contestant.scheduler_name, contestant.make_gang, contestant.mark
            )
            creating.run()
            created_seconds = time.monotonic() - began
            _wait_until(timeline.has_ended, f"{load.all_pods} running pods")
            found = timeline.result()
    finally:
        timeline.stop()
    after = _processor_seconds({**pids, **servers})
    spent = {name: round(after[name] - before[name], 2) for name in after}
    problems = _problems(client, contestant, load)
    for problem in problems[:10]:
        print(f"  {problem}", file=sys.stderr)
    return {
        "scheduler": contestant.name,
        "hasGangs": contestant.has_gangs,
        "createdSeconds": round(created_seconds, 1),
        **_times(found),
        "schedulerCpuSeconds": round(sum(spent[name] for name in pids), 1),
        "serverCpuSeconds": round(spent["kube-apiserver"] + spent["etcd"], 1),
        "cpuSeconds": spent,
        "memoryMegabytes": memory.most,
        "memoryParts": memory.parts,
        "nodesOverCommittedOrGangsBroken": len(problems),
        "loadBefore": round(load_before, 1),
        "loadAfter": round(os.getloadavg()[0], 1),
    }


def _times(found: Timeline) -> Result:
    waits = [found.bound[name] - found.created[name] for name in found.bound]
    cuts = quantiles(waits, n=100)
    first = min(found.created.values())
    last_bound = max(found.bound.values())
    return {
        "allRunningSeconds": round(max(found.running.values()) - first, 1),
        "allBoundSeconds": round(last_bound - first, 1),
        "boundP50Seconds": round(cuts[49], 2),
        "boundP99Seconds": round(cuts[98], 2),
        "bindsASecond": round(len(waits) / (last_bound - min(found.bound.values()))),
    }


def _problems(client: Client, contestant: Contestant, load: Load) -> list[str]:
    """By the API server's own objects, at the end."""
    pods = client.list(PODS)
    problems = overcommitted(client.list(NODES), pods)
    if contestant.has_gangs:
        named = [{**pod, "metadata": _with_annotations(pod)} for pod in pods]
        problems += broken_gangs(named, dict.fromkeys(load.gang_names(), GANG))
    return problems


def _with_annotations(pod: dict[str, Any]) -> dict[str, Any]:
    """Native gangs are named in the spec, pods that are alone in neither place."""
    metadata: dict[str, Any] = pod["metadata"]
    native = pod["spec"].get("schedulingGroup", {}).get("podGroupName")
    annotations = dict(metadata.get("annotations") or {})
    if native:
        annotations["scheduling.k8s.io/group-name"] = native
    return {**metadata, "annotations": annotations}


def _processor_seconds(pids: Mapping[str, int]) -> dict[str, float]:
    """With all that each has forked."""
    found = {}
    for name, pid in pids.items():
        living = {pid, *descendants_of(pid)}
        found[name] = sum(processor_seconds_of(each) for each in living)
    return found


class _MemoryWatch:
    """The most that all processes hold together: what several share counts once."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = pids
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.most = 0
        self.parts: dict[str, int] = {}

    def __enter__(self) -> _MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._is_over.is_set():
            parts = {name: _megabytes(pid) for name, pid in self._pids.items()}
            if sum(parts.values()) > self.most:
                self.most = sum(parts.values())
                self.parts = parts
            self._is_over.wait(_SAMPLE_SECONDS)


def _megabytes(pid: int) -> int:
    whole = 0
    for each in {pid, *descendants_of(pid)}:
        try:
            lines = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        whole += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return whole // _MEGABYTE_IN_KB


def _wait_until(is_so: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited in vain for {what}")
        time.sleep(0.1)
