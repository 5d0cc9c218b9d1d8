"""A cluster made of arithmetic: pods start after a delay, run for their time, fail by chance, and
go after a grace when told to.

Everything here is a value and a step: `SimulatedCluster` works on the pods it was given and keeps
what it changed, so that whoever loaded the state can save it. Chance is drawn from the seed and the
pod's uid, so the same history gives the same cluster.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from scheduler.clusters.base import Answer, BindRequest, EvictRequest, PodReport, Reported


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """Seconds are seconds of the simulated clock."""

    start_delay: tuple[float, float] = (0.5, 2.0)
    run_seconds: tuple[float, float] = (30.0, 180.0)
    failure_probability: float = 0.0
    grace_seconds: float = 2.0
    node_timeout: float = 5.0

    @classmethod
    def read(cls, stored: Mapping[str, object]) -> SimulationSettings:
        known: dict[str, Any] = {name: stored[name] for name in cls.__slots__ if name in stored}
        known |= {
            name: tuple(known[name]) for name in ("start_delay", "run_seconds") if name in known
        }
        return cls(**known)


@dataclass(frozen=True, slots=True)
class SimulatedPod:
    """One pod on a machine. `next_at` is the moment of its next step on the simulated clock."""

    pod_id: int
    node: str
    next_at: float
    run_seconds: float
    exit_code: int = 0
    running: bool = False
    leaving: bool = False
    message: str = ""


def start(
    request: BindRequest, *, clock: float, seed: int, settings: SimulationSettings
) -> SimulatedPod:
    """A machine takes a pod: when it will start, how long it will run and how it will end are
    settled here.
    """
    chance = random.Random(f"{seed}:{request.uid}")  # noqa: S311 - a simulation
    delay = chance.uniform(*settings.start_delay)
    usual = chance.uniform(*settings.run_seconds)
    planned = request.template.get("run_seconds")
    exit_code = int(cast(int, request.template.get("exit_code") or 0))
    if chance.random() < settings.failure_probability:
        exit_code = exit_code or 1
    if planned is None:
        run_seconds = usual
    else:
        run_seconds = float(cast(float, planned))
    return SimulatedPod(request.pod_id, request.node, clock + delay, run_seconds, exit_code)


def step(pod: SimulatedPod, clock: float) -> tuple[SimulatedPod | None, list[PodReport]]:
    """One pod brought up to the clock: the pod afterwards (None when it is gone) and what is to be
    told, in order.
    """
    reports: list[PodReport] = []
    while pod.next_at <= clock:
        if pod.leaving:
            return None, [*reports, PodReport(pod.pod_id, Reported.GONE, message=pod.message)]
        if pod.running:
            return None, [*reports, _end_of(pod)]
        reports.append(PodReport(pod.pod_id, Reported.RUNNING))
        pod = replace(pod, running=True, next_at=pod.next_at + pod.run_seconds)
    return pod, reports


def _end_of(pod: SimulatedPod) -> PodReport:
    if pod.exit_code == 0:
        return PodReport(pod.pod_id, Reported.SUCCEEDED, exit_code=0)
    return PodReport(
        pod.pod_id, Reported.FAILED, exit_code=pod.exit_code, message=f"exit code {pod.exit_code}"
    )


@dataclass(slots=True)
class SimulatedCluster:
    """The cluster protocol over the pods that matter now: those that are due, and those a request
    names.

    `changed` and `gone` tell the caller what to save. Nodes that are not ready refuse pods.
    """

    clock: float
    seed: int
    settings: SimulationSettings
    pods: dict[int, SimulatedPod] = field(default_factory=dict)
    ready_nodes: frozenset[str] | None = None
    changed: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)

    @classmethod
    def holding(
        cls,
        pods: Iterable[SimulatedPod],
        *,
        clock: float,
        seed: int = 1,
        settings: SimulationSettings | None = None,
    ) -> SimulatedCluster:
        return cls(clock, seed, settings or SimulationSettings(), {pod.pod_id: pod for pod in pods})

    def observe(self) -> Sequence[PodReport]:
        reports: list[PodReport] = []
        for pod in sorted(self.pods.values(), key=lambda pod: (pod.next_at, pod.pod_id)):
            after, of_pod = step(pod, self.clock)
            reports.extend(of_pod)
            if after is not pod:
                self._keep_pod(pod.pod_id, after)
        return reports

    def bind(self, requests: Sequence[BindRequest]) -> Sequence[Answer]:
        return [self._bind_pod(request) for request in requests]

    def _bind_pod(self, request: BindRequest) -> Answer:
        if request.pod_id in self.pods:
            return Answer(request.pod_id)
        if self.ready_nodes is not None and request.node not in self.ready_nodes:
            return Answer(request.pod_id, f"node {request.node} is not ready")
        self._keep_pod(
            request.pod_id, start(request, clock=self.clock, seed=self.seed, settings=self.settings)
        )
        return Answer(request.pod_id)

    def evict(self, requests: Sequence[EvictRequest]) -> Sequence[Answer]:
        for request in requests:
            self._leave_node(request.pod_id, self._grace_seconds(request), request.reason)
        return [Answer(request.pod_id) for request in requests]

    def _grace_seconds(self, request: EvictRequest) -> float:
        if request.grace_seconds is None:
            return self.settings.grace_seconds
        return request.grace_seconds

    def _leave_node(self, pod_id: int, after: float, message: str) -> None:
        pod = self.pods.get(pod_id)
        if pod is None:  # never started here: gone at once, and told so at the next look
            pod = SimulatedPod(pod_id, "", self.clock, 0.0)
            after = 0.0
        if not pod.leaving:
            self._keep_pod(
                pod_id, replace(pod, leaving=True, next_at=self.clock + after, message=message)
            )

    def lose_node(self, node: str) -> None:
        """The machine is gone; what was on it is missed after a while.

        No real cluster can be told this: it tells it.
        """
        for pod in [pod for pod in self.pods.values() if pod.node == node]:
            self._leave_node(pod.pod_id, self.settings.node_timeout, f"node {node} was lost")

    def _keep_pod(self, pod_id: int, pod: SimulatedPod | None) -> None:
        if pod is None:
            self.pods.pop(pod_id, None)
            self.changed.discard(pod_id)
            self.gone.add(pod_id)
        else:
            self.pods[pod_id] = pod
            self.gone.discard(pod_id)
            self.changed.add(pod_id)
