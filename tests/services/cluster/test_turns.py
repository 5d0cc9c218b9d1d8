"""Turns of dispatchers: what is old is not begun, and what was overtaken does not count.

One whose clock is wrong does as the others do.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from scheduler.clusters.kubernetes.binding import BindAnswer, BindOrder, BindResult
from scheduler.models import Decision, Node, Pod
from scheduler.selectors.cluster.mirror import may_decide
from scheduler.services.cluster import kubernetes_answers, kubernetes_dispatch, turns
from scheduler.services.cluster.api_client import client_of_process
from scheduler.services.cluster.decision_claims import claim_decisions
from scheduler.services.cluster.dispatch import dispatch
from scheduler.services.cluster.half_bound import settle_half_bound_gangs
from scheduler.services.cluster.mirror.state import note_heard
from tests.control_plane.fake.faults import Answer, Late
from tests.scheduled import BINDING, open_decisions, phase, phases

pytestmark = [pytest.mark.django_db]


def test_what_was_not_begun_soon_is_given_back_and_its_node_looked_at_again(decided, monkeypatch):
    """The dispatcher slept after it had claimed the pod: its node may be lost by now."""
    monkeypatch.setattr(turns, "BEGIN_WITHIN_SECONDS", 0.0)
    slept = turns.Turn()
    kubernetes_dispatch.carry_out(client_of_process(), claim_decisions(9), slept)

    assert decided.binds() == []
    decision = Decision.objects.get()
    assert (decision.claimed_at, decision.retry_at, decision.attempts) == (None, None, 0)

    monkeypatch.undo()
    Node.objects.update(ready=False)
    dispatch()
    assert decided.binds() == []
    assert phase("p") == "Pending"


def test_a_storm_of_429_is_answered_with_the_pause_that_the_server_asks_for(cluster, monkeypatch):
    monkeypatch.setattr(kubernetes_dispatch, "BINDING_THREADS", 1)
    monkeypatch.setattr(turns, "MOST_DOUBTS", 2)
    for number in range(6):
        cluster.has_pod(f"p{number}")
    cluster.sits()
    cluster.server.plan("POST", BINDING, Answer(429, "TooManyRequests", retry_after=40), times=99)

    dispatch()

    assert len(cluster.binds()) == 2
    soonest = Decision.objects.order_by("retry_at")[0].retry_at
    assert soonest > timezone.now() + timedelta(seconds=30)


def test_all_that_is_open_is_carried_out_a_chunk_at_a_time(cluster, monkeypatch):
    monkeypatch.setattr(kubernetes_dispatch, "CHUNK", 2)
    sizes = []
    carry_out = kubernetes_dispatch.carry_out

    def note_size(client, decisions, turn):
        sizes.append(len(decisions))
        return carry_out(client, decisions, turn)

    monkeypatch.setattr(kubernetes_dispatch, "carry_out", note_size)
    for number in range(5):
        cluster.has_pod(f"p{number}")
    cluster.sits()

    dispatch()

    assert sizes == [2, 2, 1]
    assert set(phases().values()) == {"Bound"}


def test_claims_are_renewed_while_the_server_takes_its_time(decided, monkeypatch):
    """Else another dispatcher would begin the same."""
    monkeypatch.setattr(kubernetes_dispatch, "RENEW_SECONDS", 0.05)
    claims = set()
    renew = kubernetes_dispatch.renew_claims

    def note_claim(decisions):
        renew(decisions)
        claims.add(Decision.objects.get().claimed_at)

    monkeypatch.setattr(kubernetes_dispatch, "renew_claims", note_claim)
    decided.server.plan("POST", BINDING, Late(0.5))

    dispatch()

    assert len(claims) > 2
    assert phase("p") == "Bound"


# Two dispatchers


@pytest.mark.both_databases
def test_a_dispatcher_that_was_overtaken_does_not_take_a_pod_for_waiting(decided):
    """It looked before the other one bound the pod, and writes what it saw afterwards."""
    late = claim_decisions(9)
    Decision.objects.update(claimed_at=None)
    claim_decisions(9)
    seen = BindAnswer(order_of("p"), BindResult.NOT_BOUND, message="refused")
    late[0].attempts = kubernetes_answers.ATTEMPTS_AT_ONE_NODE

    kubernetes_answers.write_answers([(late[0], seen)])

    assert phase("p") == "Binding"
    assert open_decisions() == 1


def test_a_dispatcher_that_was_overtaken_and_bound_the_pod_tells_where_it_is(decided):
    late = claim_decisions(9)
    decided.has_node("n2")
    decided.tells()
    Decision.objects.update(attempts=9)
    Pod.objects.update(node=Node.objects.get(name="n2"))

    done = BindAnswer(order_of("p"), BindResult.BOUND, "n1")
    kubernetes_answers.write_answers([(late[0], done)])

    pod = Pod.objects.select_related("node").get()
    assert (pod.phase, pod.node.name) == ("Bound", "n1")


def order_of(name: str) -> BindOrder:
    pod = Pod.objects.get(name=name)
    return BindOrder(str(pod.uid), pod.namespace, name, "n1")


# Clocks


@pytest.mark.postgres
@pytest.mark.parametrize("hours", [-1, 1])
def test_a_process_whose_clock_is_wrong_claims_pauses_and_waits_as_the_others_do(
    decided, monkeypatch, hours
):
    """Each asks the database for the time."""
    mine = claim_decisions(9)
    right = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: right() + timedelta(hours=hours))

    assert may_decide()  # heard by a watcher whose clock is right
    assert claim_decisions(9) == []  # another has claimed it just now
    kubernetes_answers.put_off(mine, "later")
    monkeypatch.undo()

    assert claim_decisions(9) == []
    pause = Decision.objects.get().retry_at - timezone.now()
    assert timedelta(0) < pause < timedelta(seconds=5)


@pytest.mark.postgres
@pytest.mark.parametrize("hours", [-1, 1])
def test_a_watcher_whose_clock_is_wrong_is_heard_and_its_silence_noticed(
    decided, monkeypatch, hours
):
    right = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: right() + timedelta(hours=hours))
    note_heard(1.0)
    monkeypatch.undo()
    assert may_decide()

    monkeypatch.setattr(timezone, "now", lambda: right() + timedelta(hours=hours))
    note_heard(11.0)
    monkeypatch.undo()
    assert not may_decide()


@pytest.mark.postgres
def test_a_clock_that_is_ahead_releases_no_gang_before_its_time(cluster, monkeypatch):
    cluster.has_gang("gang", 2, cpu="4")
    cluster.sits()
    cluster.loses_pod("gang-1")
    dispatch()
    right = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: right() + timedelta(hours=1))

    assert settle_half_bound_gangs() == 0
    assert phases() == {"gang-0": "Bound"}
