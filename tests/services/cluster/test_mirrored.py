"""Objects of a real cluster but queues are changed there: every door says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from scheduler.admission.violations import Rejected
from scheduler.domain.jobs.policies import JobAction
from scheduler.models import AuditEntry, Job, Namespace, Node, PodGroup, Queue
from scheduler.services.cluster.nodes import (
    cordon_node,
    create_node,
    delete_node,
    drain_node,
    uncordon_node,
    update_node,
)
from scheduler.services.files.catalog import NAMESPACES, create_entry
from scheduler.services.jobs.changes import delete_job, update_job
from scheduler.services.jobs.podgroups import delete_podgroup, submit_podgroup, update_podgroup
from scheduler.services.jobs.single_pods import delete_pod, submit_pod
from scheduler.services.jobs.submit import command_job, submit_job
from tests.mirrored import MadeUpCluster, kubernetes_mode, node, pod, podgroup, queue
from tests.worlds import manifest

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _watched_cluster() -> Iterator[None]:
    with kubernetes_mode():
        cluster = MadeUpCluster()
        cluster.lists(node("n1"), queue("research"), podgroup("g"), pod("p", group="g", node="n1"))
        yield


WRITES: dict[str, Callable[[], object]] = {
    "submit a job": lambda: submit_job(manifest("train")),
    "submit a job as a rehearsal": lambda: submit_job(manifest("train"), dry_run=True),
    "change a job": lambda: update_job("default", "train", {}, merge=True),
    "suspend a job": lambda: command_job("default", "train", JobAction.ABORT),
    "delete a job": lambda: delete_job("default", "train"),
    "submit a podgroup": lambda: submit_podgroup({"metadata": {"name": "h"}, "spec": {}}),
    "change a podgroup": lambda: update_podgroup("default", "g", {}, merge=True),
    "delete a podgroup": lambda: delete_podgroup("default", "g"),
    "submit a pod": lambda: submit_pod({"metadata": {"name": "q"}, "spec": {}}),
    "delete a pod": lambda: delete_pod("default", "p"),
    "add a node": lambda: create_node({"metadata": {"name": "n2"}}),
    "change a node": lambda: update_node("n1", {}, merge=True),
    "cordon a node": lambda: cordon_node("n1"),
    "uncordon a node": lambda: uncordon_node("n1"),
    "drain a node": lambda: drain_node("n1"),
    "delete a node": lambda: delete_node("n1"),
    "create a namespace": lambda: create_entry(NAMESPACES, {"metadata": {"name": "x"}}),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
def test_a_change_is_refused_with_the_way_to_make_it(write):
    with pytest.raises(Rejected) as refused:
        write()

    violation = refused.value.violations[0]
    assert violation.rule_id == "mirrored"
    assert "Kubernetes cluster" in violation.message
    assert "kubectl" in violation.fix
    assert not AuditEntry.objects.exists()
    assert set(Queue.objects.values_list("name", "wish")) == {
        ("root", "Open"),
        ("default", "Open"),
        ("research", "Open"),
    }
    assert list(Node.objects.values_list("name", "unschedulable")) == [("n1", False)]
    assert list(PodGroup.objects.values_list("name", flat=True)) == ["g"]
    assert list(Namespace.objects.values_list("name", flat=True)) == ["default"]
    assert not Job.objects.exists()
