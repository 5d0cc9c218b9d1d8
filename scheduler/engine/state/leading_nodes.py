"""The best nodes for a class of pods, found without a look through all nodes each time."""

from __future__ import annotations

import numpy as np

from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows, Scores


class LeadingNodes:
    """The nodes that come first for a class of pods, so that not all of them are looked through
    each time.

    It holds every node with a score above the bar, and others that once were there.
    """

    LEAST = 1024
    SPARE = 8
    """As many times the nodes that were asked for are kept."""

    def __init__(self) -> None:
        self._bar = np.inf
        self._nodes: Rows = np.zeros(0, dtype=np.intp)
        self._held: Mask = np.zeros(0, dtype=np.bool_)

    @property
    def is_in_use(self) -> bool:
        """Whether anybody asked for the best nodes so far."""
        return self._bar < np.inf

    def follow(self, scores: Scores, changed: Rows) -> None:
        """These nodes have other scores now."""
        if not self.is_in_use:
            return
        above = changed[scores[changed] > self._bar]
        new = above[~self._held[above]]
        if len(new):
            self._held[new] = True
            self._nodes = np.sort(np.concatenate([self._nodes, new]))

    def best(self, scores: Scores, count: int) -> Rows:
        """The best nodes with room, at most `count`, by number; of equals the first."""
        nodes = self._nodes[scores[self._nodes] > self._bar]
        if len(nodes) < count and self._bar > -np.inf:
            nodes = self._look_through_all(scores, count)
        return _leading(nodes, scores[nodes], count)

    def _look_through_all(self, scores: Scores, count: int) -> Rows:
        """Sets the bar; answers the nodes at it or above, which are at least as many as were asked
        for, or all that have room.
        """
        kept = max(self.LEAST, self.SPARE * count)
        self._bar = (
            -np.inf
            if len(scores) <= kept
            else float(np.partition(scores, len(scores) - kept)[len(scores) - kept])
        )
        self._held = scores > self._bar
        self._nodes = np.flatnonzero(self._held)
        if self._bar == -np.inf:
            return self._nodes
        return np.flatnonzero(scores >= self._bar)


def _leading(nodes: Rows, scores: Scores, count: int) -> Rows:
    if len(nodes) <= count:
        return nodes
    last = np.partition(scores, len(scores) - count)[len(scores) - count]
    better = nodes[scores > last]
    return np.sort(np.concatenate([better, nodes[scores == last][: count - len(better)]]))
