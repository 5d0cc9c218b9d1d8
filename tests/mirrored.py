"""Made-up objects of a Kubernetes cluster, and a mirror of them without an API server."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.test import override_settings

from scheduler.admission.reading.queue import Metadata
from scheduler.admission.reading.workload import JobManifest
from scheduler.clusters.kubernetes import resources, values
from scheduler.clusters.kubernetes.watch_events import Changed, Listed, Removed
from scheduler.conf import KUBERNETES, KubernetesConf, conf, schedules_cluster
from scheduler.domain.queues import QueueSpec, QueueState
from scheduler.domain.resources import NOTHING, Resources
from scheduler.models import Mirror
from scheduler.services.cluster.mirror import state
from scheduler.services.cluster.mirror.flush import WATCHER, flush
from scheduler.services.cluster.mirror.store import Store
from scheduler.services.cluster.mirror.writer import MirrorWriter
from scheduler.services.cluster.mirror.written import WrittenRows
from scheduler.services.sessions import lease

BEGINNING = datetime(2026, 11, 1, tzinfo=UTC)
SCHEDULERS = ("fumarole", "volcano")
_numbers = itertools.count(1)


@contextmanager
def kubernetes_mode(**kubernetes: Any) -> Iterator[None]:
    """As if SCHEDULER_CLUSTER were kubernetes."""
    wanted = {
        **settings.SCHEDULER,
        "cluster": KUBERNETES,
        "kubernetes": KubernetesConf(**kubernetes),
    }
    try:
        with override_settings(SCHEDULER=wanted):
            conf.cache_clear()
            yield
    finally:
        conf.cache_clear()


# Objects


def meta(name: str, namespace: str = "", **given: Any) -> values.ObjectMeta:
    number = next(_numbers)
    return values.ObjectMeta(
        name=name,
        namespace=namespace,
        uid=given.pop("uid", str(uuid.uuid4())),
        resource_version=str(number),
        created=given.pop("created", BEGINNING + timedelta(seconds=number)),
        **given,
    )


def node(name: str, *, cpu: str = "8", ready: bool = True, **given: Any) -> values.NodeObject:
    amounts = {"cpu": cpu, "memory": "32Gi", "pods": "110", **given.pop("allocatable", {})}
    labels = given.pop("labels", {})
    return values.NodeObject(
        meta(name, labels=labels), Resources.parse(amounts), ready=ready, **given
    )


def pod(
    name: str,
    *,
    namespace: str = "default",
    node: str = "",
    cpu: str = "1",
    phase: str = "",
    scheduler: str = "volcano",
    **given: Any,
) -> values.PodObject:
    """Running where it has a node, unless said otherwise."""
    told = phase or ("Running" if node else "Pending")
    about = given.pop("about", {})
    return values.PodObject(
        meta(name, namespace, **about),
        scheduler_name=scheduler,
        node=node,
        phase=values.PodPhase(told),
        requests=Resources.parse({"cpu": cpu}),
        **given,
    )


def podgroup(
    name: str, *, namespace: str = "default", queue: str = "default", least: int = 1, **given: Any
) -> values.PodGroupObject:
    owner = given.pop("owner", None)
    return values.PodGroupObject(
        meta(name, namespace, owner=owner), queue=queue, min_member=least, **given
    )


def native_podgroup(name: str, *, queue: str = "", least: int = 1, **given: Any) -> Any:
    """Of Kubernetes itself. Without a queue its pods say it, or its namespace."""
    return values.PodGroupObject(
        meta(name, given.pop("namespace", "default")),
        queue=queue,
        min_member=least,
        is_native=True,
        **given,
    )


def job(
    name: str, *, queue: str = "default", least: int = 1, phase: str = "Pending", **given: Any
) -> values.JobObject:
    """A Volcano Job. The podgroup that its controller would make is `podgroup_of`."""
    about = meta(name, "default")
    metadata = Metadata(name, "default", about.uid, about.resource_version, {}, {})
    manifest = JobManifest(metadata, queue, least, tasks=(), **given)
    return values.JobObject(about, manifest, phase=phase)


def podgroup_of(job: values.JobObject, **given: Any) -> values.PodGroupObject:
    owner = values.Owner("Job", job.meta.name, job.meta.uid)
    asked = {"queue": job.job.queue, "least": job.job.min_available, **given}
    return podgroup(job.group_name, owner=owner, **asked)


def queue(name: str, parent: str = "root", *, state: str = "Open", **given: Any):
    amounts = {
        key: Resources.parse(given.pop(key))
        for key in ("deserved", "guarantee", "capability")
        if key in given
    }
    flaws = given.pop("flaws", ())
    spec = QueueSpec(name, parent=parent, state=QueueState(state), **amounts, **given)
    return values.QueueObject(meta(name), spec, state=state, flaws=flaws)


def namespace(name: str, queue: str = "") -> values.NamespaceObject:
    return values.NamespaceObject(meta(name), queue=queue)


def priority_class(name: str, value: int, **given: Any) -> values.PriorityClassObject:
    return values.PriorityClassObject(meta(name), value=value, **given)


def budget(
    name: str, selector: dict[str, Any] | None, *, allowed: int = 0, namespace: str = "default"
) -> values.DisruptionBudgetObject:
    """A PodDisruptionBudget."""
    return values.DisruptionBudgetObject(
        meta(name, namespace), selector, disruptions_allowed=allowed, min_available="1"
    )


def claim(name: str, volume: str = "", *, namespace: str = "default") -> values.ClaimObject:
    """Of a volume, if one is named; else it waits for one."""
    return values.ClaimObject(meta(name, namespace), volume, "Bound" if volume else "Pending")


def volume(name: str, *zones: str) -> values.PersistentVolumeObject:
    """That can be reached from these zones; from everywhere without any."""
    terms = ()
    if zones:
        expression = {"key": "zone", "operator": "In", "values": list(zones)}
        terms = ({"matchExpressions": [expression]},)
    return values.PersistentVolumeObject(meta(name), terms)


def moved(pod: Any, **changes: Any) -> Any:
    """The same object, later."""
    if "phase" in changes and isinstance(pod, values.PodObject):
        changes["phase"] = values.PodPhase(changes["phase"])
    return replace(pod, **changes, meta=replace(pod.meta, resource_version=str(next(_numbers))))


def leaving(pod: values.PodObject) -> values.PodObject:
    return replace(pod, meta=replace(pod.meta, deleted=BEGINNING))


RESOURCES = {
    values.NodeObject: resources.NODES,
    values.PodObject: resources.PODS,
    values.PodGroupObject: resources.PODGROUPS,
    values.QueueObject: resources.QUEUES,
    values.JobObject: resources.JOBS,
    values.NamespaceObject: resources.NAMESPACES,
    values.PriorityClassObject: resources.PRIORITY_CLASSES,
    values.DisruptionBudgetObject: resources.DISRUPTION_BUDGETS,
    values.PersistentVolumeObject: resources.VOLUMES,
    values.ClaimObject: resources.CLAIMS,
}


def resource_for(value: Any) -> resources.Resource:
    if isinstance(value, values.PodGroupObject) and value.is_native:
        return resources.NATIVE_PODGROUPS
    return RESOURCES[type(value)]


class MadeUpCluster:
    """A mirror that is told what the cluster has, as a watcher would be."""

    def __init__(self) -> None:
        state.begin(cluster_uid="made-up", server="https://made.up", version="v1.36", name="test")
        held = lease.acquire("test", 30, WATCHER)
        assert held is not None
        self.held = held
        self.begin_anew()

    def begin_anew(self, *, follows_status: bool = False) -> None:
        """As after a kill -9: memory is lost, the database stays."""
        self.store = Store()
        self.writer = MirrorWriter(
            self.store,
            SCHEDULERS,
            follows_status=follows_status,
            schedules=schedules_cluster(),
        )
        self.writer.load()

    def has(self, *objects: Any) -> WrittenRows:
        """The cluster has these, and now tells so."""
        for value in objects:
            self.store.take(Changed(resource_for(value), value.meta.resource_version, value))
        return self.settle()

    def loses(self, *objects: Any) -> WrittenRows:
        for value in objects:
            self.store.take(Removed(resource_for(value), value.meta.resource_version, value))
        return self.settle()

    def lists(self, *objects: Any) -> WrittenRows:
        """All that there is, as after a start or a 410."""
        for resource in (*RESOURCES.values(), resources.NATIVE_PODGROUPS):
            found = tuple(each for each in objects if resource_for(each) is resource)
            self.store.take(Listed(resource, "1000", found))
        return self.settle()

    def settle(self) -> WrittenRows:
        return flush(self.store, self.writer, self.held)


def is_synced() -> bool:
    return Mirror.objects.exclude(synced_at=None).exists()


__all__ = ["NOTHING", "MadeUpCluster", "is_synced", "kubernetes_mode"]
