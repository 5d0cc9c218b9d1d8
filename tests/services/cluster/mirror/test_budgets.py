"""Disruption budgets of the cluster: stored, and named by the pods that they protect."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.models import DisruptionBudget, Pod
from tests.mirrored import MadeUpCluster, budget, moved, pod, podgroup

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

WEB = {"matchLabels": {"app": "web"}}


def labelled(name: str, app: str, **given):
    return pod(name, group="g", about={"labels": {"app": app}}, **given)


def budgets() -> dict[str, str]:
    return dict(Pod.objects.values_list("name", "budgets"))


def test_a_budget_is_stored_and_the_pods_that_it_selects_name_it():
    cluster = MadeUpCluster()

    cluster.has(
        podgroup("g"),
        labelled("p-0", "web"),
        labelled("p-1", "batch"),
        budget("web", WEB, allowed=2),
        budget("web", WEB, namespace="elsewhere"),
    )

    row = DisruptionBudget.objects.get(namespace="default")
    assert (row.name, row.selector, row.disruptions_allowed) == ("web", WEB, 2)
    assert row.min_available == "1"
    assert budgets() == {"p-0": "web", "p-1": ""}


def test_a_pod_that_comes_later_or_gets_other_labels_is_looked_at_again():
    cluster = MadeUpCluster()
    cluster.has(podgroup("g"), budget("web", WEB), budget("all", {}))
    first = labelled("p", "web")

    cluster.has(first)
    assert budgets() == {"p": "all,web"}

    cluster.has(moved(replace(first, meta=replace(first.meta, labels={"app": "batch"}))))
    assert budgets() == {"p": "all"}


def test_a_budget_that_selects_others_now_or_is_gone():
    cluster = MadeUpCluster()
    first = budget("b", WEB)
    cluster.has(podgroup("g"), labelled("p-0", "web"), labelled("p-1", "batch"), first)

    second = moved(first, selector={"matchLabels": {"app": "batch"}})
    written = cluster.has(second)
    assert budgets() == {"p-0": "", "p-1": "b"}
    assert written.podgroups == {"default/g"}

    cluster.loses(second)
    assert budgets() == {"p-0": "", "p-1": ""}
    assert not DisruptionBudget.objects.exists()


def test_other_figures_are_told_to_the_page_of_the_podgroup_and_no_pod_is_written():
    cluster = MadeUpCluster()
    first = budget("web", WEB, allowed=1)
    cluster.has(podgroup("g"), podgroup("other"), labelled("p", "web"), first)

    written = cluster.has(moved(first, disruptions_allowed=0, healthy_pods=1, needed_pods=1))

    row = DisruptionBudget.objects.get()
    assert (row.disruptions_allowed, row.healthy_pods, row.needed_pods) == (0, 1, 1)
    assert written.podgroups == {"default/g"}


def test_a_budget_that_went_while_nobody_listened_is_removed():
    cluster = MadeUpCluster()
    group = podgroup("g")
    first = labelled("p", "web")
    cluster.has(group, first, budget("web", WEB))

    cluster.begin_anew()
    cluster.lists(group, first)

    assert not DisruptionBudget.objects.exists()
    assert budgets() == {"p": ""}


def test_a_budget_of_the_same_name_takes_the_place_of_another():
    cluster = MadeUpCluster()
    cluster.has(podgroup("g"), labelled("p", "web"), first := budget("web", WEB))

    cluster.store.take(_removed(first))
    cluster.has(budget("web", {}, allowed=5))

    assert DisruptionBudget.objects.get().disruptions_allowed == 5
    assert budgets() == {"p": "web"}


def _removed(value):
    from scheduler.clusters.kubernetes.resources import DISRUPTION_BUDGETS
    from scheduler.clusters.kubernetes.watch_events import Removed

    return Removed(DISRUPTION_BUDGETS, value.meta.resource_version, value)
