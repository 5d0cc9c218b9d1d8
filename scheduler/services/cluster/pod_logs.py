"""What containers of a pod write, and how they are: asked of the API server when somebody looks.

The console's own account asks. So it is decided here who may read: logs may hold secrets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from scheduler.clusters.kubernetes.client import Timeouts
from scheduler.clusters.kubernetes.credentials import CredentialsError
from scheduler.clusters.kubernetes.errors import ApiError, Forbidden, NotFound
from scheduler.clusters.kubernetes.resources import PODS
from scheduler.conf import is_kubernetes, schedules_cluster
from scheduler.models import Pod
from scheduler.services.accounts.access import require_logs
from scheduler.services.accounts.actors import Actor
from scheduler.services.cluster.api_server import api_server

USUAL_LINES: Final = 200
MOST_LINES: Final = 5000
MOST_BYTES: Final = 1_000_000
_TIMEOUTS: Final = Timeouts(connect=3.0, read=10.0)  # somebody waits at a page


@dataclass(frozen=True, slots=True)
class PodLog:
    """`text` is "" where there is none; `problem` says why it cannot be read, in a sentence.

    `is_cut`: it is longer than `MOST_BYTES`, and its end is missing.
    """

    text: str = ""
    problem: str = ""
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Container:
    """`state` is running, waiting or terminated; `reason` such as ImagePullBackOff or Error."""

    name: str
    state: str
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    restarts: int = 0


def read_log(
    by: Actor,
    pod: Pod,
    *,
    container: str = "",
    lines: int = USUAL_LINES,
    previous: bool = False,
) -> PodLog:
    """The last lines of a container; of its last run before the current one if `previous`.

    Raises `Forbidden` for a reader who is neither an operator of the queue nor the owner.
    """
    group = pod.podgroup
    require_logs(by, group.queue.place, group.owner)
    if not is_kubernetes():
        return PodLog(problem="Pods of a simulated cluster write no logs.")
    if not schedules_cluster():
        return PodLog(
            problem=f"Where the cluster is only watched, logs are read with kubectl: "
            f"kubectl logs --namespace {pod.namespace} {pod.name}"
        )
    asked: dict[str, str | int] = {
        "tailLines": max(1, min(lines, MOST_LINES)),
        "limitBytes": MOST_BYTES,
    }
    if container:
        asked["container"] = container
    if previous:
        asked["previous"] = "true"
    try:
        text = api_server(_TIMEOUTS).get_log(pod.name, pod.namespace, asked)
    except (ApiError, CredentialsError) as error:
        return PodLog(problem=_problem(pod, error))
    return PodLog(text, is_cut=len(text.encode()) >= MOST_BYTES)


def _problem(pod: Pod, error: Exception) -> str:
    if isinstance(error, Forbidden):
        return f"The account of this console may not read logs: {error.message}"
    if isinstance(error, ApiError) and error.status:
        return f"The API server has no log of {pod.name}: {error.message}"
    return f"The API server cannot be asked: {error}"


def read_containers(pod: Pod) -> tuple[Container, ...]:
    """As the cluster tells of them now. None where it cannot be asked."""
    if not is_kubernetes():
        return ()
    try:
        raw = api_server(_TIMEOUTS).get(PODS, pod.name, pod.namespace)
    except (NotFound, ApiError, CredentialsError):
        return ()
    return tuple(containers_of(raw))


def containers_of(raw: Mapping[str, Any]) -> Iterator[Container]:
    status = raw.get("status") or {}
    for key in ("initContainerStatuses", "containerStatuses"):
        for item in status.get(key) or ():
            yield _container(item)


def _container(item: Mapping[str, Any]) -> Container:
    state = "waiting"
    told: Mapping[str, Any] = {}
    for name in ("terminated", "running", "waiting"):
        if name in (item.get("state") or {}):
            state = name
            told = item["state"][name] or {}
            break
    return Container(
        item["name"],
        state,
        told.get("reason", ""),
        told.get("message", ""),
        told.get("exitCode"),
        item.get("restartCount", 0),
    )
