"""Small clusters in the database, for tests of services: one line a queue, a node, a job."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from scheduler.domain.resources import Resources
from scheduler.models import Job, Node, Pod, PodGroup, Queue, SimulatedCluster
from scheduler.services.cluster.dispatch import dispatch
from scheduler.services.cluster.observe import observe
from scheduler.services.jobs.submit import submit_job
from scheduler.services.sessions.runner import SessionResult, SessionRunner


def queue(name: str, parent: str = "root", **fields: Any) -> Queue:
    amounts = {
        key: Resources.parse(fields.pop(key))
        for key in ("deserved", "guarantee", "capability")
        if key in fields
    }
    return Queue.objects.create(
        name=name,
        parent=Queue.objects.get(name=parent),
        **fields,
        **amounts,
    )


def node(name: str, **amounts: str) -> Node:
    named = {key.replace("gpu", "nvidia.com/gpu"): value for key, value in amounts.items()}
    return Node.objects.create(name=name, allocatable=Resources.parse({"pods": "110", **named}))


def manifest(
    name: str,
    queue: str = "default",
    *,
    replicas: int = 1,
    cpu: str = "1",
    least: int | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A job of one task; `seconds` and `exit_code` tell the simulated cluster how it runs."""
    annotations = {
        "fumarole.io/run-seconds": str(spec.pop("seconds", 60)),
        "fumarole.io/exit-code": str(spec.pop("exit_code", 0)),
    }
    task = {
        "name": "worker",
        "replicas": replicas,
        "minAvailable": replicas if least is None else least,
        "template": {
            "metadata": {"annotations": annotations},
            "spec": {"containers": [{"resources": {"requests": {"cpu": cpu}}}]},
        },
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"queue": queue, "minAvailable": task["minAvailable"], "tasks": [task], **spec},
    }


def job(name: str, queue: str = "default", **shape: Any) -> Job:
    return submit_job(manifest(name, queue, **shape)).job


def let_age() -> None:
    """As if all pods had run for a day: nobody is spared for having just started, or is expected to
    end soon.
    """
    Pod.objects.filter(phase="Running").update(started_at=timezone.now() - timedelta(days=1))


def let_wait() -> None:
    """As if all pods that wait had come two hours ago: a short gang has waited long enough to undo
    the work of long ones.
    """
    come = timezone.now() - timedelta(hours=2)
    waiting = Pod.objects.filter(phase="Pending")
    PodGroup.objects.filter(pk__in=waiting.values("podgroup_id")).update(created_at=come)
    waiting.update(created_at=come)


def pass_time(seconds: float) -> None:
    """Turn the simulated clock and tell the database what happened.

    In steps, as time really passes.
    """
    SimulatedCluster.objects.filter(pk=1).update(speed=1.0)
    while seconds > 0:
        step = min(seconds, 20.0)
        SimulatedCluster.objects.filter(pk=1).update(
            advanced_at=timezone.now() - timedelta(seconds=step)
        )
        observe()
        seconds -= step


def run_session(runner: SessionRunner | None = None) -> SessionResult:
    """One session and what it decided, carried out."""
    result = (runner or SessionRunner("test")).run()
    assert result is not None
    dispatch()
    return result


def phases(job: Job) -> list[str]:
    return sorted(job.podgroup.pods.values_list("phase", flat=True))
