"""What is said of podgroups of Kubernetes itself: that they have their places, or why not.

Kubernetes' own scheduler writes the same conditions. Pure: from the cluster and from what sessions
have found to what is to be written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from scheduler.clusters.kubernetes.resources import Resource
from scheduler.clusters.kubernetes.values import Condition, PodGroupObject, PodObject
from scheduler.services.cluster.mirror.sentences import says_the_same

_DISRUPTION_TARGET: Final = "DisruptionTarget"
_FIRST_VERSION: Final = "v1alpha2"


def scheduled_condition_type(resource: Resource) -> str:
    """Kubernetes 1.36 calls it otherwise than later versions."""
    if resource.version == _FIRST_VERSION:
        return "PodGroupScheduled"
    return "PodGroupInitiallyScheduled"


def condition_changes(
    podgroup: PodGroupObject,
    condition_type: str,
    pods: Collection[PodObject],
    waits_for: tuple[str, str],
) -> list[Condition]:
    """The conditions that are to be written.

    `waits_for` is the reason and the sentence of the sessions; both are "" where nothing is said.
    """
    wanted = [
        *_scheduled(podgroup, condition_type, pods, waits_for),
        *_disruption(podgroup, pods),
    ]
    known = {each.type: each for each in podgroup.conditions}
    changes: list[Condition] = []
    for condition in wanted:
        before = known.get(condition.type)
        if not says_the_same(before, condition):
            changes.append(_with_moment(condition, before))
    return changes


def _with_moment(condition: Condition, before: Condition | None) -> Condition:
    """Since when it is so: another sentence is no transition."""
    if before is None or before.status != condition.status:
        return condition
    return Condition(
        condition.type, condition.status, condition.reason, condition.message, before.since
    )


def _scheduled(
    podgroup: PodGroupObject,
    condition_type: str,
    pods: Collection[PodObject],
    waits_for: tuple[str, str],
) -> Iterator[Condition]:
    """Once it has had its places this stays true, whatever becomes of its pods."""
    if any(each.type == condition_type and each.status == "True" for each in podgroup.conditions):
        return
    placed = sum(1 for pod in pods if pod.node)
    reason, message = waits_for
    if placed >= podgroup.min_member:
        words = f"{placed} pods have places, at least {podgroup.min_member} are needed."
        yield Condition(condition_type, "True", "Scheduled", words)
    elif reason:
        yield Condition(condition_type, "False", reason, message)


def _disruption(podgroup: PodGroupObject, pods: Collection[PodObject]) -> Iterator[Condition]:
    """It is taken apart if a scheduler takes away so many pods that too few are left."""
    leaving = [pod for pod in pods if pod.preempted and pod.meta.deleted and not pod.is_finished]
    staying = [pod for pod in pods if pod.takes_room and not pod.meta.deleted]
    is_told = any(
        each.type == _DISRUPTION_TARGET and each.status == "True" for each in podgroup.conditions
    )
    if leaving and len(staying) < podgroup.min_member:
        yield Condition(_DISRUPTION_TARGET, "True", "PreemptionByScheduler", leaving[0].preempted)
    elif is_told and not leaving and len(staying) >= podgroup.min_member:
        yield Condition(_DISRUPTION_TARGET, "False", "Scheduled", "It has its places again.")
