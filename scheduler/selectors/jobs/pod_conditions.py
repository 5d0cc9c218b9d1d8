"""The conditions of a pod as Kubernetes writes them: has it a place, and why not."""

from __future__ import annotations

from scheduler.domain.conditions import condition
from scheduler.domain.pod_conditions import unpacked
from scheduler.models import Pod


def pod_conditions(pod: Pod) -> list[dict[str, str]]:
    """PodScheduled: True for a pod that has or had a place.

    False with the last session's reason; nothing before a session has looked.
    """
    if pod.phase != "Pending":
        since = (pod.bound_at or pod.created_at).isoformat()
        if pod.node:
            place = f"It was given a place on {pod.node.name}."
        else:
            place = "It was given a place."
        return [condition("PodScheduled", "Scheduled", place, since)]
    stored = unpacked(pod.podgroup.pod_conditions, pod.pk, str(pod))
    if stored:
        return [_not_scheduled(stored)]
    return []


def _not_scheduled(stored: dict[str, str]) -> dict[str, str]:
    return condition("PodScheduled", stored["reason"], stored["message"], stored["at"], holds=False)
