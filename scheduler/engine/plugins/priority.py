"""Priorities: higher gangs and pods first, and only lower ones make room for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows
from scheduler.engine.plugin import Column, Key, Plugin
from scheduler.engine.state.gang import Gang


class Priority(Plugin):
    name = "priority"
    only_tightens = True

    def job_key(self, gang: Gang) -> Key:
        return (-gang.priority,)

    def job_keys(self, rows: Rows) -> Sequence[Column]:
        return [-self.session.snapshot.groups.priority[rows]]

    def task_key(self, pod_class: int) -> Key:
        return (-int(self.session.snapshot.classes.priority[pod_class]),)

    def job_starving(self, gang: Gang) -> bool:
        """A gang wants all its pods; beside gang, in the same tier, gang's stricter rule wins."""
        return gang.ready + gang.waiting < gang.tasks

    def may_preempt(self, taker: Gang, pod_class: int, victim: Gang, victim_class: int) -> bool:
        """Another gang must have a lower priority; in the same gang, the pod itself."""
        if victim is not taker:
            return victim.priority < taker.priority
        priority = self.session.snapshot.classes.priority
        return bool(priority[victim_class] < priority[pod_class])

    def may_preempt_each(
        self, taker: Gang, pod_class: int, victims: Rows, victim_classes: Rows
    ) -> Mask:
        snapshot = self.session.snapshot
        priority = snapshot.classes.priority
        may_go: Mask = np.where(
            victims == taker.row,
            priority[victim_classes] < priority[pod_class],
            snapshot.groups.priority[victims] < taker.priority,
        )
        return may_go
