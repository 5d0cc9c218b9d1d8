"""A session that begins while somebody changes what it goes by or takes the lease (PostgreSQL)."""

from __future__ import annotations

import pytest
from django.utils import timezone

from scheduler.models import ClusterState, Lease, PolicyVersion, SchedulingSession
from scheduler.models.clock import database_now
from scheduler.scenarios.policies import default_policy_text
from scheduler.services.sessions.claim import Claimed, Claims
from scheduler.services.sessions.policies import replace_policy
from scheduler.services.sessions.requests import pause_scheduling
from tests.services.test_races import crossing

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]

SHORTER = default_policy_text().replace("300", "200")


def first_claim() -> Claims:
    """It takes a transaction of several statements."""
    return Claims("mine")


def claim_after_a_session() -> Claims:
    """It is one statement."""
    claims = Claims("mine")
    claimed = claims.begin("tick")
    assert isinstance(claimed, Claimed)
    claims.end(claimed, {}, {}, timezone.now())
    claims.is_in_order()
    return claims


@pytest.mark.parametrize("make", [first_claim, claim_after_a_session])
def test_a_claim_that_waits_for_another_policy_has_its_text(make):
    claims = make()

    _, claim = crossing(lambda: replace_policy(SHORTER), lambda: claims.begin("tick"))

    assert claim.error is None
    assert claim.outcome.session.policy_id == PolicyVersion.objects.latest("pk").pk
    assert claim.outcome.policy_text == SHORTER


def test_a_claim_that_waits_for_another_worker_to_take_the_lease_begins_nothing():
    claims = claim_after_a_session()
    Lease.objects.update(expires_at=database_now())

    other, mine = crossing(lambda: Claims("other").begin("tick"), lambda: claims.begin("tick"))

    assert (other.error, mine.error) == (None, None)
    assert other.outcome.held.taken_over
    assert mine.outcome is None
    assert Lease.objects.get(name="scheduler").holder == "other"
    assert SchedulingSession.objects.get(state="Running") == other.outcome.session
    assert ClusterState.objects.get(pk=1).last_session == other.outcome.session.number


def test_a_claim_that_waits_for_a_pause_is_paused():
    claims = claim_after_a_session()

    _, claim = crossing(pause_scheduling, lambda: claims.begin("tick"))

    assert claim.error is None
    assert claim.outcome.paused
