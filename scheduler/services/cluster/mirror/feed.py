"""The API server as the watcher follows it: a thread for each resource, and one that asks."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Iterable
from typing import Any

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.credentials import Credentials, load_credentials
from scheduler.clusters.kubernetes.discovery import (
    cluster_uid,
    names_served_by_volcano,
    served_resources,
    server_version,
    volcano_controllers_run,
)
from scheduler.clusters.kubernetes.errors import ApiError
from scheduler.clusters.kubernetes.queue_definition import known_queue_fields
from scheduler.clusters.kubernetes.read import READERS
from scheduler.clusters.kubernetes.resources import JOBS, Resource
from scheduler.clusters.kubernetes.take_over import read_taken_over
from scheduler.clusters.kubernetes.watch import Watch
from scheduler.conf import AUTO, SCHEDULE, KubernetesConf, conf, schedules_cluster
from scheduler.models import Mirror
from scheduler.services.cluster.jobs.controller import JobController
from scheduler.services.cluster.mirror import state
from scheduler.services.cluster.mirror.queue_controller import QueueController
from scheduler.services.cluster.mirror.reporter import Reporter
from scheduler.services.cluster.mirror.store import Event

logger = logging.getLogger(__name__)

ASK_SECONDS = 3.0
DISCOVER_SECONDS = 30.0


class KubernetesFeed:
    """Follows all that the API server serves. Threads end with the process, or by `close`."""

    def __init__(
        self,
        client: Client,
        events: queue.Queue[Event],
        queue_facts: state.QueueFacts,
        asked: KubernetesConf = KubernetesConf(),  # noqa: B008  (frozen)
    ) -> None:
        self._client = client
        self._events = events
        self._queue_facts = queue_facts
        self._asked = asked
        self.resources = frozenset(served_resources(client))
        self._heard_at = time.monotonic()
        self._has_others = False
        self.neighbours = find_neighbours(client)
        self._is_closed = threading.Event()
        self._watches = [Watch(client, each, READERS[each]) for each in self._followed()]
        self._start()

    def _followed(self) -> list[Resource]:
        return sorted(self.resources, key=lambda resource: resource.name)

    def _start(self) -> None:
        for watch in self._watches:
            self._start_thread(watch.resource.plural, self._follow, watch)
        self._start_thread("ask", self._keep_asking)

    def _start_thread(self, name: str, target: Any, *given: Any) -> None:
        threading.Thread(target=target, args=given, name=f"mirror-{name}", daemon=True).start()

    def _follow(self, watch: Watch[Any]) -> None:
        for event in watch:
            self._events.put(event)

    def _keep_asking(self) -> None:
        """Most of the time nothing happens in a cluster: that it is there has to be asked for."""
        discovered_at = time.monotonic()
        while not self._is_closed.wait(ASK_SECONDS):
            try:
                self._client.get_path("/version")
                self._heard_at = time.monotonic()
                if self._heard_at - discovered_at > DISCOVER_SECONDS:
                    discovered_at = self._heard_at
                    self._has_others = self._is_another_cluster_now()
                    self.neighbours = find_neighbours(self._client)
            except ApiError as problem:
                logger.debug("the API server does not answer: %s", problem)

    def _is_another_cluster_now(self) -> bool:
        if _places(served_resources(self._client)) != _places(self.resources):
            return True
        return find_queue_facts(self._client, self._asked) != self._queue_facts

    def queue_controller(self) -> QueueController | None:
        """None where Volcano's controllers look after queues."""
        if self.follows_status:
            return None
        return QueueController(self._client, self._queue_facts.fields, self._is_alone)

    def reporter(self) -> Reporter | None:
        """None where another scheduler says why pods wait."""
        if not schedules_cluster():
            return None
        return Reporter(self._client, conf().kubernetes.scheduler_names, self.resources)

    def job_controller(self) -> JobController | None:
        """None where nobody or Volcano's controllers make the pods of jobs."""
        if self._queue_facts.jobs != Mirror.FUMAROLE or JOBS not in self.resources:
            return None
        return JobController(self._client, self._is_alone_with_jobs)

    def _is_alone(self) -> bool:
        return self._is_ours(self._asked.queue_controller)

    def _is_alone_with_jobs(self) -> bool:
        return self._is_ours(self._asked.job_controller)

    def _is_ours(self, asked_controller: str) -> bool:
        if asked_controller != AUTO:
            return asked_controller == Mirror.FUMAROLE
        return not volcano_controllers_run(self._client)

    @property
    def follows_status(self) -> bool:
        """Volcano's controllers open and close queues, and tell so in their status."""
        return self._queue_facts.controller == Mirror.VOLCANO

    def heard_seconds_ago(self) -> float:
        heard = [self._heard_at, *(watch.heard_at or 0.0 for watch in self._watches)]
        return time.monotonic() - max(heard)

    def must_begin_anew(self) -> bool:
        """Custom resources were installed or taken away, or Volcano's controllers were."""
        return self._has_others

    def close(self) -> None:
        self._is_closed.set()
        for watch in self._watches:
            watch.stop()
        self._client.close()


def _places(resources: Iterable[Resource]) -> set[str]:
    """Another version of a resource is at another place."""
    return {resource.path() for resource in resources}


def connect(given: KubernetesConf, events: queue.Queue[Event]) -> KubernetesFeed:
    """Reach the cluster of the settings, and begin to follow it."""
    credentials = load_credentials(given.kubeconfig, given.context)
    client = Client(credentials)
    try:
        queue_facts = find_queue_facts(client, given)
        state.begin(
            cluster_uid=cluster_uid(client),
            server=credentials.server.url,
            version=server_version(client),
            name=_name_of(given, credentials),
            queues=queue_facts,
        )
        return KubernetesFeed(client, events, queue_facts, given)
    except Exception:
        client.close()
        raise


def find_queue_facts(client: Client, asked: KubernetesConf) -> state.QueueFacts:
    """As the cluster is now, and as the settings say."""
    found = Mirror.FUMAROLE
    if AUTO in (asked.queue_controller, asked.job_controller) and volcano_controllers_run(client):
        found = Mirror.VOLCANO
    queues = _chosen(asked.queue_controller, found)
    jobs = _chosen(asked.job_controller, found)
    if asked.mode != SCHEDULE and jobs == Mirror.FUMAROLE:
        jobs = ""  # whoever only watches makes no pods
    return state.QueueFacts(known_queue_fields(client), queues, jobs)


def _chosen(asked: str, found: str) -> str:
    if asked == AUTO:
        return found
    return asked


def find_neighbours(client: Client) -> state.Neighbours:
    return state.Neighbours(read_taken_over(client), names_served_by_volcano(client))


def _name_of(given: KubernetesConf, credentials: Credentials) -> str:
    return given.name or credentials.name or "kubernetes"
