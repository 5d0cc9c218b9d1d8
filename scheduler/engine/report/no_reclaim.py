"""Why a gang that waits does not reclaim: asked for one gang, after the actions before reclaim.

The same questions in the same order as `actions/reclaim_gangs.py` asks them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from scheduler.domain.no_reclaim import ReclaimAnswer, ReclaimCode
from scheduler.domain.nodes import Amounts
from scheduler.domain.resources import COMMON
from scheduler.engine.actions.reclaim_gangs import GangReclamation
from scheduler.engine.arguments import boolean
from scheduler.engine.eviction.claims import missing_amounts
from scheduler.engine.eviction.gang_claim import Claim
from scheduler.engine.eviction.victim_table import Offered
from scheduler.engine.eviction.whole_gangs import Plan, VictimSearch
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang

_MOST_OTHERS = 5
_ABOUT_PLANS = (ReclaimCode.MAY_RECLAIM, ReclaimCode.WAITS_FIRST, ReclaimCode.LOSES_TOO_MUCH)
"""There are victims that may go."""


def why_no_reclaim(session: Session, gang: Gang) -> ReclaimAnswer | None:
    """None for a gang that reclaim does not look at: it starts, or something else holds it back."""
    if not session.has_action("reclaim"):
        return ReclaimAnswer(ReclaimCode.NO_ACTION)
    if gang not in session.starving_gangs():
        return None
    if not session.names_victims or session.quotas is None:
        return ReclaimAnswer(ReclaimCode.NO_SHARES)
    if boolean(session.policy.configurations.get("reclaim", {}), "wholeGangs", False):
        return _WholeGangs(session, gang).answer()
    return _pod_by_pod(session, gang)


def _pod_by_pod(session: Session, gang: Gang) -> ReclaimAnswer:
    """As Volcano does it, only the first question has an answer for the gang as a whole.

    A queue takes nothing that has all that it deserves of every resource in question.
    """
    quotas = session.quotas
    assert quotas is not None  # asked by why_no_reclaim
    asked = (missing_amounts(session, gang) > 0) & session.queue_usage.dims
    has_all = session.queue_usage.allocated[gang.queue] >= quotas.deserved[gang.queue]
    if not has_all[asked].all():
        return ReclaimAnswer(ReclaimCode.POD_BY_POD)
    return _has_its_due(session, gang, _first_of(session, np.flatnonzero(asked)))


class _WholeGangs:
    def __init__(self, session: Session, gang: Gang) -> None:
        self.session = session
        self.gang = gang
        self.claim = Claim(session, gang)
        self.reclamation = GangReclamation(session, np.array([gang.row]))

    def answer(self) -> ReclaimAnswer:
        questions = (self._has_its_due, self._expected_soon, self._nobody_may_lose)
        for ask in questions:
            found = ask()
            if found is not None:
                return found
        return self._about_victims()

    # 1. Its own queue

    def _has_its_due(self) -> ReclaimAnswer | None:
        if self.claim.may_take_anything:
            return None
        session = self.session
        queue = self.gang.queue
        assert session.quotas is not None  # asked by why_no_reclaim
        after = session.queue_usage.allocated[queue] + self.claim.wanted
        beyond = self.claim.short & (after > session.quotas.deserved[queue])
        return _has_its_due(session, self.gang, _first_of(session, np.flatnonzero(beyond)))

    # 2. Time

    def _expected_soon(self) -> ReclaimAnswer | None:
        if not self.reclamation.has_a_place_soon(self.gang):
            return None
        place = self.session.future_places.of(self.gang.queue)
        assert place is not None  # it is what is expected soon
        figures = {
            "seconds": place.at - self.session.snapshot.taken_at,
            "isItself": place.gang is self.gang,
            "podgroup": place.gang.key,
        }
        return ReclaimAnswer(ReclaimCode.EXPECTED_SOON, figures)

    # 3. Other queues

    def _nobody_may_lose(self) -> ReclaimAnswer | None:
        others = self._others_with_too_much()
        figures: dict[str, Any] = {"resource": self._resource()}
        if not others:
            return ReclaimAnswer(ReclaimCode.NOBODY_HAS_TOO_MUCH, figures)
        if any(self.session.losing_leaves[queue] for queue, _ in others):
            return None
        figures["others"] = _named(self.session, others)
        if any(self.session.queue_tree.queues[queue].spec.reclaimable for queue, _ in others):
            return ReclaimAnswer(ReclaimCode.SUSPENDED, figures)
        return ReclaimAnswer(ReclaimCode.NOT_RECLAIMABLE, figures)

    def _resource(self) -> str:
        dim = _first_of(self.session, np.flatnonzero(self.claim.short))
        return self.session.snapshot.resources[dim]

    def _others_with_too_much(self) -> list[tuple[int, int]]:
        """Those that the gang could take something of, with the excess, the largest first."""
        dim = _first_of(self.session, np.flatnonzero(self.claim.short))
        others = leaves_with_too_much(self.session, self.gang.queue, dim)
        return [other for other in others if self.claim.reaches(other[0])]

    # 4. Victims

    def _about_victims(self) -> ReclaimAnswer:
        victims = self.reclamation.victims_for(self.gang, self.claim)
        unprotected = self._look_for(victims)
        if unprotected.code in _ABOUT_PLANS:
            return unprotected
        all_victims = self.reclamation.victims_for(self.gang, self.claim, sparing=False)
        if len(all_victims) == len(victims):
            return unprotected
        search = VictimSearch(self.session, self.gang, all_victims, self.claim.may_lose)
        plan = search.find()
        if plan is None:
            return self._look_for(all_victims)
        until = [self.reclamation.protection.until(victim.pods).max() for victim in plan.victims]
        seconds = float(max(until)) - self.session.snapshot.taken_at
        return ReclaimAnswer(ReclaimCode.PROTECTED, {"seconds": seconds})

    def _look_for(self, victims: Offered) -> ReclaimAnswer:
        figures: dict[str, Any] = {"resource": self._resource(), "possible": len(victims)}
        if not victims:
            return self._no_victims(figures)
        search = VictimSearch(self.session, self.gang, victims, self.claim.may_lose)
        if search.has_room_now():
            return ReclaimAnswer(ReclaimCode.HAS_ROOM)
        if not search.has_room_without_all():
            return ReclaimAnswer(ReclaimCode.NOT_ENOUGH, figures)
        plan = search.find()
        if plan is None:
            return ReclaimAnswer(ReclaimCode.NO_ALLOWED_SET, figures)
        figures["pods"] = sum(len(victim.pods) for victim in plan.victims)
        if self.claim.is_guaranteed:
            return ReclaimAnswer(ReclaimCode.MAY_RECLAIM, figures)
        return self._about_plan(plan, figures)

    def _about_plan(self, plan: Plan, figures: dict[str, Any]) -> ReclaimAnswer:
        """Whether it has waited long enough for these victims, and whether they are worth it."""
        waits = self.reclamation.waits
        worth = self.reclamation.worth
        left = waits.seconds_left(self.gang, plan)
        if left > 0:
            return ReclaimAnswer(ReclaimCode.WAITS_FIRST, {"seconds": left})
        if worth.is_too_little(self.gang, plan):
            figures["seconds"] = worth.seconds_saved(plan)
            return ReclaimAnswer(ReclaimCode.LOSES_TOO_MUCH, figures)
        if worth.is_too_little(self.gang, plan, waits.worth_seconds(self.gang)):
            figures["isShort"] = True
            figures["seconds"] = waits.seconds_left_if_short(self.gang)
            return ReclaimAnswer(ReclaimCode.LOSES_TOO_MUCH, figures)
        return ReclaimAnswer(ReclaimCode.MAY_RECLAIM, figures)

    def _no_victims(self, figures: dict[str, Any]) -> ReclaimAnswer:
        """Nothing may be evicted, or only gangs that are too large for that."""
        if self.reclamation.offers_anything(self.gang, self.claim):
            return ReclaimAnswer(ReclaimCode.TOO_LARGE, figures)
        return ReclaimAnswer(ReclaimCode.NOT_EVICTABLE, figures)


def leaves_with_too_much(session: Session, taker: int, dim: int) -> list[tuple[int, int]]:
    """Leaves beside the taker's that have more than their due of this resource, with the excess.

    Up to where they meet the taker's queue, each queue above them must have more than its due too;
    the excess is the least of all.
    """
    quotas = session.quotas
    assert quotas is not None  # asked by why_no_reclaim
    tree = session.queue_tree
    excess: Amounts = session.queue_usage.allocated[:, dim] - quotas.deserved[:, dim]
    found: list[tuple[int, int]] = []
    for queue in np.flatnonzero(excess > 0).tolist():
        if queue == taker or not tree.is_leaf(queue):
            continue
        least = min(int(excess[row]) for row in tree.crossed(queue, taker))
        if least > 0:
            found.append((queue, least))
    return sorted(found, key=lambda entry: (-entry[1], tree.names[entry[0]]))


def _has_its_due(session: Session, gang: Gang, dim: int) -> ReclaimAnswer:
    quotas = session.quotas
    queue = gang.queue
    assert quotas is not None  # asked by why_no_reclaim
    figures = {
        "queue": session.queue_tree.names[queue],
        "resource": session.snapshot.resources[dim],
        "allocated": int(session.queue_usage.allocated[queue, dim]),
        "deserved": int(quotas.deserved[queue, dim]),
        "need": int(missing_amounts(session, gang)[dim]),
        "others": _named(session, leaves_with_too_much(session, queue, dim)),
    }
    return ReclaimAnswer(ReclaimCode.HAS_ITS_DUE, figures)


def _named(session: Session, others: list[tuple[int, int]]) -> list[dict[str, Any]]:
    named = []
    for queue, excess in others[:_MOST_OTHERS]:
        named.append({"queue": session.queue_tree.names[queue], "excess": excess})
    return named


def _first_of(session: Session, dims: Iterable[int]) -> int:
    """A device, if there is one among these resources."""
    names = session.snapshot.resources
    return int(min(dims, key=lambda dim: (names[dim] in COMMON, dim)))
