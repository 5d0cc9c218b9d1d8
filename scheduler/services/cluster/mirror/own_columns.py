"""What sessions and dispatch write to mirrored rows, where pods are placed here.

The cluster hears of a decision later than the database, so what the mirror has of it may be old.
"""

from __future__ import annotations

from collections.abc import Collection

from scheduler.clusters.kubernetes.values import PodObject
from scheduler.models import Pod, PodGroup
from scheduler.services.cluster.mirror.object_rows import pod_phase
from scheduler.services.cluster.mirror.table import SharedColumns

POD_COLUMNS = SharedColumns(
    ("node_id", "phase", "bound_at"),
    "((d.phase = 'Pending' AND {row}.phase <> 'Pending') "
    "OR (d.phase IN ('Bound', 'Running', 'Unknown') AND {row}.phase = 'Releasing'))",
    rows_may_go=True,  # dispatch removes pods that are gone
)
"""A pod that we bind keeps its room until the server was asked, whatever the mirror says: a pod
that had a node once never loses it. One that we evict is leaving, even before it was told so.
"""

PODGROUP_COLUMNS = SharedColumns(("phase",), "d.phase <> 'Completed'")
"""The phase of a podgroup is ours. Only the job that it belongs to says when it is over."""

_ENDED = ("Succeeded", "Failed")


def is_alive(pods: Collection[PodObject]) -> bool:
    """Whether one of these pods waits or runs."""
    return any(pod_phase(pod) not in _ENDED for pod in pods)


def reopen_podgroups(ids: Collection[int]) -> None:
    """These have pods that wait or run: whoever made them has tried again."""
    if ids:
        over = PodGroup.objects.filter(pk__in=ids, phase="Completed")
        over.update(phase="Pending", finished_at=None)


def nodes_of_bound(uids: Collection[str]) -> list[tuple[str, str]]:
    """Of these pods, by stored uid, those that we bind, each with its node."""
    if not uids:
        return []
    bound = Pod.objects.filter(
        uid__in=list(uids), phase__in=("Binding", "Bound"), node__isnull=False
    )
    return [(uid.hex, node) for uid, node in bound.values_list("uid", "node__name") if node]
