"""Carry recorded decisions out on the cluster.

Each is claimed by conditional update, so that two dispatchers never do the same one.

A dispatcher that dies leaves claimed decisions behind; they are taken up again after a while. The
cluster takes a repeated request for what it is, and a decision that is no longer true (the pod went
on meanwhile) is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import transaction
from django.utils import timezone

from scheduler.clusters.base import Answer, BindRequest, EvictRequest
from scheduler.conf import is_kubernetes
from scheduler.models import Decision, Pod
from scheduler.models.bulk import as_parameter, execute, values_table
from scheduler.services.cluster.connection import cluster_in_use, cluster_transaction
from scheduler.services.cluster.decision_claims import claim_decisions
from scheduler.services.cluster.kubernetes_dispatch import dispatch_to_cluster

BATCH = 2000


def dispatch() -> int:
    """Everything that is open, oldest first, a batch at a time.

    How many decisions were carried out.
    """
    if is_kubernetes():
        return dispatch_to_cluster()
    done = 0
    while batch := dispatch_batch():
        done += batch
    return done


def dispatch_batch() -> int:
    with cluster_transaction():
        decisions = claim_decisions(BATCH)
        if decisions:
            _carry_out(decisions)
    return len(decisions)


def _carry_out(decisions: Sequence[Decision]) -> None:
    binds = [decision for decision in decisions if _is_bind_to_do(decision)]
    evicts = [
        decision
        for decision in decisions
        if decision.kind == Decision.EVICT and decision.pod and decision.pod.phase == "Releasing"
    ]
    pods = [decision.pod_id for decision in (*binds, *evicts) if decision.pod_id]
    with cluster_in_use(pods, [decision.node_name for decision in binds]) as cluster:
        places = cluster.bind([_bind_request(decision) for decision in binds])
        stops = cluster.evict(
            [
                EvictRequest(decision.pod_id or 0, decision.pod_name, decision.action)
                for decision in evicts
            ]
        )
    _write_answers(
        decisions, places, _refused_by_cluster(binds, places), _refused_by_cluster(evicts, stops)
    )


def _refused_by_cluster(asked: Sequence[Decision], answers: Sequence[Answer]) -> dict[int, str]:
    """What the cluster said against a decision, by its number."""
    found: dict[int, str] = {}
    for decision, answer in zip(asked, answers, strict=True):
        if not answer.accepted:
            found[decision.pk] = answer.error
    return found


def _is_bind_to_do(decision: Decision) -> bool:
    """Still what was decided: the pod waits for just this node."""
    pod = decision.pod
    return (
        decision.kind == Decision.BIND
        and pod is not None
        and pod.phase == "Binding"
        and _node_name(pod) == decision.node_name
    )


def _node_name(pod: Pod) -> str:
    if pod.node:
        return pod.node.name
    return ""


def _bind_request(decision: Decision) -> BindRequest:
    pod = decision.pod
    assert pod is not None
    template = {"run_seconds": pod.run_seconds, "exit_code": pod.planned_exit_code}
    return BindRequest(pod.pk, str(pod.uid), decision.pod_name, decision.node_name, template)


@transaction.atomic
def _write_answers(
    decisions: Sequence[Decision],
    places: Sequence[Answer],
    not_placed: Mapping[int, str],
    not_stopped: Mapping[int, str],
) -> None:
    """A place that the cluster would not give: the pod waits again.

    A pod that it would not stop: it is asked again after a while.
    """
    Pod.objects.filter(
        pk__in=[answer.pod_id for answer in places if answer.accepted], phase="Binding"
    ).update(phase="Bound")
    if not_placed:
        refused = [answer.pod_id for answer in places if not answer.accepted]
        Pod.objects.filter(pk__in=refused, phase="Binding").update(
            phase="Pending", node=None, borrowed=False, bound_at=None
        )
    done = [decision.pk for decision in decisions if decision.pk not in not_stopped]
    Decision.objects.filter(pk__in=done).update(done_at=timezone.now())
    _write_errors({**not_placed, **not_stopped})


def _write_errors(errors: Mapping[int, str]) -> None:
    rows = [{"id": pk, "error": error[:512]} for pk, error in errors.items()]
    if rows:
        table = values_table("d", {"id": "bigint", "error": "text"})
        execute(
            f"UPDATE scheduler_decision SET error = d.error FROM {table} WHERE "
            "scheduler_decision.id = d.id",
            [as_parameter(rows)],
        )
