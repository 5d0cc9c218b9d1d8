"""What would become of a job if it were submitted now: a real session on a snapshot with the job
put in, of which nothing is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from scheduler.admission.reading.pod import PodTemplate
from scheduler.admission.reading.workload import JobManifest
from scheduler.admission.violations import Notice, Violation
from scheduler.domain.pod_rules import affinity_of, spread_of, watched_keys
from scheduler.domain.queues import DEFAULT
from scheduler.domain.reasons import CANNOT_PASS, ReasonCode
from scheduler.domain.resources import NOTHING, Resources
from scheduler.domain.snapshot import Snapshot, all_selectors, labelled_class
from scheduler.domain.tables import NO_NODE
from scheduler.domain.workloads import Constraint, PodClass, PodGroup, PodStatus
from scheduler.engine import run_session
from scheduler.engine.decisions import Outcome, Reason
from scheduler.models import ClusterState, Job
from scheduler.selectors.sessions.snapshot_rows import constraint_of
from scheduler.selectors.sessions.trials import cluster_now
from scheduler.services.accounts.access import require_to_submit
from scheduler.services.accounts.actors import Actor, submitter
from scheduler.services.jobs.pods import (
    CRITICAL_CLASSES,
    PREEMPTABLE,
    SYSTEM_NAMESPACES,
    Priorities,
    longest_run,
    minimum_resources,
)
from scheduler.services.jobs.submit import check_job
from scheduler.services.sessions.policies import policy_in_force

# A job that is tried out has all the pods it will ever have.
NEVER = CANNOT_PASS | {ReasonCode.NOT_ENOUGH_TASKS}
MOST_PODS = 10_000  # a larger gang is not tried out on a page


class Prospect(StrEnum):
    STARTS = "starts"
    MAKES_ROOM = "makesRoom"
    WAITS = "waits"
    NEVER = "never"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Forecast:
    """`nodes` counts the pods that each node would get.

    `victims` are the pods that would have to go for it, with their queues.

    They can be of queues that the caller does not see: whoever shows them asks first.
    """

    prospect: Prospect
    message: str
    code: str = ""
    checks: tuple[Any, ...] = ()
    nodes: Mapping[str, int] = field(default_factory=dict)
    victims: tuple[tuple[str, str], ...] = ()
    placed: int = 0
    pods: int = 0
    request: Resources = NOTHING
    violations: tuple[Violation, ...] = ()
    notices: tuple[Notice, ...] = ()


def forecast_job(manifest: object, *, by: Actor) -> Forecast:
    """Starts now, waits because, can never run because; or refused, with every rule that is broken.

    Writes nothing.
    """
    job, violations, notices = check_job(manifest, submitter(by))
    if job is not None:
        require_to_submit(by, job.queue)
        violations += tuple(_name_taken(job))
    if violations or job is None:
        return Forecast(
            Prospect.REFUSED,
            "It cannot be submitted as it is.",
            violations=tuple(violations),
            notices=notices,
        )
    return replace(_try_in_session(job), notices=notices)


def _name_taken(job: JobManifest) -> list[Violation]:
    namespace = job.metadata.namespace or DEFAULT
    if (
        not job.metadata.name
        or not Job.objects.filter(namespace=namespace, name=job.metadata.name).exists()
    ):
        return []
    message = f"There is a job {namespace}/{job.metadata.name} already."
    return [Violation("already_exists", job.queue, "metadata.name", message, "choose another name")]


def _try_in_session(job: JobManifest) -> Forecast:
    pods = sum(task.replicas for task in job.tasks)
    request = _total_request(job)
    if pods > MOST_PODS:
        words = (
            f"A gang of {pods} pods is too large to be tried out here; {MOST_PODS} is the most. It "
            "can still be submitted."
        )
        return Forecast(Prospect.WAITS, words, pods=pods, request=request)
    snapshot = cluster_now(_label_keys(job))
    strange = sorted(name for name in request if name not in snapshot.resources)
    if strange:
        words = f"The cluster has no {strange[0]} at all."
        return Forecast(
            Prospect.NEVER,
            words,
            ReasonCode.EXCEEDS_CLUSTER,
            pods=pods,
            request=request,
        )
    key = _put_in(job, snapshot)
    outcome = run_session(
        snapshot, policy_in_force(ClusterState.objects.select_related("policy").get(pk=1))
    )
    return replace(_forecast_of(key, job, outcome), pods=pods, request=request)


def _label_keys(job: JobManifest) -> frozenset[str] | None:
    """The labels that rules of its pods look at; None if they have no rules."""
    constraints = [_constraint(task.template) for task in job.tasks]
    return watched_keys(all_selectors(constraints, ()))


def _constraint(template: PodTemplate) -> Constraint:
    return constraint_of(
        template.node_selector,
        affinity_of(template.affinity, template.labels),
        template.tolerations,
        spread_of(template.spread, template.labels),
        template.unsupported,
    )


def _total_request(job: JobManifest) -> Resources:
    whole = NOTHING
    for task in job.tasks:
        whole = whole + task.template.requests * task.replicas
    return whole


def _put_in(job: JobManifest, snapshot: Snapshot) -> str:
    """The gang and its pods, as submitting would make them.

    Tasks that wait for others are left out, as they would be.
    """
    priorities = Priorities.load()
    namespace = job.metadata.namespace or DEFAULT
    name = job.metadata.name or "new-job"
    minimums = []
    for task in job.tasks:
        minimums.append((task.template.requests, task.min_available, task.replicas))
    group = PodGroup(
        name=name,
        namespace=namespace,
        queue=job.queue,
        min_member=job.min_available,
        role_minimums={task.name: task.min_available for task in job.tasks},
        min_resources=minimum_resources(minimums, job.min_available),
        priority=priorities.of(job.priority_class).value,
        created=snapshot.taken_at,
        expected_seconds=longest_run(task.template.run_seconds for task in job.tasks),
    )
    row = int(snapshot.add_groups([group])[0])
    for task in job.tasks:
        if task.replicas and not task.depends_on:
            pod_class = snapshot.classes.number(
                labelled_class(
                    _pod_class(task, job, priorities, namespace),
                    namespace,
                    task.template.labels,
                    snapshot.label_keys,
                )
            )
            keys = [f"{namespace}/{name}-{task.name}-{index}" for index in range(task.replicas)]
            count = len(keys)
            snapshot.add_pods(
                key=keys,
                group=[row] * count,
                pod_class=[pod_class] * count,
                status=[PodStatus.PENDING] * count,
                node=[NO_NODE] * count,
                created=[snapshot.taken_at] * count,
            )
    return group.key


def _pod_class(task: Any, job: JobManifest, priorities: Priorities, namespace: str) -> PodClass:
    template = task.template
    own_class = template.priority_class or job.priority_class
    priority = priorities.of(own_class)
    preemptable = (
        template.labels.get(PREEMPTABLE) or template.annotations.get(PREEMPTABLE) or "true"
    ) != "false"
    return PodClass(
        request=Resources({**template.requests, "pods": 1}),
        priority=priority.value,
        role=task.name,
        constraint=_constraint(template),
        preemptable=preemptable,
        preempts=priority.preemption_policy != "Never",
        critical=own_class in CRITICAL_CLASSES or namespace in SYSTEM_NAMESPACES,
    )


def _forecast_of(key: str, job: JobManifest, outcome: Outcome) -> Forecast:
    nodes: dict[str, int] = {}
    for bind in outcome.binds:
        if bind.podgroup == key:
            nodes[bind.node] = nodes.get(bind.node, 0) + 1
    placed = sum(nodes.values())
    victims = []
    for evict in outcome.evictions:
        if evict.beneficiary == key:
            victims.append((evict.pod, evict.queue))
    if placed >= max(1, job.min_available):
        return Forecast(
            Prospect.STARTS,
            _start_words(placed, len(nodes)),
            nodes=nodes,
            placed=placed,
            victims=tuple(victims),
        )
    if victims:
        words = (
            f"It would start as soon as {len(victims)} {_pod_or_pods(len(victims))} of others "
            "have made room for it."
        )
        return Forecast(Prospect.MAKES_ROOM, words, victims=tuple(victims))
    return _waiting_forecast(outcome.reasons.get(key))


def _start_words(placed: int, nodes: int) -> str:
    return (
        f"{placed} {_pod_or_pods(placed)} would start at once, on {nodes} "
        f"{'node' if nodes == 1 else 'nodes'}."
    )


def _pod_or_pods(number: int) -> str:
    if number == 1:
        return "pod"
    return "pods"


def _waiting_forecast(reason: Reason | None) -> Forecast:
    if reason is None:
        return Forecast(
            Prospect.WAITS, "The next session would look at it.", ReasonCode.AWAITING_EVALUATION
        )
    if reason.code in NEVER:
        prospect = Prospect.NEVER
    else:
        prospect = Prospect.WAITS
    return Forecast(prospect, reason.message, reason.code, checks=reason.checks)
