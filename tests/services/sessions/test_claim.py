"""The beginning of a session: the same whether it takes one statement or a transaction of many."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from scheduler.models import ClusterState, Lease, SchedulingSession
from scheduler.models.clock import database_now
from scheduler.scenarios.policies import default_policy_text
from scheduler.services.sessions.claim import Claimed, Claims
from scheduler.services.sessions.policies import replace_policy

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def end(claims: Claims, claimed: Claimed | None) -> None:
    assert claimed is not None
    claims.end(claimed, {"claim": 1}, {"binds": 0}, timezone.now())
    claims.is_in_order()


def began(claimed: Claimed | None) -> dict[str, Any]:
    """What a claim says and wrote, but for what is another one each time."""
    assert claimed is not None
    row = SchedulingSession.objects.get(pk=claimed.session.pk)
    left_out = ("id", "number", "started_at")
    stored = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
    assert stored["number"] == claimed.session.number == state().last_session
    assert stored["started_at"] == claimed.session.started_at == state().last_session_at
    settings = {"paused": claimed.paused, "policy": claimed.policy_text, "keep": claimed.keep}
    plain = {name: value for name, value in stored.items() if name not in left_out}
    return {**plain, **settings}


def state() -> ClusterState:
    return ClusterState.objects.get(pk=1)


def lease_of_the_scheduler() -> Lease:
    return Lease.objects.get(name="scheduler")


@pytest.fixture
def claims() -> Claims:
    """Of a worker that has ended a session in order."""
    claims = Claims("mine")
    end(claims, claims.begin("tick"))
    return claims


def test_the_second_claim_says_and_writes_the_same_as_a_first_one(claims):
    replace_policy(default_policy_text().replace("300", "200"))
    ClusterState.objects.update(paused=True, keep_sessions=2)

    second = claims.begin("asked")

    found = began(second)
    assert (found["paused"], found["keep"]) == (True, True)
    assert "minRunSeconds: 200" in found["policy"]
    end(claims, second)
    assert found == began(Claims("mine").begin("asked"))


def test_on_postgresql_the_second_claim_is_one_statement(claims):
    most = {"postgresql": 1, "sqlite": 6}

    with CaptureQueriesContext(connection) as log:
        claims.begin("tick")

    assert len(log.captured_queries) <= most[connection.vendor]


def test_a_claim_renews_the_lease(claims):
    Lease.objects.update(expires_at=database_now() + timedelta(seconds=1))

    claims.begin("tick")

    assert lease_of_the_scheduler().expires_at > database_now() + timedelta(seconds=5)


def test_nothing_is_counted_or_begun_when_another_worker_has_taken_the_lease(claims):
    Lease.objects.update(holder="another", token=7)
    before = state()

    assert claims.begin("tick") is None
    assert lease_of_the_scheduler().holder == "another"
    assert state().last_session == before.last_session
    assert SchedulingSession.objects.count() == 1


def test_a_session_that_was_left_behind_is_closed_by_the_next_claim(claims):
    left = claims.begin("tick")

    claims.begin("tick")

    assert left is not None
    assert SchedulingSession.objects.get(pk=left.session.pk).state == "TakenOver"


def test_a_wish_from_before_the_clock_was_put_back_is_served_once(claims):
    ClusterState.objects.update(session_wanted_at=database_now() + timedelta(hours=1))

    claims.begin("tick")

    assert state().session_wanted_at is None
