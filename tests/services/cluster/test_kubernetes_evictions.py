"""Pods that are stopped: with a reason, not against a budget, and only if they have a node."""

from __future__ import annotations

import pytest
from django.utils import timezone

from scheduler.models import Decision, Event, Pod
from scheduler.services.cluster import kubernetes_answers
from scheduler.services.cluster.decision_claims import claim_decisions
from scheduler.services.cluster.dispatch import dispatch
from tests.control_plane.fake.faults import Answer
from tests.control_plane.fake.resources import resource_of
from tests.scheduled import (
    PODS,
    ScheduledCluster,
    open_decisions,
    phase,
    scheduled_cluster,
    wait_no_longer,
)

pytestmark = [pytest.mark.django_db]

EVICTION = "/api/v1/namespaces/default/pods/*/eviction"
BUDGETS = resource_of("policy/v1", "poddisruptionbudgets")


@pytest.fixture
def evicting(decided: ScheduledCluster) -> ScheduledCluster:
    """The pod p runs on n1, and is to go."""
    dispatch()
    begun = {"name": "main", "state": {"running": {"startedAt": "2026-11-01T00:00:00Z"}}}
    running = {"status": {"phase": "Running", "containerStatuses": [begun]}}
    decided.server.store.change(PODS, "default", "p", lambda pod: {**pod, **running})
    decided.tells()
    evict("p")
    return decided


def evict(name: str) -> None:
    pod = Pod.objects.get(name=name)
    Pod.objects.filter(pk=pod.pk).update(phase="Releasing")
    Decision.objects.create(
        kind=Decision.EVICT,
        pod=pod,
        pod_name=f"default/{name}",
        action="reclaim",
        created_at=timezone.now(),
    )


def test_a_pod_is_evicted_and_says_why(evicting):
    dispatch()

    pod = evicting.pod("p")
    assert "deletionTimestamp" in pod["metadata"]
    conditions = {
        each["type"]: each["reason"] for each in pod["status"]["conditions"] if "reason" in each
    }
    assert conditions["DisruptionTarget"] == "ReclaimByScheduler"
    evicting.tells()
    assert phase("p") == "Releasing"


def test_a_pod_that_was_not_told_yet_stays_releasing_whatever_the_mirror_says(evicting):
    evicting.server.store.change(
        PODS, "default", "p", lambda pod: {**pod, "status": {**pod["status"], "message": "busy"}}
    )

    evicting.tells()

    assert (phase("p"), Pod.objects.get().message) == ("Releasing", "busy")


def test_a_disruption_budget_is_respected_and_named(evicting):
    budget = {
        "metadata": {"name": "web"},
        "spec": {"selector": {}},
        "status": {"disruptionsAllowed": 0, "desiredHealthy": 3, "currentHealthy": 3},
    }
    evicting.server.store.create(BUDGETS, "default", budget)

    dispatch()

    assert phase("p") == "Releasing"
    decision = Decision.objects.get(kind=Decision.EVICT)
    assert decision.done_at is None
    assert "web" in decision.error
    assert "web" in Event.objects.get(reason="EvictionHeld").message
    assert "web" in Pod.objects.get().message  # pages show it beside the pod

    long_ago = timezone.now() - kubernetes_answers.PATIENCE_WITH_BUDGET
    Decision.objects.filter(pk=decision.pk).update(created_at=long_ago, retry_at=None)
    dispatch()
    assert phase("p") == "Running"
    assert Pod.objects.get().message == ""


def test_a_pod_that_was_never_bound_is_not_deleted_but_waits_again(decided):
    """A session took it back before a dispatcher had its turn."""
    evict("p")

    dispatch()

    assert "deletionTimestamp" not in decided.pod("p")["metadata"]
    assert decided.binds() == []
    pod = Pod.objects.get()
    assert (pod.phase, pod.node) == ("Pending", None)
    assert open_decisions() == 0


def test_a_pod_that_another_dispatcher_just_binds_is_stopped_afterwards(decided):
    claim_decisions(9)  # the other one has it
    evict("p")

    dispatch()

    assert phase("p") == "Releasing"
    assert Decision.objects.get(kind=Decision.EVICT).retry_at is not None

    Decision.objects.filter(kind=Decision.BIND).update(done_at=timezone.now())
    decided.server.store.change(
        PODS, "default", "p", lambda pod: {**pod, "spec": {**pod["spec"], "nodeName": "n1"}}
    )
    wait_no_longer()
    dispatch()
    assert "deletionTimestamp" in decided.pod("p")["metadata"]


def test_an_eviction_that_fails_is_asked_again(evicting):
    evicting.server.plan("POST", EVICTION, Answer(500, "InternalError"))

    dispatch()
    assert phase("p") == "Releasing"
    wait_no_longer()
    dispatch()

    assert "deletionTimestamp" in evicting.pod("p")["metadata"]


def test_pods_can_be_deleted_as_volcano_does(tmp_path):
    with scheduled_cluster(tmp_path, evicts_by="delete") as cluster:
        cluster.has_pod("p")
        cluster.sits()
        dispatch()
        budget = {"metadata": {"name": "web"}, "spec": {"selector": {}}, "status": {}}
        cluster.server.store.create(BUDGETS, "default", budget)
        evict("p")

        dispatch()

        assert "deletionTimestamp" in cluster.pod("p")["metadata"]
