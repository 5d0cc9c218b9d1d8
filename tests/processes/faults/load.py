"""Gangs that come, run for a moment and go, as the objects of an API server tell it.

It plays whoever owns the pods: a pod whose node is gone is removed and made again. What is wrong is
kept in `problems`, with the second in which it was seen.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.errors import AlreadyExists, ApiError, NotFound
from scheduler.clusters.kubernetes.resources import NODES, PODGROUPS, PODS
from tests.control_plane import objects
from tests.control_plane.placed import GROUP, broken_gangs, node_of, overcommitted

NAMESPACE = "default"
CORES_OF_NODE = 16
_THREADS = 8
_AGAIN_SECONDS = 0.2
_A_MOMENT_SECONDS = 30.0  # from the end of a node to the last pod that is bound to it, at most


@dataclass(slots=True)
class Gang:
    """`uids` are those of its pods, by name. `whole_at` is when all of them had a node."""

    name: str
    size: int
    cores: int
    uids: dict[str, str] = field(default_factory=dict)
    made_at: float = field(default_factory=time.monotonic)
    whole_at: float | None = None
    lives_seconds: float = 0.0

    def pods(self) -> list[str]:
        return [f"{self.name}-{number}" for number in range(self.size)]


class Load:
    def __init__(self, client: Client, nodes: int, chance: random.Random) -> None:
        self._client = client
        self._chance = chance
        self._threads = ThreadPoolExecutor(_THREADS)
        self._most_cores = nodes * CORES_OF_NODE * 1.3
        self._gangs: dict[str, Gang] = {}
        self._made = 0
        self._began = time.monotonic()
        self.node_names = [f"n{number:03}" for number in range(nodes)]
        self.nodes_of_pods: dict[str, str] = {}  # by uid, of all that were ever seen
        self.looks = 0
        self._seen_at: dict[str, float] = {}
        self._lock = threading.Lock()  # an older list must not be compared with a newer one
        self._deleted_nodes: dict[str, float] = {}  # and when
        self.made_again = 0
        self.made_again_unseen = 0
        self.problems: list[str] = []

    @property
    def binds(self) -> int:
        return len(self.nodes_of_pods)

    def close(self) -> None:
        self._threads.shutdown()

    # Nodes

    def make_nodes(self) -> None:
        list(self._threads.map(self.make_node, self.node_names))

    def make_node(self, name: str) -> None:
        """The API server taints each new node, and no controller takes the taint away."""
        node = objects.node(name, cpu=str(CORES_OF_NODE), memory="64Gi", is_kwok=True)
        self._insist(lambda: self._client.create(NODES, node))
        self._insist(lambda: self._client.patch(NODES, name, {"spec": {"taints": []}}))

    def delete_node(self, name: str) -> None:
        """KWOK, or the collector of garbage, then deletes the pods that were on it."""
        self._deleted_nodes[name] = time.monotonic()
        self._insist(lambda: self._client.delete(NODES, name))

    # Gangs

    def look(self, *, goes_on: bool) -> None:
        """Compare, and take the next step of each gang. New ones come only while it goes on."""
        found = self.compare()
        if found is None:
            return
        nodes, pods = found
        by_name = {pod["metadata"]["name"]: pod for pod in pods}
        self._make_pods_of_lost_nodes_again({node["metadata"]["name"] for node in nodes}, by_name)
        self._note_lost(by_name)
        self._note_whole(by_name)
        waits = any(gang.whole_at is None for gang in self._gangs.values())
        if goes_on or waits:
            self._end_old_ones()
        if goes_on:
            self._make_new_ones()

    def compare(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]] | None:
        """All nodes and pods that the API server has; None while it is away."""
        with self._lock:
            try:
                nodes = self._client.list(NODES)
                pods = self._client.list(PODS, NAMESPACE)
            except ApiError:
                return None
            self.looks += 1
            self._check(nodes, pods)
            return nodes, pods

    def is_settled(self) -> bool:
        return all(gang.whole_at is not None for gang in self._gangs.values())

    def waiting(self) -> list[str]:
        return [gang.name for gang in self._gangs.values() if gang.whole_at is None]

    def places(self) -> dict[str, str]:
        """The node of each pod that is there, by uid."""
        found = {}
        for pod in self._client.list(PODS, NAMESPACE):
            found[pod["metadata"]["uid"]] = node_of(pod)
        return found

    def check_at_the_end(self) -> None:
        pods = self._client.list(PODS, NAMESPACE)
        least = {gang.name: gang.size for gang in self._gangs.values()}
        for problem in broken_gangs(pods, least):
            self._note(f"a gang is not whole: {problem}")
        expected = sum(least.values())
        if len(pods) != expected:
            self._note(f"{expected} pods are wanted, and {len(pods)} are there")

    def _check(self, nodes: list[dict[str, Any]], pods: list[dict[str, Any]]) -> None:
        for problem in overcommitted(nodes, pods):
            self._note(f"over-committed: {problem}")
        for pod in pods:
            uid = pod["metadata"]["uid"]
            node = node_of(pod)
            before = self.nodes_of_pods.get(uid, "")
            if before and before != node:
                self._note(f"{pod['metadata']['name']} was on {before} and is on {node}")
            if node and not before:
                self.nodes_of_pods[uid] = node
                self._seen_at[uid] = time.monotonic()

    def _note_lost(self, by_name: Mapping[str, Any]) -> None:
        """A pod that went away, and nobody here took it away."""
        for gang in self._gangs.values():
            for name, uid in list(gang.uids.items()):
                there = by_name.get(name, {}).get("metadata", {})
                if there.get("uid") == uid:
                    continue
                if not self._went_with_its_node(gang, uid):
                    self._note(f"pod {name} was lost")
                self._make_pod_again(gang, name)

    def _went_with_its_node(self, gang: Gang, uid: str) -> bool:
        """A pod may be bound and deleted between two looks: then nobody here saw its node."""
        node = self.nodes_of_pods.get(uid)
        if node is not None:
            deleted_at = self._deleted_nodes.get(node)
            return deleted_at is not None and deleted_at > self._seen_at[uid] - _A_MOMENT_SECONDS
        is_possible = any(at > gang.made_at for at in self._deleted_nodes.values())
        self.made_again_unseen += is_possible
        return is_possible

    def _note_whole(self, by_name: Mapping[str, Any]) -> None:
        for gang in self._gangs.values():
            has_all = all(name in by_name and node_of(by_name[name]) for name in gang.pods())
            if not has_all:
                gang.whole_at = None
            elif gang.whole_at is None:
                gang.whole_at = time.monotonic()
                gang.lives_seconds = self._chance.uniform(1.0, 5.0)

    def _end_old_ones(self) -> None:
        now = time.monotonic()
        over = [
            gang
            for gang in self._gangs.values()
            if gang.whole_at is not None and now - gang.whole_at > gang.lives_seconds
        ]
        for gang in over:
            del self._gangs[gang.name]
        list(self._threads.map(self._delete_gang, over))

    def _make_new_ones(self) -> None:
        cores = sum(gang.size * gang.cores for gang in self._gangs.values())
        new = []
        while cores < self._most_cores:
            self._made += 1
            size = self._chance.randint(2, 6)
            gang = Gang(f"gang-{self._made}", size, self._chance.randint(1, 3))
            new.append(gang)
            cores += size * gang.cores
        list(self._threads.map(self._make_gang, new))
        for gang in new:
            self._gangs[gang.name] = gang

    def _make_gang(self, gang: Gang) -> None:
        group = objects.podgroup(gang.name, min_member=gang.size)
        self._insist(lambda: self._client.create(PODGROUPS, group, NAMESPACE))
        for name in gang.pods():
            self._make_pod(gang, name)

    def _make_pod(self, gang: Gang, name: str) -> None:
        pod = objects.pod(name, cpu=str(gang.cores), annotations={GROUP: gang.name})
        made = self._insist(lambda: self._client.create(PODS, pod, NAMESPACE))
        if made is None:  # it was made, and the answer got lost
            made = self._insist(lambda: self._client.get(PODS, name, NAMESPACE))
        gang.uids[name] = ""
        if made is not None:
            gang.uids[name] = made["metadata"]["uid"]

    def _delete_gang(self, gang: Gang) -> None:
        for name in gang.pods():
            self._insist(lambda name=name: self._delete_pod(name))
        self._insist(lambda: self._client.delete(PODGROUPS, gang.name, NAMESPACE))

    def _delete_pod(self, name: str) -> object:
        return self._client.delete(PODS, name, NAMESPACE, grace_seconds=0)

    def _make_pods_of_lost_nodes_again(
        self, nodes: set[str], by_name: Mapping[str, dict[str, Any]]
    ) -> None:
        for gang in self._gangs.values():
            for name in gang.pods():
                pod = by_name.get(name)
                if pod is not None and node_of(pod) and node_of(pod) not in nodes:
                    self._make_pod_again(gang, name)
                    by_name[name]["spec"]["nodeName"] = ""
                    by_name[name]["metadata"]["uid"] = gang.uids[name]

    def _make_pod_again(self, gang: Gang, name: str) -> None:
        gang.uids.pop(name, None)
        self._insist(lambda: self._delete_pod(name))
        self._make_pod(gang, name)
        self.made_again += 1

    def _note(self, problem: str) -> None:
        seconds = time.monotonic() - self._began
        self.problems.append(f"at {seconds:.0f} s: {problem}")

    def _insist(self, ask: Callable[[], Any]) -> Any:
        """Of a server that comes and goes. What was done before its answer got lost is done."""
        while True:
            try:
                return ask()
            except (AlreadyExists, NotFound):
                return None
            except ApiError:
                time.sleep(_AGAIN_SECONDS)
