"""Reads settings.SCHEDULER once, into a typed value."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from django.conf import settings

KUBERNETES = "kubernetes"
WATCH = "watch"
SCHEDULE = "schedule"
AUTO = "auto"
QUEUE_CONTROLLERS = (AUTO, "volcano", "fumarole")
DEFAULT_SCHEDULER_NAMES = "fumarole,volcano"


class BadSetting(ValueError):
    """A setting that cannot be used. The message says what to write instead."""


@dataclass(frozen=True, slots=True)
class KubernetesConf:
    """`scheduler_names` are the `schedulerName`s of the pods that have rows here.

    Pods of all others only take room on nodes. An empty `kubeconfig` stands for the usual places:
    the service account inside of a cluster, else ~/.kube/config. `queue_controller` is who opens
    and closes queues and writes their status; "auto" looks whether Volcano's controllers run.
    """

    mode: str = WATCH
    scheduler_names: tuple[str, ...] = tuple(DEFAULT_SCHEDULER_NAMES.split(","))
    kubeconfig: str = ""
    context: str = ""
    queue_controller: str = AUTO
    name: str = ""  # shown on every page; empty: as the kubeconfig calls the cluster


def kubernetes_conf(environment: Mapping[str, str]) -> KubernetesConf:
    """Raises `BadSetting`. Asks no cluster."""
    names = environment.get("KUBERNETES_SCHEDULER_NAMES") or DEFAULT_SCHEDULER_NAMES
    found = KubernetesConf(
        mode=environment.get("KUBERNETES_MODE") or WATCH,
        scheduler_names=tuple(name.strip() for name in names.split(",") if name.strip()),
        kubeconfig=environment.get("KUBECONFIG", ""),
        context=environment.get("KUBERNETES_CONTEXT", ""),
        queue_controller=environment.get("KUBERNETES_QUEUE_CONTROLLER") or AUTO,
        name=environment.get("KUBERNETES_CLUSTER_NAME", ""),
    )
    _check_mode(found.mode)
    _check_queue_controller(found.queue_controller)
    _check_kubeconfig(found.kubeconfig)
    if not found.scheduler_names:
        raise BadSetting(
            "KUBERNETES_SCHEDULER_NAMES names no scheduler. "
            f"Give names with commas between them, such as {DEFAULT_SCHEDULER_NAMES}."
        )
    return found


def _check_mode(mode: str) -> None:
    if mode == SCHEDULE:
        raise BadSetting(
            "KUBERNETES_MODE is schedule, which this release cannot do yet: "
            "it watches a cluster, and another scheduler places the pods. Set it to watch."
        )
    if mode != WATCH:
        raise BadSetting(f"KUBERNETES_MODE is “{mode}”. Set it to watch.")


def _check_queue_controller(name: str) -> None:
    if name not in QUEUE_CONTROLLERS:
        raise BadSetting(
            f"KUBERNETES_QUEUE_CONTROLLER is “{name}”. "
            f"Set it to one of {', '.join(QUEUE_CONTROLLERS)}."
        )


def _check_kubeconfig(paths: str) -> None:
    """Like kubectl: several files may be named, and those that are missing are passed over."""
    files = [Path(path).expanduser() for path in paths.split(os.pathsep) if path]
    if files and not any(path.is_file() for path in files):
        raise BadSetting(
            f"KUBECONFIG names {paths}, which is not a file. "
            "Give the path of the file that kubectl uses, such as ~/.kube/config."
        )


@dataclass(frozen=True, slots=True)
class SchedulerConf:
    cluster: str = "simulated"
    kubernetes: KubernetesConf = field(default_factory=KubernetesConf)
    tick_seconds: float = 1.0
    lease_seconds: float = 30.0
    demo: bool = True
    check_sums_every: int = 60  # sessions between two checks of the resident snapshot's sums
    scenarios_kept: int = 30  # sessions that can be replayed
    scenario_pods: int = 5_000  # above this many pods a session is kept only when asked for
    # retention by table, where it is not the usual one
    keep_hours: Mapping[str, float] = field(default_factory=dict)
    # on what may wait, where it is not the usual one
    limits: Mapping[str, int] = field(default_factory=dict)
    gap_seconds: float = (
        0.2  # between the beginnings of two sessions, however often one is asked for
    )


@cache
def conf() -> SchedulerConf:
    return SchedulerConf(**settings.SCHEDULER)


def is_kubernetes() -> bool:
    return conf().cluster == KUBERNETES


def is_shadow() -> bool:
    """Whether another scheduler places the pods: sessions then only say what they would do."""
    return is_kubernetes() and conf().kubernetes.mode == WATCH
