"""Jobs of the same shape as the examples in Volcano's repository."""

from __future__ import annotations

from typing import Any


def template(cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {
        "name": "nginx",
        "image": "nginx",
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": cpu}},
    }
    return {
        "metadata": {"name": "web"},
        "spec": {"containers": [container], "restartPolicy": "OnFailure", **spec},
    }


def job(name: str, *tasks: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"schedulerName": "volcano", "queue": "default", **spec, "tasks": list(tasks)},
    }


def task(name: str, replicas: int, **given: Any) -> dict[str, Any]:
    return {"name": name, "replicas": replicas, "template": template(), **given}


_ON_LINUX = template("100m", nodeSelector={"kubernetes.io/os": "linux"})
_EVICTED = {"event": "PodEvicted", "action": "RestartJob"}
_PLUGINS: dict[str, list[str]] = {"ssh": [], "env": [], "svc": []}

EXAMPLES: dict[str, dict[str, Any]] = {
    "job": job(
        "test-job",
        task("default-nginx", 6),
        minAvailable=3,
        policies=[_EVICTED],
        plugins=_PLUGINS,
        maxRetry=5,
    ),
    "plugins": job(
        "test-job-plugin",
        task("default-nginx", 3),
        minAvailable=3,
        policies=[_EVICTED],
        plugins={**_PLUGINS, "svc": ["--publish-not-ready-addresses=false"]},
        maxRetry=5,
    ),
    "dependencies": job(
        "job",
        task("job-nginx1", 1, template=_ON_LINUX),
        task("job-nginx2", 5, template=_ON_LINUX, dependsOn={"name": ["job-nginx1"]}),
        task("job-nginx3", 5, template=_ON_LINUX, dependsOn={"name": ["job-nginx2"]}),
        minAvailable=1,
    ),
}

MPI = job(
    "mpi",
    task("mpimaster", 1, policies=[{"event": "TaskCompleted", "action": "CompleteJob"}]),
    task("mpiworker", 2),
    minAvailable=3,
    plugins=_PLUGINS,
)
