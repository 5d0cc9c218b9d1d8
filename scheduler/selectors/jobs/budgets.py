"""The disruption budgets of a real cluster that protect pods of a gang."""

from __future__ import annotations

from scheduler.models import DisruptionBudget, PodGroup


def budgets_of(gang: PodGroup) -> list[DisruptionBudget]:
    """By name. None of them where the cluster is simulated."""
    protected = gang.pods.exclude(budgets="").order_by()
    names: set[str] = set()
    for some in protected.values_list("budgets", flat=True).distinct():
        names.update(some.split(","))
    if not names:
        return []
    return list(DisruptionBudget.objects.filter(namespace=gang.namespace, name__in=names))
