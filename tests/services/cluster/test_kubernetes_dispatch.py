"""Decisions carried out on an API server that fails in every way: none is lost or done twice."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from scheduler.models import Decision, Event, Mirror, Node, Pod, PodGroup
from scheduler.services.cluster import (
    half_bound,
    kubernetes_answers,
    kubernetes_dispatch,
    turns,
)
from scheduler.services.cluster.dispatch import dispatch
from scheduler.services.cluster.half_bound import settle_half_bound_gangs
from tests.control_plane import objects
from tests.control_plane.fake.faults import Answer, Reset
from tests.scheduled import (
    BINDING,
    GROUP,
    PODGROUPS,
    PODS,
    open_decisions,
    phase,
    phases,
    wait_no_longer,
)

pytestmark = [pytest.mark.django_db]

POD = "/api/v1/namespaces/default/pods/p"


# Binding


@pytest.mark.both_databases
def test_a_session_decides_and_dispatch_binds_the_very_pod(decided):
    dispatch()

    assert decided.node_of("p") == "n1"
    assert phase("p") == "Bound"
    assert open_decisions() == 0


def test_only_pods_of_our_schedulers_are_placed_and_gated_ones_are_left_alone(cluster):
    cluster.has_pod("theirs", scheduler="default-scheduler")
    gated = objects.pod("gated")
    gated["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    cluster.server.store.create(PODS, "default", {**gated, "status": {"phase": "Pending"}})
    cluster.has_pod("ours")

    cluster.sits()
    dispatch()

    assert phases() == {"ours": "Bound"}
    assert cluster.binds() == ["/api/v1/namespaces/default/pods/ours/binding"]


def test_a_lost_reply_is_looked_for(decided):
    decided.server.plan("POST", BINDING, Reset(is_done=True))

    dispatch()

    assert (decided.node_of("p"), phase("p")) == ("n1", "Bound")


@pytest.mark.parametrize(
    "fault", [Answer(500, "InternalError"), Answer(429, "TooManyRequests", retry_after=1)]
)
def test_a_server_that_fails_leaves_the_pod_its_room_and_is_asked_again(decided, fault):
    decided.server.plan("POST", BINDING, fault)

    dispatch()

    assert phase("p") == "Binding"
    decision = Decision.objects.get()
    assert decision.done_at is None
    assert decision.claimed_at is None
    assert decision.retry_at > timezone.now()

    dispatch()  # too early
    assert len(decided.binds()) == 1
    wait_no_longer()
    dispatch()
    assert phase("p") == "Bound"


def test_a_doubt_is_never_taken_for_a_pod_that_waits(decided):
    """The reply is lost, and the look at the pod fails, too."""
    decided.server.plan("POST", BINDING, Reset(is_done=True))
    decided.server.plan("GET", POD, Answer(500, "InternalError"), times=2)

    dispatch()
    decided.tells()

    assert decided.node_of("p") == "n1"
    assert phase("p") == "Bound"  # the watch has told it meanwhile
    assert open_decisions() == 1

    wait_no_longer()
    dispatch()
    assert open_decisions() == 0


@pytest.mark.both_databases
def test_what_is_refused_again_and_again_waits_for_another_node(decided):
    decided.server.plan("POST", BINDING, Answer(403, "Forbidden", "not here"), times=9)

    for attempt in range(1, kubernetes_answers.ATTEMPTS_AT_ONE_NODE + 1):
        assert phase("p") == "Binding", attempt
        dispatch()
        wait_no_longer()

    assert phase("p") == "Pending"
    assert Pod.objects.get(name="p").node is None
    assert open_decisions() == 0
    assert Event.objects.get(reason="FailedBinding").message.endswith("not here")


def test_a_pod_that_is_gone_or_replaced_loses_its_row(decided):
    decided.has_pod("q")
    decided.sits()
    decided.loses_pod("p")
    decided.loses_pod("q")
    decided.has_pod("q")

    dispatch()

    assert phases() == {}
    assert decided.node_of("q") == ""
    decided.tells()
    assert phases() == {"q": "Pending"}


def test_another_scheduler_that_was_first_is_a_fact(decided):
    decided.has_node("n2")
    decided.tells()
    decided.server.store.change(
        PODS, "default", "p", lambda pod: {**pod, "spec": {**pod["spec"], "nodeName": "n2"}}
    )

    dispatch()

    pod = Pod.objects.select_related("node").get()
    assert (pod.phase, pod.node.name) == ("Bound", "n2")


@pytest.mark.parametrize("loss", [{"ready": False}, {"unschedulable": True}])
def test_a_node_that_was_lost_since_the_session_is_not_bound_to(decided, loss):
    Node.objects.update(**loss)

    dispatch()

    assert decided.binds() == []
    assert phase("p") == "Pending"


def test_a_node_that_is_gone_is_not_bound_to(decided):
    Node.objects.all().delete()

    dispatch()

    assert decided.binds() == []
    assert phase("p") == "Pending"


def test_a_pod_that_an_earlier_dispatcher_bound_stays_bound_even_if_its_node_is_lost(decided):
    decided.server.store.change(
        PODS, "default", "p", lambda pod: {**pod, "spec": {**pod["spec"], "nodeName": "n1"}}
    )
    Node.objects.update(ready=False)

    dispatch()

    assert phase("p") == "Bound"


def test_nothing_is_done_while_the_cluster_is_not_known_or_not_heard(decided):
    Mirror.objects.update(heard_at=timezone.now() - timedelta(minutes=1))
    dispatch()
    Mirror.objects.update(heard_at=timezone.now(), synced_at=None)
    dispatch()

    assert decided.binds() == []
    assert phase("p") == "Binding"


def test_a_server_that_is_away_is_not_asked_for_every_pod(cluster, monkeypatch):
    monkeypatch.setattr(kubernetes_dispatch, "BINDING_THREADS", 1)
    monkeypatch.setattr(turns, "MOST_DOUBTS", 2)
    for number in range(6):
        cluster.has_pod(f"p{number}")
    cluster.sits()
    cluster.server.plan("POST", BINDING, Answer(500, "InternalError"), times=99)

    dispatch()

    assert len(cluster.binds()) == 2
    assert set(phases().values()) == {"Binding"}
    assert Decision.objects.filter(retry_at=None).count() == 0


# Room


def test_own_pods_keep_their_room_whatever_the_mirror_says(cluster):
    """The server has not told of the pod since the session: a second one must not fit."""
    cluster.has_pod("first", cpu="8")
    cluster.sits()

    cluster.mirror.begin_anew()
    cluster.has_pod("second", cpu="8")
    cluster.sits()

    assert phases() == {"first": "Binding", "second": "Pending"}


def test_a_pod_that_loses_its_podgroup_while_it_is_bound_keeps_its_room(cluster):
    cluster.has_gang("gang", 1, cpu="8")
    cluster.sits()
    assert phase("gang-0") == "Binding"

    cluster.server.store.delete(PODGROUPS, "default", "gang")
    cluster.has_pod("second", cpu="8")
    cluster.sits()

    assert phases() == {"second": "Pending"}
    assert Node.objects.get().taken.amount("cpu") == 8000


@pytest.mark.both_databases
def test_old_news_take_nothing_back(decided):
    dispatch()
    old = decided.pod("p")
    old = {**old, "spec": {key: value for key, value in old["spec"].items() if key != "nodeName"}}
    old["status"] = {"phase": "Pending", "message": "something else has changed"}
    decided.server.store.change(PODS, "default", "p", lambda _: old)

    decided.tells()

    pod = Pod.objects.get()
    assert (pod.phase, pod.message) == ("Bound", "something else has changed")


# Gangs


def test_a_gang_in_halves_is_completed_by_a_later_session(cluster):
    cluster.has_gang("gang", 2, cpu="4")
    cluster.sits()
    path = BINDING.replace("*", "gang-1")
    cluster.server.plan("POST", path, Answer(403, "Forbidden", "not now"), times=4)
    for _ in range(kubernetes_answers.ATTEMPTS_AT_ONE_NODE):
        dispatch()
        wait_no_longer()
    assert phases() == {"gang-0": "Bound", "gang-1": "Pending"}
    assert PodGroup.objects.get(name="gang").half_bound_since is not None

    cluster.sits()
    dispatch()
    settle_half_bound_gangs()

    assert phases() == {"gang-0": "Bound", "gang-1": "Bound"}
    assert PodGroup.objects.get(name="gang").half_bound_since is None


@pytest.mark.both_databases
def test_a_gang_that_stays_in_halves_is_released_whole(cluster):
    cluster.has_gang("gang", 2, cpu="4")
    cluster.sits()
    cluster.loses_pod("gang-1")
    dispatch()
    assert phases() == {"gang-0": "Bound"}
    assert settle_half_bound_gangs() == 0

    long_ago = timezone.now() - half_bound.LONGEST_HALF - timedelta(seconds=1)
    PodGroup.objects.update(half_bound_since=long_ago)
    assert settle_half_bound_gangs() == 1
    dispatch()

    assert "deletionTimestamp" in cluster.pod("gang-0")["metadata"]
    assert Event.objects.filter(reason="GangReleased").exists()


def test_a_job_that_tries_again_opens_its_podgroup_again(cluster):
    cluster.has_gang("gang", 1)
    cluster.sits()
    dispatch()
    cluster.server.store.change(
        PODS, "default", "gang-0", lambda pod: {**pod, "status": {"phase": "Succeeded"}}
    )
    cluster.sits()
    assert PodGroup.objects.get(name="gang").phase == "Completed"

    cluster.has_pod("gang-again", annotations={GROUP: "gang"})
    cluster.sits()
    dispatch()

    assert phase("gang-again") == "Bound"
