"""Reads settings.SCHEDULER once, into a typed value."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

KUBERNETES = "kubernetes"
WATCH = "watch"
SCHEDULE = "schedule"
AUTO = "auto"
CONTROLLERS = (AUTO, "volcano", "fumarole")
MODES = (WATCH, SCHEDULE)
DEFAULT_SCHEDULER_NAMES = {WATCH: "fumarole,volcano", SCHEDULE: "fumarole"}
"""By mode: whoever watches Volcano sees its pods; whoever schedules takes only what is its own."""

DEFAULT_CONTROLLER_ACCOUNTS = (
    "system:kube-controller-manager",
    "system:serviceaccount:kube-system:*",
    "system:serviceaccount:volcano-system:*",
)

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
    deleting them as Volcano does. `controller_accounts` make podgroups and pods of the jobs of
    others, so they may name these as owners; a name that ends in * stands for all that begin so.
    """

    mode: str = WATCH
    scheduler_names: tuple[str, ...] = tuple(DEFAULT_SCHEDULER_NAMES[WATCH].split(","))
    evicts_by: str = EVICTION
    kubeconfig: str = ""
    context: str = ""
    queue_controller: str = AUTO
    job_controller: str = AUTO
    name: str = ""  # shown on every page; empty: as the kubeconfig calls the cluster
    controller_accounts: tuple[str, ...] = DEFAULT_CONTROLLER_ACCOUNTS


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
        controller_accounts=_controller_accounts(environment),
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


def _controller_accounts(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Those that are named, instead of the usual ones. * alone would be everybody."""
    given = environment.get("KUBERNETES_CONTROLLER_ACCOUNTS", "")
    names = tuple(name.strip() for name in given.split(",") if name.strip())
    if "*" in names:
        raise BadSetting(
            "KUBERNETES_CONTROLLER_ACCOUNTS is “*”, so everybody could name others as owners. "
            f"Give the accounts of controllers, such as {DEFAULT_CONTROLLER_ACCOUNTS[-1]}."
        )
    return names or DEFAULT_CONTROLLER_ACCOUNTS


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


CREATE_MAPPED = "mapped"
WHOM_TO_CREATE = (CREATE_MAPPED, "all", "never")


@dataclass(frozen=True, slots=True)
class SignOnConf:
    """Single sign-on by OpenID Connect. An empty `issuer`: there is none.

    `create_users` says who gets an account by signing on: those with a mapped group, all, or
    nobody. A session of the browser ends after `session_hours`, the roles of the groups
    `rights_hours` after the last sign-on (0: they stay until the next).
    """

    issuer: str = ""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    name: str = "single sign-on"
    scopes: tuple[str, ...] = ("openid", "profile", "email", "groups")
    groups_claim: str = "groups"
    username_claim: str = "preferred_username"
    create_users: str = CREATE_MAPPED
    session_hours: float = 8.0
    rights_hours: float = 168.0

    @property
    def is_on(self) -> bool:
        return bool(self.issuer)


def sign_on_conf(environment: Mapping[str, str]) -> SignOnConf:
    """Raises `BadSetting`. Asks no provider."""
    issuer = environment.get("SSO_ISSUER", "").strip()
    if not issuer:
        return SignOnConf()
    _check_issuer(issuer)
    usual = SignOnConf()
    found = SignOnConf(
        issuer=issuer,
        client_id=environment.get("SSO_CLIENT_ID", ""),
        client_secret=environment.get("SSO_CLIENT_SECRET", ""),
        name=environment.get("SSO_NAME") or usual.name,
        scopes=tuple((environment.get("SSO_SCOPES") or " ".join(usual.scopes)).split()),
        groups_claim=environment.get("SSO_GROUPS_CLAIM") or usual.groups_claim,
        username_claim=environment.get("SSO_USERNAME_CLAIM") or usual.username_claim,
        create_users=environment.get("SSO_CREATE_USERS") or usual.create_users,
        session_hours=_hours(environment, "SSO_SESSION_HOURS", usual.session_hours, least=0.01),
        rights_hours=_hours(environment, "SSO_RIGHTS_HOURS", usual.rights_hours, least=0.0),
    )
    _check_choice("SSO_CREATE_USERS", found.create_users, WHOM_TO_CREATE)
    for setting, value in (
        ("SSO_CLIENT_ID", found.client_id),
        ("SSO_CLIENT_SECRET", found.client_secret),
    ):
        if not value:
            raise BadSetting(
                f"SSO_ISSUER is set, but {setting} is not. The provider gives it to you where you "
                "register this console as a client."
            )
    if "openid" not in found.scopes:
        raise BadSetting("SSO_SCOPES lacks openid. Write it first, such as “openid profile email”.")
    return found


def _check_issuer(issuer: str) -> None:
    """Over plain HTTP anybody on the way could sign on as anybody."""
    parts = urlsplit(issuer)
    is_here = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts.scheme == "https" or (parts.scheme == "http" and is_here):
        return
    raise BadSetting(
        f"SSO_ISSUER is “{issuer}”. Give the address of the provider as it names itself, such as "
        "https://sso.example.com/realms/main. Without https it is taken on this machine only."
    )


def _hours(environment: Mapping[str, str], setting: str, usual: float, least: float) -> float:
    given = environment.get(setting, "").strip()
    try:
        hours = float(given or usual)
    except ValueError:
        hours = -1.0
    if not least <= hours <= 8760.0:
        raise BadSetting(f"{setting} is “{given}”. Give a number of hours from {least:g} to 8760.")
    return hours


@dataclass(frozen=True, slots=True)
class SchedulerConf:
    cluster: str = "simulated"
    kubernetes: KubernetesConf = field(default_factory=KubernetesConf)
    tick_seconds: float = 1.0
    lease_seconds: float = 30.0
    demo: bool = True
    check_sums_every: int = 60  # sessions between two checks of the resident snapshot's sums
    replay_megabytes: int = 64  # for sessions that can be replayed
    scenario_pods: int = 5_000  # above this many pods a session is kept only when asked for
    # retention by table, where it is not the usual one
    keep_hours: Mapping[str, float] = field(default_factory=dict)
    # on what may wait, where it is not the usual one
    limits: Mapping[str, int] = field(default_factory=dict)
    notices: NoticesConf = field(default_factory=NoticesConf)
    sign_on: SignOnConf = field(default_factory=SignOnConf)
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
