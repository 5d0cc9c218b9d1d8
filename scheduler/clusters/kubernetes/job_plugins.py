"""What plugins of a Volcano Job add to its pods, as far as our controller knows them.

`env` tells each container its number. `svc` gives each pod a name that the others can look up, and
tells them the names. Others are told as not carried out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from scheduler.clusters.kubernetes.resources import JOBS, Resource
from scheduler.clusters.kubernetes.values import JobObject

SERVICES: Final = Resource("", "v1", "services", "Service", namespaced=True)
KNOWN_PLUGINS: Final = ("env", "svc")
_NOT_READY: Final = "publish-not-ready-addresses"


def plugins_of(job: JobObject) -> Mapping[str, Sequence[str]]:
    plugins = job.job.extra.get("plugins")
    if isinstance(plugins, Mapping):
        return plugins
    return {}


def volumes_of(job: JobObject) -> list[Mapping[str, Any]]:
    """Those that name a claim."""
    volumes = job.job.extra.get("volumes")
    if not isinstance(volumes, Sequence):
        return []
    return [volume for volume in volumes if volume.get("volumeClaimName")]


def left_out(job: JobObject) -> list[str]:
    """What the job asks for and does not get, each in a few words."""
    found = []
    for name in plugins_of(job):
        if name not in KNOWN_PLUGINS:
            found.append(f"the plugin {name}")
    volumes = job.job.extra.get("volumes")
    if isinstance(volumes, Sequence) and len(volumes_of(job)) < len(volumes):
        found.append("volumes that name no claim")
    return found


def add_to_pod(pod: dict[str, Any], job: JobObject, index: int) -> None:
    plugins = plugins_of(job)
    variables: list[dict[str, str]] = []
    if "env" in plugins:
        for name in ("VK_TASK_INDEX", "VC_TASK_INDEX"):
            variables.append({"name": name, "value": str(index)})
    if "svc" in plugins:
        spec = pod["spec"]
        spec["hostname"] = spec.get("hostname") or pod["metadata"]["name"]
        spec["subdomain"] = spec.get("subdomain") or job.meta.name
        variables += _host_variables(job)
    _add_variables(pod["spec"], variables)


def _add_variables(spec: dict[str, Any], variables: list[dict[str, str]]) -> None:
    for kind in ("containers", "initContainers"):
        for container in spec.get(kind) or ():
            if variables:
                container["env"] = [*(container.get("env") or ()), *variables]


def _host_variables(job: JobObject) -> list[dict[str, str]]:
    variables = []
    for task in job.job.tasks:
        key = task.name.replace("-", "_").upper()
        hosts = hosts_of(job, task.name, task.replicas, task.template.raw)
        variables.append({"name": f"VC_{key}_HOSTS", "value": ",".join(hosts)})
        variables.append({"name": f"VC_{key}_NUM", "value": str(len(hosts))})
    return variables


def hosts_of(job: JobObject, task: str, replicas: int, template: Mapping[str, Any]) -> list[str]:
    """A template that names a host gives all its pods that one name."""
    spec = template.get("spec") or {}
    domain = spec.get("subdomain") or job.meta.name
    if spec.get("hostname"):
        return [f"{spec['hostname']}.{domain}"]
    return [f"{job.meta.name}-{task}-{index}.{domain}" for index in range(replicas)]


def service_manifest(job: JobObject) -> dict[str, Any] | None:
    """The headless service by which pods of the job find each other, if it asks for one."""
    plugins = plugins_of(job)
    if "svc" not in plugins:
        return None
    arguments = [str(argument).lstrip("-") for argument in plugins["svc"] or ()]
    labels = {"volcano.sh/job-name": job.meta.name, "volcano.sh/job-namespace": job.meta.namespace}
    owner = {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "name": job.meta.name,
        "uid": job.meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "metadata": {"name": job.meta.name, "ownerReferences": [owner]},
        "spec": {
            "clusterIP": "None",
            "selector": labels,
            "publishNotReadyAddresses": f"{_NOT_READY}=true" in arguments,
        },
    }
