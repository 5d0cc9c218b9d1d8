"""What containers of a pod write, and how they are: asked of the cluster when somebody looks.

The console's own account asks an API server. So it is decided here who may read: logs may hold
secrets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Max
from django.utils import timezone

from scheduler.clusters.kubernetes.client import Timeouts
from scheduler.clusters.kubernetes.credentials import CredentialsError
from scheduler.clusters.kubernetes.errors import ApiError, Forbidden, NotFound
from scheduler.clusters.kubernetes.resources import PODS
from scheduler.clusters.simulated_logs import SimulatedLog, SimulatedRun
from scheduler.conf import is_kubernetes, schedules_cluster
from scheduler.domain.log_lines import LogLine, Position, lines_of, stamp_of
from scheduler.models import Decision, Pod
from scheduler.services.accounts.access import require_logs
from scheduler.services.accounts.actors import Actor
from scheduler.services.cluster.api_server import api_server

USUAL_LINES: Final = 200
MOST_LINES: Final = 5000
MOST_BYTES: Final = 1_000_000
_TIMEOUTS: Final = Timeouts(connect=3.0, read=10.0)  # somebody waits at a page
_RECENT_DECISIONS: Final = 20_000
_NOT_STARTED: Final = ("Pending", "Binding", "Bound")
_NO_RUN_BEFORE: Final = "A simulated cluster keeps no log of the run before."


@dataclass(frozen=True, slots=True)
class LogQuestion:
    """`container` "" is the only one. `lines` are counted from the end.

    `since` leaves out what is older. `previous` asks for the run before the current one.
    """

    container: str = ""
    lines: int = USUAL_LINES
    since: timedelta | None = None
    previous: bool = False


@dataclass(frozen=True, slots=True)
class PodLog:
    """`lines` are the oldest first; `problem` says why none can be read, in a sentence.

    `is_cut`: it is longer than `MOST_BYTES`, and its end is missing. `is_passing`: the cluster did
    not answer, and may do so later.
    """

    lines: tuple[LogLine, ...] = ()
    problem: str = ""
    is_cut: bool = False
    is_passing: bool = False

    @property
    def text(self) -> str:
        return self.written()

    def written(self, with_times: bool = False) -> str:
        return "".join(f"{line.written(with_times)}\n" for line in self.lines)


@dataclass(frozen=True, slots=True)
class Container:
    """`state` is running, waiting or terminated; `reason` such as ImagePullBackOff or Error."""

    name: str
    state: str
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    restarts: int = 0


def read_log(by: Actor, pod: Pod, question: LogQuestion = LogQuestion()) -> PodLog:  # noqa: B008
    """The last lines of a container.

    Raises `Forbidden` for a reader who is neither an operator of the queue nor the owner.
    """
    require_reader(by, pod)
    since = None
    if question.since is not None:
        since = Position(stamp_of(timezone.now() - question.since))
    return read_lines(pod, question, since)


def require_reader(by: Actor, pod: Pod) -> None:
    group = pod.podgroup
    require_logs(by, group.queue.place, group.owner)


def read_lines(pod: Pod, question: LogQuestion, after: Position | None) -> PodLog:
    """As `read_log`, for a reader who may, and without what is older than a position.

    The line that was read last comes again, so that it is seen whether one in between is missing.
    """
    if not is_kubernetes():
        return _simulated_log(pod, question, after)
    if not schedules_cluster():
        return PodLog(
            problem=f"Where the cluster is only watched, logs are read with kubectl: "
            f"kubectl logs --namespace {pod.namespace} {pod.name}"
        )
    return _log_of_api_server(pod, question, after)


def _log_of_api_server(pod: Pod, question: LogQuestion, after: Position | None) -> PodLog:
    asked: dict[str, str | int] = {
        "tailLines": max(1, min(question.lines, MOST_LINES)),
        "limitBytes": MOST_BYTES,
        "timestamps": "true",
    }
    if question.container:
        asked["container"] = question.container
    if question.previous:
        asked["previous"] = "true"
    if after is not None:
        asked["sinceTime"] = after.whole_second
    try:
        text = api_server(_TIMEOUTS).get_log(pod.name, pod.namespace, asked)
    except (ApiError, CredentialsError) as error:
        return PodLog(problem=_problem(pod, error), is_passing=_is_passing(error))
    return PodLog(tuple(lines_of(text)), is_cut=len(text.encode()) >= MOST_BYTES)


def _problem(pod: Pod, error: Exception) -> str:
    if isinstance(error, Forbidden):
        return f"The account of this console may not read logs: {error.message}"
    if isinstance(error, ApiError) and error.status:
        return f"The API server has no log of {pod.name}: {error.message}"
    return f"The API server cannot be asked: {error}"


def _is_passing(error: Exception) -> bool:
    """No answer, or one that may be another in a moment; a pod that is gone is told otherwise."""
    if not isinstance(error, ApiError):
        return True
    return error.status in (0, 404, 429) or error.status >= 500


def _simulated_log(pod: Pod, question: LogQuestion, after: Position | None) -> PodLog:
    container = container_of(pod)
    if question.container not in ("", container):
        return PodLog(problem=f"{pod.name} has no container {question.container[:63]}.")
    if question.previous:
        return PodLog(problem=_NO_RUN_BEFORE)
    if pod.phase in _NOT_STARTED or pod.started_at is None:
        return PodLog(problem=f"{pod.name} has not started, so it has written nothing.")
    log = SimulatedLog(_run_of(pod, pod.started_at), timezone.now())
    number = max(1, min(question.lines, MOST_LINES))
    since = ""
    if after is not None:
        since = after.stamp
    return PodLog(tuple(log.last(number, since)))


def _run_of(pod: Pod, started_at: datetime) -> SimulatedRun:
    node = ""
    if pod.node is not None:
        node = pod.node.name
    ended_at = pod.finished_at
    if pod.phase == "Releasing":
        ended_at = _stop_asked_at(pod)
    return SimulatedRun(
        pod.uid.hex, pod.name, container_of(pod), node, started_at, ended_at, pod.exit_code
    )


def _stop_asked_at(pod: Pod) -> datetime | None:
    """Looked for among the last decisions only: it has no index, and is not long ago."""
    newest = Decision.objects.aggregate(newest=Max("id"))["newest"] or 0
    recent = Decision.objects.filter(id__gt=newest - _RECENT_DECISIONS)
    told = recent.filter(pod_id=pod.pk, kind=Decision.EVICT).order_by("-id")
    return told.values_list("created_at", flat=True).first()


def container_of(pod: Pod) -> str:
    """The one container of a simulated pod, as its YAML calls it."""
    return pod.task or "main"


def read_containers(pod: Pod) -> tuple[Container, ...]:
    """As the cluster tells of them now. None where it cannot be asked."""
    if not is_kubernetes():
        return (_simulated_container(pod),)
    try:
        raw = api_server(_TIMEOUTS).get(PODS, pod.name, pod.namespace)
    except (NotFound, ApiError, CredentialsError):
        return ()
    return tuple(containers_of(raw))


_CONTAINER_STATES: Final = {
    "Running": "running",
    "Releasing": "running",
    "Succeeded": "terminated",
    "Failed": "terminated",
}


def _simulated_container(pod: Pod) -> Container:
    reason = ""
    if pod.phase == "Succeeded":
        reason = "Completed"
    elif pod.phase == "Failed":
        reason = "Error"
    return Container(
        container_of(pod),
        _CONTAINER_STATES.get(pod.phase, "waiting"),
        reason,
        pod.message,
        pod.exit_code,
    )


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
