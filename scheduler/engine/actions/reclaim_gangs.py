"""Reclaim with `wholeGangs`: only who is short may take, only of what they are short, only from who
has too much of it.

Why it comes to rest: the taker stays within its due and every loser stays at or above theirs, of
each resource that is taken. So what the queues have less than their due falls with every eviction,
and nothing else in a session raises it. A resource that comes before the taken ones (devices, then
cpu, then memory) is not taken below a queue's due either; so no second queue becomes short by it.
A guarantee goes before a due: for its sake a queue that is above its due may fall to its guarantee.
"""

from __future__ import annotations

import math
from functools import cached_property, partial

import numpy as np

from scheduler.domain.codes import StatusCode
from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows
from scheduler.domain.workloads import PodStatus
from scheduler.engine.alike_gangs import AlikeNeeds, SettledGangs
from scheduler.engine.arguments import number
from scheduler.engine.eviction.candidate_gangs import GangCandidates
from scheduler.engine.eviction.claims import is_within_guarantee
from scheduler.engine.eviction.failed_searches import FailedSearches
from scheduler.engine.eviction.gang_claim import Claim
from scheduler.engine.eviction.no_claims import NoClaims
from scheduler.engine.eviction.protection import Protection
from scheduler.engine.eviction.victim_table import Offered, VictimTable
from scheduler.engine.eviction.waits import Waits
from scheduler.engine.eviction.whole_gangs import Plan, VictimSearch, carry_out
from scheduler.engine.eviction.worth import Worth
from scheduler.engine.ordering import GangLines, QueueLine
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang

_STATUSES = (int(PodStatus.RUNNING),)


def reclaim_gangs(session: Session) -> None:
    rows = session.starving_rows()
    if len(rows) and not _no_claims_of(session, rows).are_all(rows):
        GangReclamation(session, rows).run()


def _no_claims_of(session: Session, rows: Rows) -> NoClaims:
    return NoClaims(session, AlikeNeeds(session, rows, session.tasks.waiting_classes()))


class GangReclamation:
    """Configuration: `waitSeconds`, `waitPercent`, `patienceSeconds`, `patiencePercent`,
    `minRunSeconds`, `gainPercent`, `suspendedVictims`.
    """

    def __init__(self, session: Session, rows: Rows) -> None:
        self.session = session
        settings = session.policy.configurations.get("reclaim", {})
        self.patience = number(settings, "patienceSeconds", 0)
        self.patience_share = number(settings, "patiencePercent", 0) / 100
        least = number(settings, "minRunSeconds", 0)
        self.waits = Waits(session, settings)
        self.worth = Worth(session, settings)
        self.protection = Protection(session, least, self.patience)
        self.gangs = GangLines(session, rows, session.may_take_room)
        self.queues = QueueLine(session, self.gangs.queues())
        self.settled = SettledGangs(session, rows, session.tasks.waiting_classes())
        self.no_claims = _no_claims_of(session, rows)
        self.failed = FailedSearches(session)
        self._tables: dict[bool, VictimTable] = {}

    def run(self) -> None:
        while (queue := self.queues.best()) >= 0:
            gang = None
            if self._may_reclaim(queue):
                gang = self.gangs.pop(queue, self._count_settled)
            if gang is None:
                self.queues.leave(queue)
            elif self._reclaim_for(gang) or not self.session.is_strict(queue):
                self.queues.enter(queue)
            else:
                self.queues.leave(queue)

    def _may_reclaim(self, queue: int) -> bool:
        """Not if all who run have just started or end soon, unless it has less than its guarantee
        of something.
        """
        if self._may_anybody_go():
            return True
        quotas = self.session.quotas
        if quotas is None:
            return False
        return bool((quotas.guarantee[queue] > self.session.queue_usage.allocated[queue]).any())

    def _may_anybody_go(self) -> bool:
        """What the table of victims says, if somebody has needed it. It is not made for this: most
        gangs are refused without it.
        """
        table = self._tables.get(True)
        if table is None:
            return self._has_unprotected
        return bool(table.is_left.any())

    @cached_property
    def _has_unprotected(self) -> bool:
        """Whether any pod that runs in a queue that may lose something is not left in peace.

        If not, the table would be empty.
        """
        session = self.session
        snapshot = session.snapshot
        pods = np.flatnonzero((session.status == StatusCode.RUNNING) & (session.nodes >= 0))
        queue = snapshot.groups.queue[snapshot.pods.group[pods]]
        pods = pods[(queue >= 0) & session.losing_leaves[queue]]
        return not self.protection.of(pods).all()

    def _count_settled(self, rows: Rows) -> int:
        count = self.settled.count_first(rows, self.waits.may_take_more)
        return count or self.no_claims.count_first(rows)

    def _reclaim_for(self, gang: Gang) -> bool:
        if self._find_room(gang):
            return True
        self.settled.add(gang)
        return False

    def _find_room(self, gang: Gang) -> bool:
        if self.has_a_place_soon(gang) or self.failed.include(gang):
            return False
        claim = Claim(self.session, gang)
        if self.waits.are_too_short(gang) and not claim.is_guaranteed:
            return False
        plan = self._find_plan(gang, claim)
        if plan is None:
            self.failed.add(gang)
            return False
        if not claim.is_guaranteed and self._is_not_worth_it(gang, plan):
            return False
        return self._evict_for(gang, claim, plan)

    def _is_not_worth_it(self, gang: Gang, plan: Plan) -> bool:
        if self.waits.are_too_short_for(gang, plan):
            return True
        return self.worth.is_too_little(gang, plan, self.waits.worth_seconds(gang))

    def _find_plan(self, gang: Gang, claim: Claim) -> Plan | None:
        if not claim.may_take_anything:
            return None
        victims = self.victims_for(gang, claim)
        if not victims:
            return None
        return VictimSearch(self.session, gang, victims, claim.keeps_dues).find()

    def _evict_for(self, gang: Gang, claim: Claim, plan: Plan) -> bool:
        session = self.session
        with session.statement() as statement:
            carry_out(session, statement, gang, plan, "reclaim", claim.rule, claim.short)
            if not session.job_pipelined(gang):
                return False
            statement.commit()
        for table in self._tables.values():
            table.renew(plan.pods)
        return True

    def has_a_place_soon(self, gang: Gang) -> bool:
        """As long as a gang of the queue will have room anyway, by pods that end, none of it makes
        anybody go; unless it is guaranteed.
        """
        place = self.session.future_places.of(gang.queue)
        if place is None or place.at > self._may_wait_until(place.gang):
            return False
        return not is_within_guarantee(self.session, gang)

    def _may_wait_until(self, gang: Gang) -> float:
        """A gang that runs for long loses little by a wait that is short beside it."""
        snapshot = self.session.snapshot
        expected = float(snapshot.groups.expected_seconds[gang.row])
        if math.isnan(expected):
            return snapshot.taken_at + self.patience
        return snapshot.taken_at + max(self.patience, self.patience_share * expected)

    def victims_for(self, gang: Gang, claim: Claim, *, sparing: bool = True) -> Offered:
        """What may be evicted for this gang; pods that have just started only if not `sparing`."""
        table = self.table(sparing=sparing and not claim.is_guaranteed)
        may_go = table.is_left & claim.may_lose_each(table) & self._agreed(gang, table)
        return Offered(table, may_go)

    def offers_anything(self, gang: Gang, claim: Claim) -> bool:
        """Whether queues that may lose something have victims to offer, however large."""
        table = self.table(sparing=False)
        is_candidate = claim.losing_queues[table.queue] & (table.group != gang.row)
        return bool((is_candidate & table.is_left & self._agreed(gang, table)).any())

    def _agreed(self, gang: Gang, table: VictimTable) -> Mask:
        """Other plugins, such as conformance, may keep a pod."""
        session = self.session
        pod_class = int(session.pod_classes[session.tasks.missing_pods(gang)[0]])
        return table.agreed(partial(session.agree_to_reclaim, gang, pod_class, without="gang"))

    def table(self, *, sparing: bool) -> VictimTable:
        """All that could go, by whether minimum running times count."""
        if sparing not in self._tables:
            protection = self.protection.of_nobody
            if sparing:
                protection = self.protection.of
            candidates = GangCandidates(self.session, _STATUSES, protection)
            self._tables[sparing] = VictimTable(candidates, self._losing_groups(candidates))
        return self._tables[sparing]

    def _losing_groups(self, candidates: GangCandidates) -> Rows:
        """Podgroups in queues that may lose something."""
        queue = self.session.snapshot.groups.queue
        groups = candidates.groups[queue[candidates.groups] >= 0]
        return groups[self.session.losing_leaves[queue[groups]]].astype(np.intp)
