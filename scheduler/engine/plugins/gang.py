"""Gang scheduling: a gang starts with at least minMember pods, or not at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.plans import counted
from scheduler.domain.reasons import ReasonCode
from scheduler.domain.tables import Rows
from scheduler.engine.plugin import Column, Key, Plugin, Vote
from scheduler.engine.refusals import Refusal
from scheduler.engine.state.gang import Gang, Role


class GangPlugin(Plugin):
    name = "gang"
    only_tightens = True

    def job_key(self, gang: Gang) -> Key:
        """Gangs still short of their minimum go before gangs that only want to grow."""
        return (float(self.job_ready(gang)),)

    def job_keys(self, rows: Rows) -> Sequence[Column]:
        groups = self.session.snapshot.groups
        ready = self.session.ready_counts[rows] >= groups.min_member[rows]
        for place, row in enumerate(rows.tolist()):
            if groups.role_minimums[row]:
                ready[place] = self.job_ready(self.session.gang(row))
        return [ready.astype(np.int64)]

    def refuse_job(self, gang: Gang) -> Refusal | None:
        """A gang is tried only if as many pods exist as it needs to start."""
        if roles_count(gang):
            for number, role in sorted(gang.roles.items()):
                there = role.ready + role.waiting + role.pending
                if there < role.minimum:
                    return Refusal(
                        ReasonCode.NOT_ENOUGH_TASKS,
                        f"NotEnoughPodsOfTask: {there} of {counted(role.minimum, 'pod')} "
                        f"of {self._task_in_words(number)}",
                    )
        there = gang.ready + gang.waiting + gang.pending
        if there < gang.min_member:
            return Refusal(
                ReasonCode.NOT_ENOUGH_TASKS,
                f"NotEnoughTasks: {there} of {counted(gang.min_member, 'pod')}",
            )
        return None

    def _task_in_words(self, number: int) -> str:
        """The snapshot knows the names of tasks by their pods alone."""
        if number < 0:
            return "one task"
        return f"task {self.session.snapshot.classes.roles[number]}"

    def job_ready(self, gang: Gang) -> bool:
        if gang.ready < gang.min_member or not gang.roles:  # most have no roles
            return gang.ready >= gang.min_member
        return all(role.ready >= role.minimum for role in _roles(gang))

    def job_pipelined(self, gang: Gang) -> Vote:
        enough = gang.ready + gang.waiting >= gang.min_member
        roles = all(role.ready + role.waiting >= role.minimum for role in _roles(gang))
        if enough and roles:
            return Vote.PERMIT
        return Vote.REJECT

    def job_starving(self, gang: Gang) -> bool:
        return gang.ready + gang.waiting < gang.min_member

    def may_preempt(self, taker: Gang, pod_class: int, victim: Gang, victim_class: int) -> bool:
        """Only the surplus above minMember may go."""
        return victim.ready > victim.min_member

    def may_preempt_each(
        self, taker: Gang, pod_class: int, victims: Rows, victim_classes: Rows
    ) -> Mask:
        minimum = self.session.snapshot.groups.min_member[victims]
        can_spare: Mask = self.session.ready_counts[victims] > minimum
        return can_spare

    may_reclaim = may_preempt
    may_reclaim_each = may_preempt_each


def roles_count(gang: Gang) -> bool:
    """Minimums per role are looked at only if the gang is large enough to hold them all."""
    return bool(gang.roles) and gang.min_member >= sum(role.minimum for role in gang.roles.values())


def _roles(gang: Gang) -> list[Role]:
    if not roles_count(gang):
        return []
    return list(gang.roles.values())


def is_short_of_gang(gang: Gang) -> bool:
    """It does not have the pods in place that it needs to run, or none at all."""
    if gang.ready < max(1, gang.min_member):
        return True
    return any(role.ready < role.minimum for role in _roles(gang))
