"""How the answers of several plugins become one: orders, votes, vetoes and scores."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Any, Final

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.reasons import ReasonCode
from scheduler.domain.tables import Rows, Scores
from scheduler.engine.plugin import Column, Key, Plugin, Vote
from scheduler.engine.policy import Flag, PluginConfig, Policy
from scheduler.engine.refusals import Refusal
from scheduler.engine.state.gang import Gang
from scheduler.engine.state.nodes import Scorer

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
_OVERRIDDEN: Final[dict[type[Plugin], list[str]]] = {}
"""By class of plugins the points that it overrides."""


_ABOUT_TAKING: Final = (
    "queue_key",
    "job_starving",
    "allocatable",
    "preemptive",
    "full_levels",
    "may_preempt",
    "may_reclaim",
    "may_take_from",
    "has_too_much",
    "keeps_deserved",
)


class PluginDispatch:
    """The plugins of a policy, asked point by point.

    Only those are asked that override the point and whose flag is on. Orders: the keys of all,
    joined in policy order. Yes or no: all must agree. Votes: see `_vote`. Vetoes on victims: every
    one holds. Nodes: suitable where all agree, and scores are added up.
    """

    def __init__(self, policy: Policy, plugins: Iterable[tuple[int, PluginConfig, Plugin]]) -> None:
        self.policy = policy
        self._plugins = list(plugins)
        self._task_keys: dict[int, Key] = {}
        # By extension point the methods of plugins that override it and whose flag is on.
        self._tiers: dict[str, dict[int, list[Any]]] = {name: {} for name in POINTS}
        self._flat: dict[str, list[Any]] = {name: [] for name in POINTS}
        for tier, config, plugin in self._plugins:
            for name in _overridden_points(type(plugin)):
                flag = POINTS[name]
                if flag is None or policy.enables(config, flag):
                    ask = getattr(plugin, name)
                    self._tiers[name].setdefault(tier, []).append(ask)
                    self._flat[name].append(ask)

    def _first_tier(self, point: str) -> list[Any]:
        """The first tier that has any plugin for this point."""
        return next(iter(self._tiers[point].values()), [])

    def enables(self, plugin: Plugin, flag: Flag) -> bool:
        for _, config, own in self._plugins:
            if own is plugin:
                return self.policy.enables(config, flag)
        return False

    def has_action(self, name: str) -> bool:
        return name in self.policy.actions

    def plugin(self, name: str) -> Plugin | None:
        for _, _, plugin in self._plugins:
            if plugin.name == name:
                return plugin
        return None

    def _is_hierarchical(self) -> bool:
        return any(self.policy.enables(config, Flag.HIERARCHY) for _, config, _ in self._plugins)

    # Orders

    def layer_key(self, queue: int) -> Key:
        """Plugins in policy order."""
        return self._joined_key("queue_key", queue)

    def gang_rank(self, gang: Gang) -> Key:
        """Plugins in policy order, without creation time and name.

        They are asked anew when the gang has changed.
        """
        if gang.rank is None:
            gang.rank = self._joined_key("job_key", gang)
        return gang.rank

    def gang_ranks(self, rows: Rows) -> list[Column]:
        """`gang_rank` of many podgroups, as columns that are compared one after the other."""
        columns: list[Column] = []
        for ask in self._flat["job_key"]:
            columns.extend(ask.__self__.job_keys(rows))
        return columns

    def task_key(self, pod_class: int) -> Key:
        found = self._task_keys.get(pod_class)
        if found is None:
            found = self._task_keys[pod_class] = self._joined_key("task_key", pod_class)
        return found

    def _joined_key(self, point: str, subject: Any) -> Key:
        key: Key = ()
        for ask in self._flat[point]:
            key += ask(subject)
        return key

    # Votes

    def refuse_job(self, gang: Gang) -> Refusal | None:
        """The first reason why the gang cannot be tried at all."""
        for ask in self._flat["refuse_job"]:
            refusal: Refusal | None = ask(gang)
            if refusal is not None:
                return refusal
        return None

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
        return _has_gang_plugin(self._first_tier("job_pipelined"))

    def job_starving(self, gang: Gang) -> bool:
        """All plugins of the first tier that has any; nobody starves where nobody says so."""
        tier = self._first_tier("job_starving")
        return bool(tier) and all(ask(gang) for ask in tier)

    @cached_property
    def only_gangs_starve(self) -> bool:
        """Whether a gang must be short of its minimum to starve."""
        return _has_gang_plugin(self._first_tier("job_starving"))

    def refuse_enqueue(self, gang: Gang) -> Refusal | None:
        return self._vote("job_enqueueable", gang)

    @cached_property
    def refuses_by_minimum(self) -> bool:
        """Whether gangs of one queue with the same minResources are refused alike, as long as
        nobody is admitted.
        """
        return all(ask.__self__.refuses_by_minimum for ask in self._flat["job_enqueueable"])

    def count_enqueueable(self, rows: Rows) -> int:
        """How many of the first of these podgroups of one queue are surely not refused, if each is
        in before the next one is asked.
        """
        count = len(rows)
        for ask in self._flat["job_enqueueable"]:
            if not count:
                return 0
            count = min(count, ask.__self__.count_enqueueable(rows[:count]))
        return count

    def _vote(self, point: str, gang: Gang) -> Refusal | None:
        """The first vote against.

        A tier with a vote for and none against settles it without asking the next. If all abstain,
        that is a vote for.
        """
        for tier in self._tiers[point].values():
            votes = [ask(gang) for ask in tier]
            for vote in votes:
                if isinstance(vote, Refusal):
                    return vote
                if vote == Vote.REJECT:
                    return _REJECTED
            if Vote.PERMIT in votes:
                return None
        return None

    def overused(self, queue: int) -> bool:
        return any(ask(queue) for ask in self._flat["overused"])

    @property
    def may_be_overused(self) -> bool:
        """Whether any plugin ever says so of a queue."""
        return bool(self._flat["overused"])

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

    def may_preempt_each(
        self, taker: Gang, pod_class: int, victims: Rows, victim_classes: Rows
    ) -> Mask:
        """The same for many podgroups, and of each a pod of the class beside it."""
        if not self._flat["may_preempt"]:
            return np.zeros(len(victims), dtype=np.bool_)
        return self.agree_to_preempt(taker, pod_class, victims, victim_classes, without=())

    def agree_to_preempt(
        self,
        taker: Gang,
        pod_class: int,
        victims: Rows,
        victim_classes: Rows,
        *,
        without: Collection[str],
    ) -> Mask:
        """Where no plugin keeps the podgroup's pods of the class beside it; some are not asked."""
        found = []
        for ask in self.preempt_vetoes(without=without):
            plugin = ask.__self__
            found.append(plugin.may_preempt_each(taker, pod_class, victims, victim_classes))
        return _all(len(victims), found)

    def agree_to_reclaim(
        self,
        taker: Gang,
        pod_class: int,
        victims: Rows,
        victim_classes: Rows,
        *,
        without: str = "",
    ) -> Mask:
        """The same for reclaim; one plugin is not asked."""
        found = []
        for ask in self.reclaim_vetoes(without=without):
            plugin = ask.__self__
            found.append(plugin.may_reclaim_each(taker, pod_class, victims, victim_classes))
        return _all(len(victims), found)

    @cached_property
    def preempt_vetoers(self) -> set[str]:
        """The plugins that have a word on preemption."""
        return {ask.__self__.name for ask in self._flat["may_preempt"]}

    def preempt_vetoes(self, *, without: Collection[str]) -> list[Any]:
        """The vetoes on preemption, all but those of these plugins."""
        return [ask for ask in self._flat["may_preempt"] if ask.__self__.name not in without]

    def reclaim_vetoes(self, *, without: str = "") -> list[Any]:
        """The vetoes on single gangs, all but those of one plugin."""
        return [ask for ask in self._flat["may_reclaim"] if ask.__self__.name != without]

    @property
    def names_victims(self) -> bool:
        """Where no plugin has a word on reclaiming there are no victims."""
        return bool(self._flat["may_reclaim"] or self._flat["may_take_from"])

    def may_take_from(
        self,
        queue: int,
        pod_class: int,
        victim_queues: Rows,
        victim_classes: Rows,
        count: int = 1,
    ) -> Mask:
        question = (queue, pod_class, victim_queues, victim_classes, *_many(count))
        return _all(len(victim_classes), [ask(*question) for ask in self._flat["may_take_from"]])

    def may_take_one(
        self, queue: int, pod_class: int, victim_queue: int, victim_class: int, count: int
    ) -> bool:
        """The same for pods of one queue and class; without them it keeps what it deserves."""
        queues = np.array([victim_queue])
        classes = np.array([victim_class])
        many = _many(count)
        for ask in self._flat["may_take_from"]:
            if not ask(queue, pod_class, queues, classes, *many)[0]:
                return False
        for ask in self._flat["keeps_deserved"]:
            if not ask(queues, classes, pod_class, *many)[0]:
                return False
        return True

    def has_too_much(self, queues: Rows) -> Mask:
        return _all(len(queues), [ask(queues) for ask in self._flat["has_too_much"]])

    def keeps_deserved(
        self, queues: Rows, pod_classes: Rows, reclaimer_class: int, count: int = 1
    ) -> Mask:
        question = (queues, pod_classes, reclaimer_class, *_many(count))
        return _all(len(pod_classes), [ask(*question) for ask in self._flat["keeps_deserved"]])

    @cached_property
    def answers_only_tighten(self) -> bool:
        """Whether all plugins that have a word on takers and victims say so of themselves."""
        return all(
            ask.__self__.only_tightens for point in _ABOUT_TAKING for ask in self._flat[point]
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
        """Whether a gang is ready only with its minimum, so that many pods are placed at once."""
        return _has_gang_plugin(self._flat["job_ready"])

    @cached_property
    def only_gangs_decide_starts(self) -> bool:
        """Whether a gang that has its minimum starts, and one whose pods exist is tried, whatever
        other plugins say.
        """
        asks = [*self._flat["job_ready"], *self._flat["refuse_job"]]
        return self.gang_decides and all(ask.__self__.name == "gang" for ask in asks)

    @property
    def needs_whole_gangs(self) -> bool:
        """Whether a gang short of its minimum neither starts nor is promised room, whatever other
        plugins say.
        """
        return self.gang_decides and self._gangs_decide_waiting

    @cached_property
    def gangs_are_spared(self) -> bool:
        """Whether reclaim may only take what gangs can spare."""
        return _has_gang_plugin(self._flat["may_reclaim"])

    # Nodes

    def suitable_nodes(self, pod_class: int, ready: Mask) -> Mask:
        """Nodes that are ready and that every plugin finds suitable."""
        mask = ready.copy()
        for ask in self._flat["suitable"]:
            nodes = ask(pod_class)
            if nodes is not None:
                mask &= nodes
        return mask

    @cached_property
    def node_answers_last(self) -> bool:
        """Whether what plugins say of nodes holds in the next session where the nodes are the
        same, and as much is used on them.
        """
        asks = (*self._flat["suitable"], *self._flat["static_score"], *self._flat["score"])
        return all(ask.__self__.node_answers_last for ask in asks) and (
            self.scorer is None or self.scorer.follows_from_use
        )

    @cached_property
    def scorer(self) -> Scorer | None:
        """The sum of all scores; None where no plugin scores."""
        if not self._flat["static_score"] and not self._flat["score"]:
            return None
        return NodeScorer(self._flat["static_score"], self._flat["score"])


class NodeScorer:
    """The sum of all scores, the part that does not change computed once for a class."""

    def __init__(self, static_asks: list[Any], asks: list[Any]) -> None:
        self._static_asks = static_asks
        self._asks = asks
        self._static: dict[int, Scores | None] = {}
        self.follows_from_use = all(ask.__self__.scores_by_use for ask in asks)

    def __call__(self, pod_class: int, used: Amounts, nodes: Rows) -> Scores:
        fixed = self._static_score(pod_class)
        moving = _sum_scores(ask(pod_class, used, nodes) for ask in self._asks)
        found = np.zeros(len(nodes))
        if fixed is not None:
            found = found + fixed[nodes]
        if moving is not None:
            found = found + moving
        return found

    def fixed(self, pod_class: int, count: int) -> Scores:
        """The part that does not change, for all of `count` nodes."""
        fixed = self._static_score(pod_class)
        if fixed is None:
            return np.zeros(count)
        return fixed

    def _static_score(self, pod_class: int) -> Scores | None:
        if pod_class not in self._static:
            self._static[pod_class] = _sum_scores(ask(pod_class) for ask in self._static_asks)
        return self._static[pod_class]


def _overridden_points(plugin: type[Plugin]) -> list[str]:
    """Looked up once for each class of plugins: sessions are many."""
    if plugin not in _OVERRIDDEN:
        _OVERRIDDEN[plugin] = [
            name for name in POINTS if getattr(plugin, name) is not getattr(Plugin, name)
        ]
    return _OVERRIDDEN[plugin]


def _many(count: int) -> tuple[int, ...]:
    """Plugins from outside may not know this argument, so it is given only where it counts."""
    if count == 1:
        return ()
    return (count,)


def _has_gang_plugin(asks: list[Any]) -> bool:
    return any(ask.__self__.name == "gang" for ask in asks)


def _sum_scores(answers: Iterable[Scores | None]) -> Scores | None:
    """None where no plugin gives a score."""
    total: Scores | None = None
    for scores in answers:
        if scores is not None:
            total = scores if total is None else total + scores
    return total


def _all(length: int, masks: list[Mask]) -> Mask:
    """Where every plugin agrees; everywhere, if none was asked."""
    agreed = np.ones(length, dtype=np.bool_)
    for mask in masks:
        agreed &= mask
    return agreed
