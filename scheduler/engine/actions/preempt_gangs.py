"""Preempt with `wholeGangs`: inside one queue, a gang takes the room of gangs of lower priority.

Victims are chosen for the whole gang at once, as in reclaim: gangs as a whole, or members beyond a
gang's minimum, and nobody goes unless all of the gang starts. Where run times are declared, nobody
goes either if that loses more work than the gang gains by not waiting.

Why it comes to rest: a gang that was evicted before does not make its queue fall below its due, or
further below it. So it does not undo what reclaim did, and of the gangs that run in the queue more
are of high priority each time. A gang that was never evicted may do so, but only once: when it
tries again it has been evicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from scheduler.domain.tables import Rows, status_mask
from scheduler.domain.workloads import PodStatus
from scheduler.engine.arguments import number
from scheduler.engine.eviction.candidate_gangs import GangCandidates
from scheduler.engine.eviction.claims import missing_amounts, missing_runs
from scheduler.engine.eviction.failed_searches import FailedSearches
from scheduler.engine.eviction.gang_victims import Victim
from scheduler.engine.eviction.protection import Protection
from scheduler.engine.eviction.victim_table import Offered, VictimTable
from scheduler.engine.eviction.whole_gangs import Plan, VictimSearch, carry_out
from scheduler.engine.eviction.worth import Worth
from scheduler.engine.ordering import GangLines, QueueLine
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang

_STATUSES = (int(PodStatus.BOUND), int(PodStatus.RUNNING))
_IS_RUNNING = status_mask(PodStatus.BOUND, PodStatus.RUNNING)
_ASKED_OF_PODS = ("gang", "drf", "priority")
"""Plugins whose vetoes are about one pod after the other, and say nothing of a gang that goes."""


def preempt_gangs(session: Session) -> None:
    rows = session.starving_rows()
    if not len(rows):
        return
    protection = _protection(session)
    rows = _above_others(session, rows, protection)
    gangs = [session.gang(row) for row in rows.tolist()]
    starving = [gang for gang in gangs if session.may_take_room(gang)]
    if starving:
        GangPreemption(session, starving, protection).run()


def _protection(session: Session) -> Protection:
    settings = session.policy.configurations.get("preempt", {})
    patience = number(settings, "patienceSeconds", 0)
    return Protection(session, number(settings, "minRunSeconds", 0), patience)


def _above_others(session: Session, rows: Rows, protection: Protection) -> Rows:
    """Those of these podgroups in whose queue one of them is above a gang that runs, and not all of
    whose pods are left in peace.

    In the other queues nobody could go.
    """
    pods = np.flatnonzero(_IS_RUNNING[session.status] & (session.nodes >= 0))
    rows = _above_pods(session, rows, pods)
    if not len(rows):
        return rows
    return _above_pods(session, rows, pods[~protection.of(pods)])


def _above_pods(session: Session, rows: Rows, pods: Rows) -> Rows:
    groups = session.snapshot.groups
    queues = len(session.queue_tree) + 1  # the last one stands for "no queue"
    running = session.snapshot.pods.group[pods]
    lowest = np.full(queues, np.iinfo(np.int64).max)
    np.minimum.at(lowest, groups.queue[running], groups.priority[running])
    highest = np.full(queues, np.iinfo(np.int64).min)
    np.maximum.at(highest, groups.queue[rows], groups.priority[rows])
    found: Rows = rows[(lowest < highest)[groups.queue[rows]]]
    return found


class GangPreemption:
    """Configuration: `minRunSeconds`, `patienceSeconds`, `gainPercent`."""

    def __init__(self, session: Session, starving: list[Gang], protection: Protection) -> None:
        self.session = session
        self.candidates = GangCandidates(session, _STATUSES, protection.of)
        self.worth = Worth(session, session.policy.configurations.get("preempt", {}))
        self.gangs = GangLines.of(session, starving)
        self.queues = QueueLine(session, self.gangs.queues())
        self.failed = FailedSearches(session)
        self._tables: dict[int, VictimTable] = {}

    def run(self) -> None:
        while (queue := self.queues.best()) >= 0:
            self._preempt_in(queue)
            self.queues.leave(queue)

    def _preempt_in(self, queue: int) -> None:
        if not self._table(queue).is_left.any():
            return  # all of them have just started, or end soon
        while (gang := self.gangs.pop(queue)) is not None:
            if not self._preempt_for(gang) and self.session.is_strict(queue):
                return

    def _preempt_for(self, gang: Gang) -> bool:
        """Gangs come with the highest priority first: what they could not have, others cannot."""
        was_evicted = self._was_evicted(gang)
        if not self._may_preempt(gang) or self.failed.include(gang, is_bound=was_evicted):
            return False
        plan = self._find_plan(gang)
        if plan is None:
            self.failed.add(gang, is_bound=was_evicted)
            return False
        if self.worth.is_too_little(gang, plan):
            return False
        return self._evict_for(gang, plan)

    def _was_evicted(self, gang: Gang) -> bool:
        return bool(self.session.snapshot.groups.evictions[gang.row])

    def _find_plan(self, gang: Gang) -> Plan | None:
        victims = self._victims(gang)
        if not victims:
            return None
        self.session.preemption_attempts += 1
        due = QueueDue(self.session, gang)
        return VictimSearch(self.session, gang, victims, due.allows).find()

    def _evict_for(self, gang: Gang, plan: Plan) -> bool:
        session = self.session
        with session.statement() as statement:
            carry_out(session, statement, gang, plan, "preempt")
            if not session.job_pipelined(gang):
                return False
            statement.commit()
        self._table(gang.queue).renew(plan.pods)
        return True

    def _may_preempt(self, gang: Gang) -> bool:
        """Pods with the preemption policy Never wait for their turn."""
        runs = missing_runs(self.session, gang)
        preempts = self.session.snapshot.classes.preempts
        return bool(runs) and all(preempts[pod_class] for pod_class, _ in runs)

    def _victims(self, gang: Gang) -> Offered:
        """Of gangs of lower priority in the same queue."""
        session = self.session
        table = self._table(gang.queue)
        is_lower = session.snapshot.groups.priority[table.group] < gang.priority
        is_lower &= table.is_left
        if not is_lower.any():
            return Offered(table, is_lower)
        pod_class = int(session.pod_classes[session.tasks.missing_pods(gang)[0]])
        ask = partial(session.agree_to_preempt, gang, pod_class, without=_ASKED_OF_PODS)
        return Offered(table, is_lower & table.agreed(ask))

    def _table(self, queue: int) -> VictimTable:
        """All that could go in this queue."""
        if queue not in self._tables:
            groups = self.candidates.groups
            own = groups[self.session.snapshot.groups.queue[groups] == queue]
            self._tables[queue] = VictimTable(self.candidates, own)
        return self._tables[queue]


class QueueDue:
    """The due of the queue in which one gang takes the room of others."""

    def __init__(self, session: Session, gang: Gang) -> None:
        self.session = session
        self._path = session.queue_tree.path_list(gang.queue)
        self._wanted = missing_amounts(session, gang)
        self._was_evicted = bool(session.snapshot.groups.evictions[gang.row])

    def allows(self, victims: Sequence[Victim]) -> bool:
        """A gang that was evicted before leaves the queue at its due, or where it is below that."""
        quotas = self.session.quotas
        if quotas is None or not self._was_evicted:
            return True
        freed = sum(victim.amounts for victim in victims)
        before = self.session.queue_usage.allocated[self._path]
        after = before + self._wanted - freed
        kept = (after >= before) | (after >= quotas.deserved[self._path])
        return bool(kept[:, self.session.queue_usage.dims].all())
