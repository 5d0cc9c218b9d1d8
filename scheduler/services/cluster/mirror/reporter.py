"""What the cluster is told, where pods are placed here: why pods wait, and how podgroups are.

The sentences are those of the pages. Only what differs from what the cluster has is written; other
figures in the same sentence are no difference. The watcher's own thread looks what is to be told,
and a few threads tell it.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.errors import ApiError, Conflict, Invalid, NotFound
from scheduler.clusters.kubernetes.gates import only_queue_holds, open_queue_gate
from scheduler.clusters.kubernetes.reports import (
    Event,
    send_event,
    set_native_conditions,
    set_pod_condition,
    set_podgroup_status,
)
from scheduler.clusters.kubernetes.resources import NATIVE_PODGROUPS, PODGROUPS, PODS, Resource
from scheduler.clusters.kubernetes.values import Condition, PodGroupObject, PodObject, PodPhase
from scheduler.domain.pod_conditions import unpacked
from scheduler.models import PodGroup
from scheduler.outages import Outage, in_a_line
from scheduler.services.cluster.mirror.native_status import (
    condition_changes,
    scheduled_condition_type,
)
from scheduler.services.cluster.mirror.queue_gate import fits_in_queues
from scheduler.services.cluster.mirror.sentences import says_the_same, without_figures
from scheduler.services.cluster.mirror.store import Store
from scheduler.services.sessions import lease

logger = logging.getLogger(__name__)

STEP_SECONDS: Final = 1.0
MOST_REPORTS: Final = 1000
"""In one step. The rest follows in the next ones."""
_THREADS: Final = 4
_SCHEDULED: Final = "PodScheduled"
_UNSCHEDULABLE: Final = "Unschedulable"
_VOLCANO: Final = "volcano"

_SAID: Final = (
    "phase",
    "conditions",
    "pod_conditions",
    "reason_code",
    "reason_message",
    "queue__name",
)
"""Of a podgroup, in the order of the fields of `_Told`."""

PodIds = Callable[[str], int | None]
"""The id of the row of a pod, by the uid of the pod."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What sessions have to say of one podgroup."""

    key: str  # as the cluster names it
    phase: str
    conditions: list[dict[str, Any]] = field(hash=False)
    pod_conditions: list[dict[str, Any]] = field(hash=False)
    reason_code: str = ""
    reason_message: str = ""
    queue: str = ""

    @property
    def waits_for(self) -> tuple[str, str]:
        """Reason and sentence. Autoscalers act on the reason Unschedulable.

        Both are "" for a gang that runs, though some of its pods may wait.
        """
        if self.reason_code and any(
            each["reason"] == _UNSCHEDULABLE for each in self.pod_conditions
        ):
            return _UNSCHEDULABLE, self.reason_message
        return self.reason_code, self.reason_message


@dataclass(frozen=True, slots=True)
class _Report:
    """One request to the API server, and the podgroup that it is about."""

    group_id: int
    send: Callable[[], None]


class Reporter:
    def __init__(
        self,
        client: Client,
        scheduler_names: Collection[str],
        resources: Iterable[Resource] = (),
    ) -> None:
        """`resources` are those that the API server has, each in its version."""
        self._client = client
        self._native = next((each for each in resources if each == NATIVE_PODGROUPS), None)
        self._scheduler_names = frozenset(scheduler_names)
        self._instance = lease.name_of_this_process()
        self._pool = ThreadPoolExecutor(_THREADS, "report")
        self._under_way: list[tuple[_Report, Future[None]]] = []
        self._looked_at = 0.0
        self._versions: dict[int, tuple[str, int | None]] = {}
        self._told: dict[int, _Told] = {}
        self._unfinished: set[int] = set()
        self._outage = Outage(logger, "Pods and podgroups are told again why they wait.")

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def look(self, store: Store, pod_ids: PodIds) -> None:
        """Begin to tell what is to be told, unless the last time is not over."""
        now = time.monotonic()
        if now - self._looked_at < STEP_SECONDS or not self._is_done():
            return
        self._looked_at = now
        for report in self._due_reports(store, pod_ids):
            self._under_way.append((report, self._pool.submit(report.send)))

    def _due_reports(self, store: Store, pod_ids: PodIds) -> list[_Report]:
        changed = self._read_changes() | self._unfinished
        self._unfinished = set()
        found: list[_Report] = []
        for report in self._all_reports(store, pod_ids, changed):
            if len(found) < MOST_REPORTS:
                found.append(report)
            else:
                self._unfinished.add(report.group_id)
        return found

    def _all_reports(self, store: Store, pod_ids: PodIds, changed: set[int]) -> Iterator[_Report]:
        for group_id, told in self._told.items():
            if not self._is_ours(store, told.key):
                continue
            yield from self._podgroup_reports(store, group_id, told)
            if group_id in changed:
                yield from self._pod_reports(store, group_id, told, pod_ids)

    def _is_done(self) -> bool:
        """Whether all has been told. What failed is told again, unless it is out of date."""
        if any(not future.done() for _, future in self._under_way):
            return False
        failed = None
        for report, future in self._under_way:
            problem = future.exception()
            if isinstance(problem, ApiError):
                self._unfinished.add(report.group_id)
                failed = problem
            elif problem is not None:
                raise problem
        if failed is not None:
            self._outage.noticed("Pods are not told why they wait: %s", in_a_line(failed))
        elif self._under_way:
            self._outage.over()
        self._under_way = []
        return True

    # What sessions say

    def _read_changes(self) -> set[int]:
        """The podgroups of which something else is said than before."""
        rows = PodGroup.objects.order_by().values_list("id", "phase", "reason_session")
        versions = {pk: (phase, session) for pk, phase, session in rows}
        changed = {pk for pk, version in versions.items() if self._versions.get(pk) != version}
        for pk in self._told.keys() - versions.keys():
            del self._told[pk]
        columns = ("id", "namespace", "name", "object_name", *_SAID)
        for some in _portions(sorted(changed)):
            found = PodGroup.objects.filter(pk__in=some).order_by()
            for row in found.values_list(*columns):
                pk, namespace, name, object_name, *said = row
                self._told[pk] = _Told(f"{namespace}/{object_name or name}", *said)
        self._versions = versions
        return changed

    def _is_ours(self, store: Store, key: str) -> bool:
        """One without pods is ours if its job is, or if we stand in for Volcano."""
        pods = store.pods_of(key)
        if pods:
            return any(pod.scheduler_name in self._scheduler_names for pod in pods)
        job = store.job_of_group(key)
        if job is not None:
            return job.job.extra.get("schedulerName", _VOLCANO) in self._scheduler_names
        return _VOLCANO in self._scheduler_names

    # Podgroups

    def _podgroup_reports(self, store: Store, group_id: int, told: _Told) -> Iterator[_Report]:
        podgroup = store.podgroup(told.key)
        if podgroup is None or podgroup.meta.deleted:
            return
        if podgroup.is_native:
            yield from self._native_reports(store, group_id, told, podgroup)
            return
        changes = status_changes(podgroup, told.phase, told.conditions, store.pods_of(told.key))
        if changes:
            yield _Report(group_id, partial(self._tell_podgroup, podgroup, changes))
        if "conditions" in changes and told.conditions:
            yield _Report(group_id, partial(self._tell_event, podgroup, told.conditions[0]))

    def _native_reports(
        self, store: Store, group_id: int, told: _Told, podgroup: PodGroupObject
    ) -> Iterator[_Report]:
        if self._native is None:
            return
        changes = condition_changes(
            podgroup,
            scheduled_condition_type(self._native),
            store.pods_of(told.key),
            told.waits_for,
        )
        if changes:
            send = partial(self._tell_native, self._native, podgroup, changes)
            yield _Report(group_id, send)

    def _tell_native(
        self, resource: Resource, podgroup: PodGroupObject, changes: list[Condition]
    ) -> None:
        try:
            set_native_conditions(self._client, resource, podgroup.meta, changes)
        except (Conflict, NotFound):
            logger.debug("podgroup %s has changed or is gone", podgroup.meta.key)

    def _tell_podgroup(self, podgroup: PodGroupObject, changes: Mapping[str, Any]) -> None:
        """One that has changed meanwhile is looked at again; one that is gone is not."""
        try:
            set_podgroup_status(self._client, podgroup.meta, changes)
        except (Conflict, NotFound):
            logger.debug("podgroup %s has changed or is gone", podgroup.meta.key)

    def _tell_event(self, podgroup: PodGroupObject, condition: Mapping[str, Any]) -> None:
        event = Event(
            PODGROUPS,
            podgroup.meta,
            reason=condition["type"],
            note=condition["message"],
            type=_event_type(condition["type"]),
        )
        self._send(event)

    # Pods

    def _pod_reports(
        self, store: Store, group_id: int, told: _Told, pod_ids: PodIds
    ) -> Iterator[_Report]:
        """One event for all pods of a gang that wait for the same."""
        sentences = set()
        for pod in store.pods_of(told.key):
            wanted = self._wanted_condition(told, pod, pod_ids)
            if wanted is None:
                continue
            if pod.gates and self._waits_only_for_nodes(store, told, pod, wanted):
                yield _Report(group_id, partial(self._open_gate, pod))
            if says_the_same(pod.scheduled, wanted):
                continue
            yield _Report(group_id, partial(self._tell_pod, pod, wanted))
            sentence = without_figures(wanted.message.replace(pod.meta.key, ""))
            if sentence not in sentences:
                sentences.add(sentence)
                yield _Report(group_id, partial(self._tell_pod_event, pod, wanted))

    def _wanted_condition(self, told: _Told, pod: PodObject, pod_ids: PodIds) -> Condition | None:
        """None for a pod that does not wait for us, or of which no session has said anything."""
        is_waiting = pod.phase is PodPhase.PENDING and not pod.node
        if not is_waiting or pod.scheduler_name not in self._scheduler_names:
            return None
        if pod.gates and not only_queue_holds(pod.gates):
            return None
        pod_id = pod_ids(pod.meta.uid)
        if pod_id is None:
            return None
        said = unpacked(told.pod_conditions, pod_id, pod.meta.key)
        if said is None:
            return None
        since = None
        if pod.scheduled is not None and pod.scheduled.status == "False":
            since = pod.scheduled.since
        return Condition(_SCHEDULED, "False", said["reason"], said["message"], since)

    def _waits_only_for_nodes(
        self, store: Store, told: _Told, pod: PodObject, wanted: Condition
    ) -> bool:
        """Sessions name one cause. The pod may also be too large for its queue."""
        if wanted.reason != _UNSCHEDULABLE:
            return False
        return fits_in_queues(store, told.queue, pod.requests)

    def _open_gate(self, pod: PodObject) -> None:
        """Its queue has room for it: from now on autoscalers are to see that it waits for nodes."""
        try:
            open_queue_gate(self._client, pod.meta.uid, pod.meta.namespace, pod.meta.name)
        except (Conflict, Invalid, NotFound):
            logger.debug("pod %s is gone", pod.meta.key)

    def _tell_pod(self, pod: PodObject, condition: Condition) -> None:
        try:
            set_pod_condition(self._client, pod.meta, condition)
        except (Conflict, NotFound):
            logger.debug("pod %s is gone", pod.meta.key)

    def _tell_pod_event(self, pod: PodObject, condition: Condition) -> None:
        event = Event(PODS, pod.meta, "FailedScheduling", condition.message, type="Warning")
        self._send(event)

    def _send(self, event: Event) -> None:
        try:
            send_event(self._client, event, self._instance)
        except NotFound:
            logger.debug("the namespace of %s is gone", event.about.key)


def status_changes(
    podgroup: PodGroupObject,
    phase: str,
    conditions: list[dict[str, Any]],
    pods: Iterable[PodObject],
) -> dict[str, Any]:
    """The fields of its status that are to be written."""
    wanted: dict[str, Any] = {"phase": phase, **_counts(pods)}
    has = {
        "phase": podgroup.phase,
        "running": podgroup.running,
        "succeeded": podgroup.succeeded,
        "failed": podgroup.failed,
    }
    changes = {name: value for name, value in wanted.items() if has[name] != value}
    if conditions and not _has_conditions(podgroup, conditions):
        changes["conditions"] = [*conditions, *_others(podgroup, conditions)]
    return changes


def _counts(pods: Iterable[PodObject]) -> dict[str, int]:
    counts = Counter(pod.phase for pod in pods)
    return {
        "running": counts[PodPhase.RUNNING],
        "succeeded": counts[PodPhase.SUCCEEDED],
        "failed": counts[PodPhase.FAILED],
    }


def _has_conditions(podgroup: PodGroupObject, wanted: list[dict[str, Any]]) -> bool:
    known = {each.type: each for each in podgroup.conditions}
    return all(
        each["type"] in known
        and says_the_same(
            known[each["type"]],
            Condition(each["type"], each["status"], each["reason"], each["message"]),
        )
        for each in wanted
    )


def _others(podgroup: PodGroupObject, wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Conditions of other types: whoever wrote them, they hold no longer."""
    types = {each["type"] for each in wanted}
    found = []
    for each in podgroup.conditions:
        if each.type not in types:
            moment = wanted[0]["lastTransitionTime"]
            if each.status == "False" and each.since is not None:
                moment = each.since.isoformat()
            found.append(
                {
                    "type": each.type,
                    "status": "False",
                    "reason": each.reason,
                    "message": each.message,
                    "lastTransitionTime": moment,
                }
            )
    return found


def _event_type(condition_type: str) -> str:
    if condition_type == "Scheduled":
        return "Normal"
    return "Warning"


def _portions(ids: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(ids), 500):
        yield ids[start : start + 500]
