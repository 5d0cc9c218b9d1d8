"""What a real cluster holds is changed there, and not here, except its queues and jobs.

The database only mirrors it: a change made here would be gone with the next look at the cluster.
Changes of queues are sent to the cluster (`queue_writes`), and so are those of jobs where pods are
placed here (`job_writes`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from scheduler.admission.violations import Rejected, Violation
from scheduler.conf import is_kubernetes, schedules_cluster

P = ParamSpec("P")
R = TypeVar("R")

_FIXES = {
    "Queue": "use kubectl or vcctl: kubectl edit queues.scheduling.volcano.sh NAME",
    "Job": "use kubectl or vcctl: kubectl apply -f job.yaml",
    "PodGroup": "use kubectl: kubectl apply -f podgroup.yaml",
    "Pod": "use kubectl: kubectl apply -f pod.yaml, or kubectl delete pod NAME",
    "Node": "use kubectl: kubectl cordon, kubectl drain or kubectl edit node NAME",
    "Namespace": "use kubectl: kubectl create namespace NAME",
    "PriorityClass": "use kubectl: kubectl apply -f priorityclass.yaml",
}


def may_be_changed_here(kind: str) -> bool:
    """Whether objects of this kind can be changed in the console at all, whoever asks."""
    return not is_kubernetes() or kind in _written_to_cluster()


def _written_to_cluster() -> tuple[str, ...]:
    """Kinds whose changes are sent to the API server. All others are only watched."""
    if schedules_cluster():
        return ("Queue", "Job")
    return ("Queue",)


def how_to_change(kind: str, name: str = "") -> str:
    """For the page of an object, or a list of them: a sentence where it cannot be changed here."""
    if may_be_changed_here(kind):
        return ""
    if not name:
        return f"Watched only. To change one, {_FIXES[kind]}."
    return f"Watched only. To change it, {_FIXES[kind].replace('NAME', name)}."


def refuse_if_mirrored(kind: str) -> None:
    """Raises `Rejected` where it cannot be changed here."""
    if may_be_changed_here(kind):
        return
    message = (
        f"A {kind} of a Kubernetes cluster is changed there: "
        f"this console watches the cluster and writes {_what_is_written()} to it. "
        f"To change it, {_FIXES[kind]}."
    )
    raise Rejected([Violation("mirrored", "", "kind", message, _FIXES[kind])], by_state=True)


def _what_is_written() -> str:
    if schedules_cluster():
        return "only queues and jobs"
    return "nothing but queues"


def changed_in_cluster(kind: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """For functions that change objects of this kind: refused where the cluster is a real one."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            refuse_if_mirrored(kind)
            return function(*args, **kwargs)

        return guarded

    return decorate
