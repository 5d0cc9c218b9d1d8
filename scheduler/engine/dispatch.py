"""How the answers of several plugins become one: orders, votes and vetoes, each combined in one
way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Final

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.reasons import ReasonCode
from scheduler.domain.tables import Rows
from scheduler.engine.plugin import Key, Plugin, Vote
from scheduler.engine.policy import Flag, PluginConfig, Policy
from scheduler.engine.refusals import Refusal
from scheduler.engine.state.gang import Gang

Tiers = list[list[Any]]
_REJECTED = Refusal(ReasonCode.NOT_PERMITTED, "a plugin of the policy refuses it")

POINTS: Final[dict[str, Flag | None]] = {
    "queue_key": Flag.QUEUE_ORDER,
    "job_key": Flag.JOB_ORDER,
    "task_key": Flag.TASK_ORDER,
    "refuse_job": None,
    "job_ready": Flag.JOB_READY,
    "job_pipelined": Flag.JOB_PIPELINED,
    "job_starving": Flag.JOB_STARVING,
    "job_enqueueable": Flag.JOB_ENQUEUED,
    "job_enqueued": Flag.JOB_ENQUEUED,
    "overused": Flag.OVERUSED,
    "allocatable": Flag.ALLOCATABLE,
    "preemptive": Flag.PREEMPTIVE,
    "full_levels": Flag.PREEMPTIVE,
    "suitable": Flag.PREDICATE,
    "static_score": Flag.NODE_ORDER,
    "score": Flag.NODE_ORDER,
    "may_preempt": Flag.PREEMPTABLE,
    "may_reclaim": Flag.RECLAIMABLE,
    "may_take_from": Flag.RECLAIMABLE,
    "has_too_much": Flag.RECLAIMABLE,
    "keeps_deserved": Flag.RECLAIMABLE,
    "borrowable": Flag.ALLOCATABLE,
}
"""Each extension point, and the flag that switches it."""


class PluginDispatch:
    """The plugins of a policy, asked point by point: only those that have something to say on it
    and whose flag is on.

    Orders: the keys of all, joined in policy order. Yes or no: all must agree. Votes: see `_vote`.
    Vetoes on victims: every one holds.
    """

    def __init__(self, policy: Policy, plugins: Iterable[tuple[int, PluginConfig, Plugin]]) -> None:
        self.policy = policy
        self._plugins = list(plugins)
        self._task_keys: dict[int, Key] = {}
        self._slots = {name: self._slot(name, flag) for name, flag in POINTS.items()}
        self._flat = {
            name: [ask for tier in tiers for ask in tier] for name, tiers in self._slots.items()
        }

    def _slot(self, method: str, flag: Flag | None) -> Tiers:
        """Tier by tier, the plugins that have something to say on this point and whose flag is on."""
        tiers: Tiers = [[] for _ in self.policy.tiers]
        for tier, config, plugin in self._plugins:
            overrides = getattr(type(plugin), method) is not getattr(Plugin, method)
            if overrides and (flag is None or self.policy.enables(config, flag)):
                tiers[tier].append(getattr(plugin, method))
        return tiers

    def enables(self, plugin: Plugin, flag: Flag) -> bool:
        return any(
            own is plugin and self.policy.enables(config, flag) for _, config, own in self._plugins
        )

    def has_action(self, name: str) -> bool:
        return name in self.policy.actions

    def plugin(self, name: str) -> Plugin | None:
        return next((plugin for _, _, plugin in self._plugins if plugin.name == name), None)

    def _is_hierarchical(self) -> bool:
        return any(self.policy.enables(config, Flag.HIERARCHY) for _, config, _ in self._plugins)

    # Orders

    def layer_key(self, queue: int) -> Key:
        """Plugins in policy order."""
        return tuple(part for ask in self._flat["queue_key"] for part in ask(queue))

    def gang_rank(self, gang: Gang) -> Key:
        """Plugins in policy order, without creation time and name; asked anew when the gang has
        changed.
        """
        if gang.rank is None:
            gang.rank = tuple(part for ask in self._flat["job_key"] for part in ask(gang))
        return gang.rank

    def task_key(self, pod_class: int) -> Key:
        found = self._task_keys.get(pod_class)
        if found is None:
            found = self._task_keys[pod_class] = tuple(
                part for ask in self._flat["task_key"] for part in ask(pod_class)
            )
        return found

    # Votes

    def refuse_job(self, gang: Gang) -> Refusal | None:
        """The first reason why the gang can not be tried at all."""
        return next(
            (refusal for ask in self._flat["refuse_job"] if (refusal := ask(gang)) is not None),
            None,
        )

    def job_ready(self, gang: Gang) -> bool:
        return all(ask(gang) for ask in self._flat["job_ready"])

    def job_pipelined(self, gang: Gang) -> bool:
        return self._vote("job_pipelined", gang) is None

    def is_out_of_reach(self, gang: Gang, left: int) -> bool:
        """Whether the gang cannot reach its minimum any more, even if all pods that are left to try
        find a place.
        """
        return self._gangs_decide_waiting and gang.ready + gang.waiting + left < gang.min_member

    @cached_property
    def _gangs_decide_waiting(self) -> bool:
        """Whether no plugin can overrule the vote of the gang plugin on waiting for room."""
        tier = next((tier for tier in self._slots["job_pipelined"] if tier), [])
        return any(ask.__self__.name == "gang" for ask in tier)

    def job_starving(self, gang: Gang) -> bool:
        """All plugins of the first tier that has any; nobody starves where nobody says so."""
        tier = next((tier for tier in self._slots["job_starving"] if tier), [])
        return bool(tier) and all(ask(gang) for ask in tier)

    @cached_property
    def only_gangs_starve(self) -> bool:
        """Whether a gang must be short of its minimum to starve."""
        tier = next((tier for tier in self._slots["job_starving"] if tier), [])
        return any(ask.__self__.name == "gang" for ask in tier)

    def refuse_enqueue(self, gang: Gang) -> Refusal | None:
        return self._vote("job_enqueueable", gang)

    def _vote(self, point: str, gang: Gang) -> Refusal | None:
        """The first vote against; a tier with a vote for and none against settles it without asking
        the next. All abstaining: for.
        """
        for tier in self._slots[point]:
            votes = [ask(gang) for ask in tier]
            against = next(
                (vote for vote in votes if isinstance(vote, Refusal) or vote == Vote.REJECT), None
            )
            if against is not None:
                if isinstance(against, Refusal):
                    return against
                return _REJECTED
            if Vote.PERMIT in votes:
                return None
        return None

    def overused(self, queue: int) -> bool:
        return any(ask(queue) for ask in self._flat["overused"])

    def allocatable(self, queue: int, pod_class: int, wanted: int = 1) -> int:
        """How many of the wanted pods every plugin lets the queue have."""
        for ask in self._flat["allocatable"]:
            wanted = ask(queue, pod_class, wanted)
            if wanted <= 0:
                return 0
        return wanted

    def preemptive(self, queue: int, pod_class: int) -> bool:
        return all(ask(queue, pod_class) for ask in self._flat["preemptive"])

    def full_levels(self, queue: int, pod_class: int) -> list[int]:
        return [row for ask in self._flat["full_levels"] for row in ask(queue, pod_class)]

    def may_preempt(self, taker: Gang, pod_class: int, victim: Gang, victim_class: int) -> bool:
        """Every veto must hold; where no plugin names victims there are none."""
        asks = self._flat["may_preempt"]
        return bool(asks) and all(ask(taker, pod_class, victim, victim_class) for ask in asks)

    @cached_property
    def preempt_vetoers(self) -> set[str]:
        """The plugins that have a word on preemption."""
        return {ask.__self__.name for ask in self._flat["may_preempt"]}

    def reclaim_vetoes(self, *, without: str = "") -> list[Callable[[Gang, int, Gang, int], bool]]:
        """The vetoes on single gangs, all but those of one plugin."""
        return [ask for ask in self._flat["may_reclaim"] if ask.__self__.name != without]

    @property
    def names_victims(self) -> bool:
        """Where no plugin has a word on reclaiming there are no victims."""
        return bool(self._flat["may_reclaim"] or self._flat["may_take_from"])

    def may_take_from(
        self, queue: int, pod_class: int, victim_queues: Rows, victim_classes: Rows
    ) -> Mask:
        return _all(
            len(victim_classes),
            [
                ask(queue, pod_class, victim_queues, victim_classes)
                for ask in self._flat["may_take_from"]
            ],
        )

    def has_too_much(self, queues: Rows) -> Mask:
        return _all(len(queues), [ask(queues) for ask in self._flat["has_too_much"]])

    def keeps_deserved(self, queues: Rows, pod_classes: Rows, reclaimer_class: int) -> Mask:
        return _all(
            len(pod_classes),
            [ask(queues, pod_classes, reclaimer_class) for ask in self._flat["keeps_deserved"]],
        )

    @property
    def lends_idle_room(self) -> bool:
        """Whether a plugin that limits queues to their deserved lets backfill go beyond."""
        return bool(self._flat["borrowable"])

    def borrowable(self, queue: int, pod_class: int, wanted: int) -> int:
        for ask in self._flat["borrowable"]:
            wanted = ask(queue, pod_class, wanted)
        return wanted

    def may_borrow(self, queue: int) -> bool:
        """Whether allocate itself may go past deserved, as it may under capacity."""
        return not self._flat["borrowable"] and not self.overused(queue)

    @cached_property
    def gang_decides(self) -> bool:
        """Whether a gang is ready only with its minimum: then that many pods are placed at one go."""
        return any(ask.__self__.name == "gang" for ask in self._flat["job_ready"])

    @property
    def needs_whole_gangs(self) -> bool:
        """Whether a gang short of its minimum neither starts nor is promised room, whatever other
        plugins say.
        """
        return self.gang_decides and self._gangs_decide_waiting

    @cached_property
    def gangs_are_spared(self) -> bool:
        """Whether reclaim may only take what gangs can spare."""
        return any(ask.__self__.name == "gang" for ask in self._flat["may_reclaim"])


def _all(length: int, masks: list[Mask]) -> Mask:
    """Where every plugin agrees; everywhere, if none was asked."""
    agreed = np.ones(length, dtype=np.bool_)
    for mask in masks:
        agreed &= mask
    return agreed
