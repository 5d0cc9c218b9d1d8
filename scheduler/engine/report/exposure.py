"""How much reclaim could take of each queue that has more than it deserves.

Asked before the first action, with the same tables of victims as `actions/reclaim_gangs.py` uses.
"""

from __future__ import annotations

import numpy as np

from scheduler.domain.exposure import Kept, Reach
from scheduler.domain.nodes import Amounts
from scheduler.domain.tables import Rows
from scheduler.domain.workloads import PodStatus
from scheduler.engine.actions.reclaim_gangs import GangReclamation
from scheduler.engine.arguments import boolean
from scheduler.engine.eviction.candidates import RunningPods
from scheduler.engine.eviction.victim_table import VictimTable
from scheduler.engine.session import Session
from scheduler.engine.state.reserved_guarantees import within

Found = dict[tuple[str, str], Reach]


def reaches(session: Session) -> Found:
    """By queue without queues below it, and resource; where nothing is above its due, nothing."""
    quotas = session.quotas
    if quotas is None:
        return {}
    excess = np.maximum(0, session.queue_usage.allocated - quotas.deserved)
    if not session.has_action("reclaim") or not session.names_victims:
        why = Kept.NO_SHARES if session.has_action("reclaim") else Kept.NO_ACTION
        return _all_kept(session, excess, why)
    settings = session.policy.configurations.get("reclaim", {})
    if boolean(settings, "wholeGangs", False):
        return _WholeGangs(session, excess).reaches()
    return _pod_by_pod(session, excess)


def _all_kept(session: Session, excess: Amounts, why: Kept) -> Found:
    found: Found = {}
    for queue in _leaves_above(session, excess):
        for dim, name in session.queue_resources:
            if excess[queue, dim]:
                found[session.queue_tree.names[queue], name] = Reach(why=why)
    return found


def _leaves_above(session: Session, excess: Amounts) -> list[int]:
    rows = np.flatnonzero(excess.any(axis=1)).tolist()
    return [row for row in rows if session.queue_tree.is_leaf(row)]


def _why(session: Session, queue: int) -> Kept:
    """Why it loses nothing at all, or not all that it has too much."""
    if session.losing_leaves[queue]:
        return Kept.NOT_EVICTABLE
    if session.queue_tree.queues[queue].spec.reclaimable:
        return Kept.SUSPENDED
    return Kept.NOT_RECLAIMABLE


class _WholeGangs:
    def __init__(self, session: Session, excess: Amounts) -> None:
        self.session = session
        self.excess = excess
        self.reclamation = GangReclamation(session, np.zeros(0, dtype=np.intp))
        self.now = self.reclamation.table(sparing=True)
        self.later = self.reclamation.table(sparing=False)

    def reaches(self) -> Found:
        found: Found = {}
        for queue in _leaves_above(self.session, self.excess):
            limit = self.excess[queue]
            now = within(_parts(self.now, queue), limit)
            later = np.maximum(now, within(_parts(self.later, queue), limit))
            seconds = 0.0
            if (later > now).any():
                seconds = self._free_in(queue)
            for dim, name in self.session.queue_resources:
                if limit[dim]:
                    found[self.session.queue_tree.names[queue], name] = Reach(
                        int(now[dim]), int(later[dim]), seconds, _why(self.session, queue)
                    )
        return found

    def _free_in(self, queue: int) -> float:
        """When the last protected pod of the queue may go."""
        session = self.session
        of_queue = session.snapshot.groups.queue[session.snapshot.pods.group] == queue
        pods = np.flatnonzero(of_queue & (session.status == int(PodStatus.RUNNING)))
        until = self.reclamation.protection.until(pods).max(initial=-np.inf)
        return max(0.0, float(until) - session.snapshot.taken_at)


def _parts(table: VictimTable, queue: int) -> Amounts:
    """What may go alone of this queue, one row each: members beyond the minimum of their gang, and
    what is left of each gang that may go whole.
    """
    rows: Rows = np.flatnonzero(table.queue == queue)
    amounts = table.amounts.T[rows]
    is_spare = table.is_spare[rows]
    is_left = table.is_left[rows]
    spare_of = np.zeros_like(amounts)
    number: Rows = np.cumsum(~is_spare) - (~is_spare)  # the gang comes after its spare members
    np.add.at(spare_of, number[is_spare], amounts[is_spare])
    gangs = np.flatnonzero(~is_spare)
    rest = amounts[gangs] - spare_of[: len(gangs)]
    return np.concatenate([amounts[is_spare & is_left], rest[is_left[gangs]]])


def _pod_by_pod(session: Session, excess: Amounts) -> Found:
    """As Volcano does it: running pods that may be evicted, whatever gang they are of."""
    running = RunningPods(session, (PodStatus.RUNNING,))
    is_critical = session.snapshot.classes.critical[running.pod_class]
    amounts = np.zeros_like(excess)
    may_go = ~is_critical & session.losing_leaves[running.queue]
    np.add.at(amounts, running.queue[may_go], session.request[running.pod_class[may_go]])
    found: Found = {}
    for queue in _leaves_above(session, excess):
        why = _why(session, queue)
        for dim, name in session.queue_resources:
            if excess[queue, dim]:
                amount = int(min(amounts[queue, dim], excess[queue, dim]))
                found[session.queue_tree.names[queue], name] = Reach(amount, amount, why=why)
    return found
