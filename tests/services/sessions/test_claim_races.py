"""A session that begins while somebody changes what it goes by, on PostgreSQL."""

from __future__ import annotations

import pytest
from django.utils import timezone

from scheduler.models import PolicyVersion
from scheduler.scenarios.policies import default_policy_text
from scheduler.services.sessions.claim import Claimed, Claims
from scheduler.services.sessions.policies import replace_policy
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
