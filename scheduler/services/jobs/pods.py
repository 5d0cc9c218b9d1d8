"""Pods of a gang: made from templates, sent home, and made again."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from scheduler.admission.reading.pod import EXIT_CODE, RUN_SECONDS, PodTemplate, read_template
from scheduler.admission.reading.reader import Reader
from scheduler.admission.reading.workload import TaskManifest
from scheduler.domain.pod_rules import affinity_of, spread_of
from scheduler.domain.resources import Resources
from scheduler.models import Decision, Pod, PodClass, PodGroup, PriorityClass
from scheduler.models.bulk import (
    as_parameter,
    columns_table,
    execute,
    fetch,
    fetch_as_planned,
    values_table,
)
from scheduler.models.prepared import Prepared, PreparedInsert
from scheduler.selectors.cluster.nodes import PLACED
from scheduler.selectors.queues.submission import PriorityRow

PREEMPTABLE = "volcano.sh/preemptable"
CRITICAL_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})
SYSTEM_NAMESPACES = frozenset({"kube-system"})
_MARKS = frozenset({PREEMPTABLE, RUN_SECONDS, EXIT_CODE})
_RARELY_GIVEN = ("spread", "labels", "unsupported")
_LONGEST_KEPT_TEMPLATE = 8192  # characters
TASK_STARTS_ANEW = "its task starts again"
TAKEN_AWAY = "taken away on request"
OWN_DOING = (TASK_STARTS_ANEW, TAKEN_AWAY)
"""Why a pod leaves when its own job wants it so: nobody evicted it."""


@dataclass(frozen=True, slots=True)
class Priority:
    value: int = 0
    preemption_policy: str = "PreemptLowerPriority"


_PRIORITY_CLASSES = Prepared(
    lambda: PriorityClass.objects.order_by().values_list(
        "name", "value", "preemption_policy", "global_default"
    ),
    keep_plan=True,
)


@dataclass(slots=True)
class Priorities:
    """Priority classes by name, read once; an unknown or missing name gives the default class."""

    _known: dict[str, Priority] = field(default_factory=dict)

    @classmethod
    def load(cls) -> Priorities:
        return cls.of_rows(PriorityRow(*row) for row in _PRIORITY_CLASSES.rows())

    @classmethod
    def of_rows(cls, rows: Iterable[PriorityRow]) -> Priorities:
        known: dict[str, Priority] = {}
        defaults: list[Priority] = []
        for name, value, policy, is_default in rows:
            known[name] = Priority(value, policy)
            if is_default:
                defaults.append(known[name])
        known[""] = next(iter(defaults), Priority())
        return cls(known)

    def of(self, *names: str) -> Priority:
        """Of the first name that is known."""
        for name in names:
            if name and name in self._known:
                return self._known[name]
        return self._known[""]


# Classes of pods


def class_for(
    template: PodTemplate,
    priority: Priority,
    *,
    namespace: str,
    priority_class: str,
) -> PodClass:
    """The row of this class of pods, made on first sight."""
    return classes_for(
        [class_values(template, priority, namespace=namespace, priority_class=priority_class)]
    )[0]


def class_values(
    template: PodTemplate,
    priority: Priority,
    *,
    namespace: str,
    priority_class: str,
) -> PodClass:
    """The class of these pods, not yet stored; its digest says what is the same."""
    preemptable = (
        template.labels.get(PREEMPTABLE) or template.annotations.get(PREEMPTABLE) or "true"
    ) != "false"
    labels = {key: value for key, value in template.labels.items() if key not in _MARKS}
    values: dict[str, Any] = {
        "requests": Resources(
            {name: amount for name, amount in template.requests.items() if name != "pods"}
        ),
        "node_selector": dict(template.node_selector),
        "affinity": affinity_of(template.affinity, labels),
        "tolerations": [dict(toleration) for toleration in template.tolerations],
        "priority": priority.value,
        "preemption_policy": priority.preemption_policy,
        "preemptable": preemptable,
        "critical": priority_class in CRITICAL_CLASSES or namespace in SYSTEM_NAMESPACES,
        "spread": spread_of(template.spread, labels),
        "labels": labels,
        "unsupported": list(template.unsupported),
    }
    return new_class(values)


def new_class(values: Mapping[str, Any]) -> PodClass:
    """Not yet stored. What most pods do not have is left out of the digest, as it always was."""
    told = {**values, "requests": dict(values["requests"])}
    for name in _RARELY_GIVEN:
        if not told[name]:
            del told[name]
    text = json.dumps(told, sort_keys=True)
    return PodClass(digest=hashlib.sha256(text.encode()).hexdigest(), **values)


def classes_for(wanted: Sequence[PodClass]) -> list[PodClass]:
    """The stored classes, in the same order; those that were not there are made.

    Nobody can prune them while this transaction lasts.
    """
    by_digest = {pod_class.digest: pod_class for pod_class in wanted}
    known = _class_ids(by_digest)
    missing = [pod_class for digest, pod_class in sorted(by_digest.items()) if digest not in known]
    if missing:
        PodClass.objects.bulk_create(missing, ignore_conflicts=True)
        known = _class_ids(by_digest)
    for digest, pod_class in by_digest.items():
        pod_class.pk = known[digest]
    return [by_digest[pod_class.digest] for pod_class in wanted]


def _class_ids(digests: Iterable[str]) -> dict[str, int]:
    table = values_table("d", {"digest": "text"})
    if connection.vendor == "postgresql":
        lock = " FOR KEY SHARE OF c"
    else:
        lock = ""
    sql = (
        f"SELECT c.digest, c.id FROM {table} JOIN scheduler_podclass c ON c.digest = d.digest{lock}"
    )
    return dict(fetch_as_planned(sql, [as_parameter({"digest": digest} for digest in digests)]))


# Pods


def new_pods(
    podgroup: PodGroup,
    pod_class: PodClass,
    template: PodTemplate,
    task: str,
    names: Mapping[int, str],
    version: int = 0,
) -> list[Pod]:
    """Rows not yet saved, one a name; `names` are by the pod's number."""
    return [
        Pod(
            namespace=podgroup.namespace,
            name=name,
            podgroup=podgroup,
            pod_class=pod_class,
            task=task,
            index=index,
            job_version=version,
            run_seconds=template.run_seconds,
            planned_exit_code=template.exit_code,
        )
        for index, name in names.items()
    ]


_FEW_PODS = PreparedInsert(Pod, keep_plan=True)
_GIVEN = {
    "uid": "uuid",
    "namespace": "text",
    "name": "text",
    "podgroup_id": "bigint",
    "pod_class_id": "bigint",
    "task": "text",
    "index": "integer",
    "job_version": "integer",
    "run_seconds": "double precision",
    "planned_exit_code": "integer",
}


def insert_pods(pods: Sequence[Pod]) -> None:
    """New pods as `new_pods` makes them, in one statement.

    Raises `IntegrityError` where a name is taken.
    """
    if len(pods) <= PreparedInsert.MOST_ROWS:
        _FEW_PODS.insert(pods)
        return
    columns = [[getattr(pod, name) for pod in pods] for name in _GIVEN]
    columns[0] = [_stored_uid(pod.uid) for pod in pods]
    table, parameters = columns_table("d", _GIVEN, columns)
    names = ", ".join(f'"{name}"' for name in _GIVEN)
    execute(
        f"INSERT INTO scheduler_pod ({names}, phase, borrowed, message, unwanted, created_at) "
        f"SELECT {names}, 'Pending', false, '', false, %s FROM {table}",
        [timezone.now(), *parameters],
    )


def are_taken(namespace: str, names: Iterable[str]) -> bool:
    """Whether any pod of this namespace has one of these names."""
    table = values_table("d", {"name": "text"})
    sql = (
        f"SELECT 1 FROM {table} JOIN scheduler_pod p ON p.namespace = %s AND p.name = d.name LIMIT "
        "1"
    )
    return bool(fetch(sql, [as_parameter({"name": name} for name in names), namespace]))


def template_of(stored: Mapping[str, Any]) -> PodTemplate:
    """A stored template, read again.

    What came out is shared between readers and must not be changed.
    """
    text = json.dumps(stored)
    if len(text) <= _LONGEST_KEPT_TEMPLATE:
        return _kept_template(text)
    return _read_template(text)


def _read_template(text: str) -> PodTemplate:
    return read_template(Reader(), json.loads(text), "template")


# programs submit the same template again and again
_kept_template = lru_cache(maxsize=1024)(_read_template)


def send_home(pods: QuerySet[Pod], reason: str, now: datetime) -> int:
    """Stop these pods: those on a node are told to go, those that wait are deleted at once.

    How many are still leaving.
    """
    pods.filter(phase="Pending").delete()
    placed = list(pods.filter(phase__in=PLACED).select_related("podgroup__queue", "node"))
    Pod.objects.filter(pk__in=[pod.pk for pod in placed]).update(
        phase="Releasing", message=reason[:512]
    )
    Decision.objects.bulk_create((_eviction_decision(pod, now) for pod in placed), batch_size=2000)
    return pods.filter(phase="Releasing").count()


def take_away(pods: QuerySet[Pod]) -> int:
    """Remove these pods for good; how many must leave a node first."""
    pods.filter(phase__in=("Succeeded", "Failed")).delete()
    pods.update(unwanted=True)
    return send_home(pods, TAKEN_AWAY, timezone.now())


def _eviction_decision(pod: Pod, now: datetime) -> Decision:
    return Decision(
        kind=Decision.EVICT,
        pod=pod,
        pod_name=f"{pod.namespace}/{pod.name}",
        podgroup_name=f"{pod.podgroup.namespace}/{pod.podgroup.name}",
        queue_name=pod.podgroup.queue.name,
        node_name=pod.node.name if pod.node else "",
        action="stop",
        created_at=now,
    )


def fresh_start(pods: QuerySet[Pod], now: datetime) -> int:
    """These pods come back as new ones of the same name, waiting for a place."""
    rows = [
        {"id": pk, "uid": _stored_uid(uuid.uuid4())} for pk in pods.values_list("pk", flat=True)
    ]
    if not rows:
        return 0
    return execute(
        "UPDATE scheduler_pod "
        "SET uid = d.uid, phase = 'Pending', node_id = NULL, borrowed = false, "
        "created_at = %s, bound_at = NULL, "
        "started_at = NULL, finished_at = NULL, exit_code = NULL, reserved_node_id = NULL, "
        "reserved_until = NULL, message = '' "
        f"FROM {values_table('d', {'id': 'bigint', 'uid': 'uuid'})} WHERE scheduler_pod.id = d.id",
        [now, as_parameter(rows)],
    )


def _stored_uid(uid: uuid.UUID) -> str:
    """SQLite keeps them without dashes, and PostgreSQL reads both."""
    return uid.hex


def longest_run(declared: Iterable[float | None]) -> float | None:
    """How long a gang runs at most, if each of its tasks or pods declares a time."""
    longest: float | None = None
    for seconds in declared:
        if seconds is None:
            return None
        longest = max(seconds, longest or 0.0)
    return longest


def minimum_resources(tasks: Iterable[tuple[Resources, int, int]], min_available: int) -> Resources:
    """What the gang needs to start: (request, minimum, replicas) a task, first every task's
    minimum, then in order up to the gang's.
    """
    tasks = list(tasks)
    chosen = [0] * len(tasks)
    left = min_available
    minimums = [minimum for _, minimum, _ in tasks]
    replicas = [replicas for _, _, replicas in tasks]
    for limits in (minimums, replicas):
        for position, limit in enumerate(limits):
            more = min(max(0, limit - chosen[position]), left)
            chosen[position] += more
            left -= more
    amounts: dict[str, int] = {}
    for (request, _, _), count in zip(tasks, chosen, strict=True):
        for name, amount in request.items():
            amounts[name] = amounts.get(name, 0) + amount * count
    return Resources({name: amount for name, amount in amounts.items() if name != "pods"})


def stored_task(task: TaskManifest) -> dict[str, Any]:
    return {
        "name": task.name,
        "replicas": task.replicas,
        "minAvailable": task.min_available,
        "maxRetry": task.max_retry,
        "template": dict(task.template.raw),
        "policies": task.policies,
        "dependsOn": dict(task.depends_on),
    }
