"""Carry recorded decisions out on the cluster. Each is claimed by conditional update, so that two dispatchers never do the same one.

A dispatcher that dies leaves claimed decisions behind; they are taken up again after a while. The cluster takes a repeated request for what
it is, and a decision that is no longer true (the pod went on meanwhile) is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from scheduler.clusters.base import Answer, BindRequest, EvictRequest
from scheduler.models import Decision, Pod
from scheduler.models.bulk import as_parameter, execute, values_table
from scheduler.services.clusters import cluster_in_use, cluster_transaction

BATCH = 2000
CLAIM_SECONDS = 30


def dispatch() -> int:
    """Everything that is open, oldest first, a batch at a time. How many decisions were carried out."""
    done = 0
    while batch := dispatch_batch():
        done += batch
    return done


def dispatch_batch() -> int:
    with cluster_transaction():
        decisions = _claim()
        if decisions:
            _carry_out(decisions)
    return len(decisions)


@transaction.atomic
def _claim() -> list[Decision]:
    now = timezone.now()
    claimable = Q(claimed_at=None) | Q(claimed_at__lt=now - timedelta(seconds=CLAIM_SECONDS))
    found = Decision.objects.filter(claimable, done_at=None).order_by("id").values_list("pk", flat=True)[:BATCH]
    claimed = list(found.select_for_update(skip_locked=True))
    if not claimed:
        return []
    Decision.objects.filter(pk__in=claimed).update(claimed_at=now, attempts=F("attempts") + 1)
    return list(Decision.objects.filter(pk__in=claimed).select_related("pod__node").order_by("id"))


def _carry_out(decisions: Sequence[Decision]) -> None:
    binds = [decision for decision in decisions if _is_bind_to_do(decision)]
    evicts = [decision for decision in decisions if decision.kind == Decision.EVICT and decision.pod and decision.pod.phase == "Releasing"]
    pods = [decision.pod_id for decision in (*binds, *evicts) if decision.pod_id]
    with cluster_in_use(pods, [decision.node_name for decision in binds]) as cluster:
        answers = cluster.bind([_bind_request(decision) for decision in binds])
        cluster.evict([EvictRequest(decision.pod_id or 0, decision.pod_name, decision.action) for decision in evicts])
    _write_answers(decisions, answers)


def _is_bind_to_do(decision: Decision) -> bool:
    """Still what was decided: the pod waits for just this node."""
    pod = decision.pod
    return decision.kind == Decision.BIND and pod is not None and pod.phase == "Binding" and _node_name(pod) == decision.node_name


def _node_name(pod: Pod) -> str:
    return pod.node.name if pod.node else ""


def _bind_request(decision: Decision) -> BindRequest:
    pod = decision.pod
    assert pod is not None
    template = {"run_seconds": pod.run_seconds, "exit_code": pod.planned_exit_code}
    return BindRequest(pod.pk, str(pod.uid), decision.pod_name, decision.node_name, template)


@transaction.atomic
def _write_answers(decisions: Sequence[Decision], answers: Sequence[Answer]) -> None:
    """A place that the cluster would not give: the pod waits again."""
    refused = [answer for answer in answers if not answer.accepted]
    accepted = [answer.pod_id for answer in answers if answer.accepted]
    Pod.objects.filter(pk__in=accepted, phase="Binding").update(phase="Bound")
    if refused:
        Pod.objects.filter(pk__in=[answer.pod_id for answer in refused], phase="Binding").update(
            phase="Pending", node=None, borrowed=False, bound_at=None
        )
    Decision.objects.filter(pk__in=[decision.pk for decision in decisions]).update(done_at=timezone.now())
    _write_errors({answer.pod_id: answer.error for answer in refused}, decisions)


def _write_errors(errors: dict[int, str], decisions: Sequence[Decision]) -> None:
    rows = [{"id": decision.pk, "error": errors[decision.pod_id][:512]} for decision in decisions if decision.pod_id in errors]
    if rows:
        table = values_table("d", {"id": "bigint", "error": "text"})
        execute(f"UPDATE scheduler_decision SET error = d.error FROM {table} WHERE scheduler_decision.id = d.id", [as_parameter(rows)])
