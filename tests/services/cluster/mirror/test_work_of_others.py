"""Jobs and podgroups that another scheduler places have no rows: nothing can be said of them."""

from __future__ import annotations

import pytest

from scheduler.models import Job, PodGroup
from tests.mirrored import MadeUpCluster, job, kubernetes_mode, node, pod, podgroup, podgroup_of

pytestmark = pytest.mark.django_db
OTHER = "kai-scheduler"


def names_of_groups() -> set[str]:
    return set(PodGroup.objects.values_list("name", flat=True))


def test_a_job_of_another_scheduler_has_no_row_and_ours_has() -> None:
    with kubernetes_mode(mode="schedule"):
        theirs = job("theirs", scheduler_name=OTHER)
        ours = job("ours", scheduler_name="fumarole")

        MadeUpCluster().lists(
            node("n1"),
            theirs,
            podgroup_of(theirs),
            pod("theirs-0", group=theirs.group_name, scheduler=OTHER, node="n1"),
            ours,
            podgroup_of(ours),
        )

    assert names_of_groups() == {"ours"}
    assert set(Job.objects.values_list("name", flat=True)) == {"ours"}


def test_a_podgroup_loses_its_row_when_its_pods_turn_out_to_be_of_others() -> None:
    with kubernetes_mode(mode="schedule"):
        cluster = MadeUpCluster()
        cluster.lists(node("n1"), podgroup("gang"))
        assert names_of_groups() == {"gang"}

        cluster.has(pod("gang-0", group="gang", scheduler=OTHER))
        assert names_of_groups() == set()

        cluster.has(pod("gang-1", group="gang", scheduler="fumarole"))
        assert names_of_groups() == {"gang"}
