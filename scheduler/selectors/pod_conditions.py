"""The conditions of a pod as Kubernetes writes them: has it a place, and why not."""

from __future__ import annotations

from scheduler.domain.pod_conditions import unpacked
from scheduler.models import Pod


def pod_conditions(pod: Pod) -> list[dict[str, str]]:
    """PodScheduled: True for a pod that has or had a place; False with the last session's reason; nothing before a session has looked."""
    if pod.phase != "Pending":
        when = {"lastTransitionTime": pod.bound_at.isoformat()} if pod.bound_at else {}
        return [{"type": "PodScheduled", "status": "True", **when}]
    told = unpacked(pod.podgroup.pod_conditions, pod.pk, str(pod))
    return [_not_scheduled(told)] if told else []


def _not_scheduled(told: dict[str, str]) -> dict[str, str]:
    moment = {"lastTransitionTime": told["at"]}
    return {"type": "PodScheduled", "status": "False", "reason": told["reason"], "message": told["message"], **moment}
