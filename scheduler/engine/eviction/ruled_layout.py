"""Places for a gang that is bound by rules between pods, once its victims are gone.

Each pod decides where the next may go, so they are placed one after the other on the counts of the
session, and everything is taken back. So nobody goes for a place that the rules then forbid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from scheduler.domain.nodes import Amounts
from scheduler.engine.eviction.gang_victims import Victim
from scheduler.engine.future_places import Runs
from scheduler.engine.session import Session
from scheduler.engine.state.nodes import copies
from scheduler.engine.state.pod_rules import PodRuleCounts

_NO_ROOM = np.iinfo(np.int64).max


def lay_out_by_rules(
    session: Session, room: Amounts, runs: Runs, victims: Sequence[Victim]
) -> list[int] | None:
    """A node for each pod of these runs in this room, tightest nodes first.

    None if there is none for some pod, or if too many were looked for in this session. As in
    `allocate`, there is no second try in another order.
    """
    rules = session.pod_rules
    assert rules is not None
    rules.prepare(pod_class for pod_class, _ in runs)
    room = room.copy()
    nodes: list[int] = []
    with _gone(session, rules, victims), _Places(rules) as places:
        for pod_class, count in runs:
            for _ in range(count):
                rules.searches_left -= 1
                node = _tightest(session, rules, room, pod_class)
                if node < 0 or rules.searches_left < 0:
                    return None
                room[:, node] -= session.request[pod_class]
                places.take(pod_class, node)
                nodes.append(node)
    return nodes


def _tightest(session: Session, rules: PodRuleCounts, room: Amounts, pod_class: int) -> int:
    """The node with the least room of those that fit and are allowed; -1 if there is none."""
    possible = session.node_scores(pod_class).suitable.copy()
    if rules.bound[pod_class]:
        possible &= rules.allowed(pod_class, later=True)
    fitting = np.where(possible, copies(room, session.request[pod_class]), 0)
    fitting = np.where(fitting > 0, fitting, _NO_ROOM)
    node = int(fitting.argmin())
    if fitting[node] == _NO_ROOM:
        return -1
    return node


@contextmanager
def _gone(session: Session, rules: PodRuleCounts, victims: Sequence[Victim]) -> Iterator[None]:
    """As if these were told to go."""
    pods = [pod for victim in victims for pod in victim.pods.tolist()]
    for pod in pods:
        rules.release(int(session.pod_classes[pod]), [int(session.nodes[pod])], 1)
    try:
        yield
    finally:
        for pod in pods:
            rules.release(int(session.pod_classes[pod]), [int(session.nodes[pod])], -1)


class _Places:
    """Pods that are counted on their nodes inside of the block."""

    def __init__(self, rules: PodRuleCounts) -> None:
        self._rules = rules
        self._taken: list[tuple[int, int]] = []

    def __enter__(self) -> _Places:
        return self

    def __exit__(self, *exception: object) -> None:
        for pod_class, node in self._taken:
            self._rules.place(pod_class, [node], -1)

    def take(self, pod_class: int, node: int) -> None:
        self._rules.place(pod_class, [node], 1)
        self._taken.append((pod_class, node))
