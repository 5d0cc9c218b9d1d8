"""What would become of a job if it were submitted now: a real session on a snapshot with the job
put in, of which nothing is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from scheduler.admission.reading.workload import JobManifest
from scheduler.admission.violations import Notice, Violation
from scheduler.domain.reasons import CANNOT_PASS, ReasonCode
from scheduler.domain.resources import NOTHING, Resources
from scheduler.engine import run_session
from scheduler.engine.decisions import Outcome, Reason
from scheduler.models import ClusterState
from scheduler.selectors.sessions.trials import cluster_now
from scheduler.services.accounts.access import require_to_submit
from scheduler.services.accounts.actors import Actor, submitter
from scheduler.services.jobs.submit import check_job
from scheduler.services.jobs.trial_jobs import (
    MOST_PODS,
    label_keys,
    name_taken,
    put_in,
    strange_resource,
    total_request,
)
from scheduler.services.sessions.policies import policy_in_force

# A job that is tried out has all the pods it will ever have.
NEVER = CANNOT_PASS | {ReasonCode.NOT_ENOUGH_TASKS}


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
        violations += tuple(name_taken(job))
    if violations or job is None:
        return Forecast(
            Prospect.REFUSED,
            "It cannot be submitted as it is.",
            violations=tuple(violations),
            notices=notices,
        )
    return replace(_try_in_session(job), notices=notices)


def _try_in_session(job: JobManifest) -> Forecast:
    pods = sum(task.replicas for task in job.tasks)
    request = total_request(job)
    if pods > MOST_PODS:
        words = (
            f"A gang of {pods} pods is too large to be tried out here; {MOST_PODS} is the most. It "
            "can still be submitted."
        )
        return Forecast(Prospect.WAITS, words, pods=pods, request=request)
    snapshot = cluster_now(label_keys([job]))
    strange = strange_resource(job, snapshot)
    if strange:
        words = f"The cluster has no {strange} at all."
        return Forecast(
            Prospect.NEVER,
            words,
            ReasonCode.EXCEEDS_CLUSTER,
            pods=pods,
            request=request,
        )
    key = put_in(job, snapshot)
    outcome = run_session(
        snapshot, policy_in_force(ClusterState.objects.select_related("policy").get(pk=1))
    )
    return replace(_forecast_of(key, job, outcome), pods=pods, request=request)


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
