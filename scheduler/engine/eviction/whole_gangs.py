"""Whole victims: the gangs, or members beyond a gang's minimum, that must go for another gang.

A gang goes whole or keeps its minimum: breaking one loses more than it frees. Victims are chosen
for all pods of the newcomer together, on concrete nodes, and nobody goes unless all of it can
start. Of the sets that would do, one is taken in which the least work is lost and nobody is
superfluous.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from scheduler.domain.evictions import EvictionRule
from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import Rows
from scheduler.engine.eviction.alike_choice import AlikeExchange
from scheduler.engine.eviction.claims import missing_runs
from scheduler.engine.eviction.gang_victims import (
    Allowed,
    Victim,
    release_room,
    repeats_a_gang,
)
from scheduler.engine.eviction.greedy_choice import GreedyChoice
from scheduler.engine.eviction.limits import QueueLimits
from scheduler.engine.eviction.ruled_layout import lay_out_by_rules
from scheduler.engine.eviction.victim_table import Offered
from scheduler.engine.future_places import Runs
from scheduler.engine.grounds import Choice
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang
from scheduler.engine.state.nodes import copies
from scheduler.engine.statement import Statement

FEW: Final = 8
"""Up to so many possible victims every set of them is tried."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Who goes, and the node of each pod of the newcomer, in task order.

    There were so many `possible` victims. If `has_tried_all`, every set of them was tried.
    """

    victims: tuple[Victim, ...]
    nodes: tuple[int, ...]
    possible: int = 0
    has_tried_all: bool = False

    @property
    def pods(self) -> Rows:
        """All pods that go."""
        return np.concatenate([victim.pods for victim in self.victims])


class VictimSearch:
    """Victims for one gang.

    `may_go` tells whether a set of victims is allowed. It must allow every part of a set that it
    allows.
    """

    def __init__(self, session: Session, gang: Gang, victims: Offered, may_go: Allowed) -> None:
        self.session = session
        self.gang = gang
        self.victims = victims
        self.may_go = may_go
        self.runs: Runs = missing_runs(session, gang)
        self._limits = QueueLimits(session, gang)
        self._room = _room_for(session, gang)
        self._is_ruled = session.pod_rules is not None and session.pod_rules.bind(gang)

    def find(self) -> Plan | None:
        """The victims and the places; None if no allowed set makes room for the whole gang."""
        if not self.victims:
            return None
        exchange = self._exchange_alike()
        if exchange is not None:
            return exchange
        if self.has_room_now():
            return None  # so that is not why the gang waits
        if not self.has_room_without_all():
            return None
        chosen = self._choose()
        if chosen is None:
            return None
        chosen = self._without_superfluous(chosen)
        nodes = self._layout(chosen)
        if nodes is None:
            return None
        return Plan(tuple(chosen), tuple(nodes), len(self.victims), len(self.victims) <= FEW)

    def _exchange_alike(self) -> Plan | None:
        """Where there is room for no pod, and victims and pods go one for one: nobody is
        superfluous then.
        """
        if len(self.runs) != 1 or self._is_ruled or len(self.victims) <= FEW:
            return None
        exchange = AlikeExchange(self.session, self.victims, *self.runs[0], self._room)
        chosen = exchange.choose()
        if chosen is None or not self.may_go(chosen) or not self._limits.allow(chosen):
            return None
        nodes = exchange.places_of(chosen)
        if nodes is None:
            return None
        return Plan(tuple(chosen), tuple(nodes), len(self.victims))

    def has_room_now(self) -> bool:
        """Whether the whole gang fits with nobody gone."""
        return self._layout(()) is not None

    def has_room_without_all(self) -> bool:
        """Whether the whole gang fits once all possible victims are gone, by room alone."""
        if not self._limits.allow_after(self.victims):
            return False
        room = self._room + self.victims.freed_by_node()
        return lay_out(self.session, room, self.runs) is not None

    def _choose(self) -> list[Victim] | None:
        if len(self.victims) <= FEW:
            return self._cheapest_set()
        choice = GreedyChoice(self.session, self.victims, self.may_go, self._room)
        chosen = choice.find(self.runs)
        if chosen is None or self._limits.allow(chosen):
            return chosen
        return self._within_limits(chosen)

    def _within_limits(self, chosen: list[Victim]) -> list[Victim] | None:
        """With more of them, cheapest first, as long as a queue above would have too much."""
        for victim in self.victims:
            if self._limits.allow(chosen):
                return chosen
            if victim in chosen or repeats_a_gang([*chosen, victim]):
                continue
            if self._limits.are_helped_by(victim) and self.may_go([*chosen, victim]):
                chosen = [*chosen, victim]
        if self._limits.allow(chosen):
            return chosen
        return None

    def _cheapest_set(self) -> list[Victim] | None:
        """Every set is tried, the cheapest first."""
        victims = list(self.victims)
        sets: list[tuple[Victim, ...]] = []
        for size in range(1, len(victims) + 1):
            sets.extend(combinations(victims, size))
        sets = [chosen for chosen in sets if not repeats_a_gang(chosen)]
        sets.sort(key=lambda chosen: (sum(victim.cost for victim in chosen), len(chosen)))
        for chosen in sets:
            if self.may_go(chosen) and self._layout(chosen) is not None:
                return list(chosen)
        return None

    def _without_superfluous(self, chosen: list[Victim]) -> list[Victim]:
        """Dearest first, whoever turns out not to be needed stays."""
        for victim in sorted(chosen, key=lambda victim: -victim.cost):
            fewer = [other for other in chosen if other is not victim]
            if fewer and self._layout(fewer) is not None:
                chosen = fewer
        return chosen

    def _layout(self, chosen: Sequence[Victim]) -> list[int] | None:
        """The node of each missing pod once these are gone.

        None if some pod has none, or if a queue would have more than it may.
        """
        if not self._limits.allow(chosen):
            return None
        room = self._room.copy()
        release_room(self.session, room, chosen)
        if self._is_ruled:
            return lay_out_by_rules(self.session, room, self.runs, chosen)
        return lay_out(self.session, room, self.runs)


def lay_out(session: Session, room: Amounts, runs: Runs) -> list[int] | None:
    """A node for each pod of these runs in this room, tightest nodes first.

    None if there is none for some pod.
    """
    nodes: list[int] = []
    room = room.copy()
    for pod_class, count in runs:
        request = session.request[pod_class]
        fitting = np.where(session.node_scores(pod_class).suitable, copies(room, request), 0)
        if int(fitting.sum()) < count:
            return None
        order = np.flatnonzero(fitting)
        order = order[np.argsort(fitting[order], kind="stable")]
        # Where a resource is not asked for any number fits: no more than are needed.
        wanted = np.minimum(fitting[order], count)
        places = np.repeat(order, wanted)[:count].tolist()
        for node in places:
            room[:, node] -= request
        nodes.extend(places)
    return nodes


def _room_for(session: Session, gang: Gang) -> Amounts:
    """What will be free without any eviction, less what others have been given in the future."""
    room = session.node_table.future_everywhere()
    mask = session.future_places.mask_for(gang)
    if mask:
        return room - session.future_places.block(mask)
    return room


def carry_out(
    session: Session,
    statement: Statement,
    gang: Gang,
    plan: Plan,
    action: str,
    rule: EvictionRule = EvictionRule.PRIORITY,
    short: Mask | None = None,
) -> None:
    """The victims go, and each missing pod of the gang is promised its place.

    `rule` allows it. `short` marks the resources that the gang lacks.
    """
    choice = Choice(rule, short, plan.possible, len(plan.victims), plan.has_tried_all)
    for pods in _alike_runs(session, plan.victims):
        statement.evict_alike(pods, action, gang, choice=choice)
    pods = session.tasks.missing_pods(gang)
    first = 0
    for pod_class, count in missing_runs(session, gang):
        run = slice(first, first + count)
        statement.pipeline(gang, pod_class, pods[run], plan.nodes[run])
        first += count


def _alike_runs(session: Session, victims: Iterable[Victim]) -> Iterator[list[int]]:
    """The pods that go, last in task order first, in runs of one class and one queue."""
    pods: list[int] = []
    run_of: tuple[int, int] | None = None
    for victim in victims:
        own = victim.pods.tolist()
        if len(own) > 1:
            own.sort(key=session.tasks.pod_key, reverse=True)
        for pod in own:
            belongs_to = (victim.gang.queue, int(session.pod_classes[pod]))
            if pods and belongs_to != run_of:
                yield pods
                pods = []
            run_of = belongs_to
            pods.append(pod)
    if pods:
        yield pods
