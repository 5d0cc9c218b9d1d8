"""Reads settings.SCHEDULER once, into a typed value."""

from __future__ import annotations

import ipaddress
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
CONTROLLERS = (AUTO, "volcano", "fumarole")
MODES = (WATCH, SCHEDULE)
DEFAULT_SCHEDULER_NAMES = {WATCH: "fumarole,volcano", SCHEDULE: "fumarole"}
"""By mode: whoever watches Volcano sees its pods; whoever schedules takes only what is its own."""

EVICTION = "eviction"
DELETE = "delete"
WAYS_TO_EVICT = (EVICTION, DELETE)


class BadSetting(ValueError):
    """A setting that cannot be used. The message says what to write instead."""


@dataclass(frozen=True, slots=True)
class KubernetesConf:
    """`scheduler_names` are the `schedulerName`s of the pods that have rows here.

    Pods of all others only take room on nodes. An empty `kubeconfig` stands for the usual places:
    the service account inside of a cluster, else ~/.kube/config. `queue_controller` is who opens
    and closes queues and writes their status; "auto" looks whether Volcano's controllers run.
    `job_controller` is who makes the pods of Volcano Jobs, where pods are placed here.
    `evicts_by` says how pods are stopped: by an eviction, which respects disruption budgets, or by
    deleting them as Volcano does.
    """

    mode: str = WATCH
    scheduler_names: tuple[str, ...] = tuple(DEFAULT_SCHEDULER_NAMES[WATCH].split(","))
    evicts_by: str = EVICTION
    kubeconfig: str = ""
    context: str = ""
    queue_controller: str = AUTO
    job_controller: str = AUTO
    name: str = ""  # shown on every page; empty: as the kubeconfig calls the cluster


def kubernetes_conf(environment: Mapping[str, str]) -> KubernetesConf:
    """Raises `BadSetting`. Asks no cluster."""
    mode = environment.get("KUBERNETES_MODE") or WATCH
    _check_choice("KUBERNETES_MODE", mode, MODES)
    usual_names = DEFAULT_SCHEDULER_NAMES[mode]
    names = environment.get("KUBERNETES_SCHEDULER_NAMES") or usual_names
    found = KubernetesConf(
        mode=mode,
        scheduler_names=tuple(name.strip() for name in names.split(",") if name.strip()),
        kubeconfig=environment.get("KUBECONFIG", ""),
        context=environment.get("KUBERNETES_CONTEXT", ""),
        queue_controller=environment.get("KUBERNETES_QUEUE_CONTROLLER") or AUTO,
        job_controller=environment.get("KUBERNETES_JOB_CONTROLLER") or AUTO,
        evicts_by=environment.get("KUBERNETES_EVICTION") or EVICTION,
        name=environment.get("KUBERNETES_CLUSTER_NAME", ""),
    )
    _check_choice("KUBERNETES_QUEUE_CONTROLLER", found.queue_controller, CONTROLLERS)
    _check_choice("KUBERNETES_JOB_CONTROLLER", found.job_controller, CONTROLLERS)
    _check_choice("KUBERNETES_EVICTION", found.evicts_by, WAYS_TO_EVICT)
    _check_kubeconfig(found.kubeconfig)
    if not found.scheduler_names:
        raise BadSetting(
            "KUBERNETES_SCHEDULER_NAMES names no scheduler. "
            f"Give names with commas between them, such as {usual_names}."
        )
    return found


def _check_choice(setting: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise BadSetting(f"{setting} is “{value}”. Set it to one of {', '.join(choices)}.")


def _check_kubeconfig(paths: str) -> None:
    """Like kubectl: several files may be named, and those that are missing are passed over."""
    files = [Path(path).expanduser() for path in paths.split(os.pathsep) if path]
    if files and not any(path.is_file() for path in files):
        raise BadSetting(
            f"KUBECONFIG names {paths}, which is not a file. "
            "Give the path of the file that kubectl uses, such as ~/.kube/config."
        )


@dataclass(frozen=True, slots=True)
class NoticesConf:
    """`public_url` is where people find the pages; without it messages have no links.

    `allowed_networks` are private networks that webhooks and chat may be sent to all the same.
    """

    public_url: str = ""
    gather_seconds: float = 15.0  # a message waits until nothing was added to it for so long
    allowed_networks: tuple[str, ...] = ()


def notices_conf(environment: Mapping[str, str]) -> NoticesConf:
    """Raises `BadSetting`."""
    url = environment.get("PUBLIC_URL", "").strip().rstrip("/")
    if url and not url.startswith(("http://", "https://")):
        raise BadSetting(
            f"PUBLIC_URL is “{url}”. Give the address of the pages, such as "
            "https://fumarole.example.com."
        )
    networks = environment.get("NOTICE_ALLOWED_NETWORKS", "")
    return NoticesConf(
        public_url=url,
        gather_seconds=_seconds(environment, "NOTICE_GATHER_SECONDS", 15.0),
        allowed_networks=tuple(_network(entry) for entry in networks.split(",") if entry.strip()),
    )


def _seconds(environment: Mapping[str, str], setting: str, usual: float) -> float:
    given = environment.get(setting, "").strip()
    try:
        seconds = float(given or usual)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= 3600.0:
        raise BadSetting(f"{setting} is “{given}”. Give a number of seconds from 0 to 3600.")
    return seconds


def _network(entry: str) -> str:
    try:
        return str(ipaddress.ip_network(entry.strip()))
    except ValueError:
        raise BadSetting(
            f"NOTICE_ALLOWED_NETWORKS: “{entry.strip()}” is neither an address nor a network. "
            "Give networks with commas between them, such as 10.0.0.0/8,192.168.1.7."
        ) from None


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
    notices: NoticesConf = field(default_factory=NoticesConf)
    # of one core, for looking ahead to when gangs start; 0: it is not done
    forecast_share: float = 0.05
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


def schedules_cluster() -> bool:
    """Whether sessions place pods of a real cluster."""
    return is_kubernetes() and conf().kubernetes.mode == SCHEDULE
