"""Which disruption budgets protect a pod."""

from __future__ import annotations

from scheduler.clusters.kubernetes.selectors import selects
from scheduler.clusters.kubernetes.values import PodObject
from scheduler.services.cluster.mirror.store import Store

MOST_BUDGETS = 8
"""Of one pod: the API server refuses to evict a pod that has more than one."""


def budgets_of(pod: PodObject, store: Store) -> str:
    """Their names with commas between them; names of Kubernetes have none."""
    found = []
    for budget in store.budgets_in(pod.meta.namespace):
        if selects(budget.selector, pod.meta.labels):
            found.append(budget.meta.name)
    return ",".join(sorted(found)[:MOST_BUDGETS])
