"""What sessions find out about nodes and leave to the next one: which of them suit a class of pods,
and how good each is.

It is kept with the snapshot, as long as nodes, classes and policy are the same. Scores follow from
what is used on nodes, so they are renewed where that is not what the last session began with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.snapshot import Snapshot
from scheduler.domain.tables import Rows, Scores
from scheduler.engine.policy import Policy

MOST_SCORES: Final = 2**23
"""So many are kept, 64 MB. Beyond that those of classes go that nobody asked for longest."""


@dataclass(slots=True, eq=False)
class KeptClass:
    """One class of pods against all nodes. Nobody may write into the mask."""

    suitable: Mask
    fits_an_empty_node: bool | None = None
    scores: Scores | None = None
    renewed: int = 0  # the session that last brought the scores up to date


class KeptNodes:
    """Of one table of nodes and one policy."""

    def __init__(self, policy: Policy, nodes: int) -> None:
        self._policy = policy
        self._sessions = 0
        self._used: Amounts | None = None  # when the last session began
        self._changed = np.zeros(nodes, dtype=np.int64)  # by node, the session that found it other
        self._classes: dict[int, KeptClass] = {}  # the one that was asked for last comes last

    @classmethod
    def of(cls, snapshot: Snapshot, policy: Policy) -> Self:
        kept = snapshot.found_of_nodes
        found: Self | None = kept.get(cls)
        if found is None or found._policy != policy:
            found = kept[cls] = cls(policy, len(snapshot.nodes))
        return found

    def begin(self, used: Amounts) -> NodesAtOpen:
        """A session begins with this used on the nodes: resources by nodes."""
        self._sessions += 1
        if self._used is None:
            self._used = used.copy()
        else:
            changed = np.flatnonzero((used != self._used).any(axis=0))
            self._used[:, changed] = used[:, changed]
            self._changed[changed] = self._sessions
        return NodesAtOpen(self, self._sessions, self._used)

    def is_latest(self, session: int) -> bool:
        return session == self._sessions

    def about(self, pod_class: int, find_suitable: Callable[[], Mask]) -> KeptClass:
        found = self._classes.pop(pod_class, None)
        if found is None:
            suitable = find_suitable()
            suitable.flags.writeable = False
            found = KeptClass(suitable)
        self._classes[pod_class] = found
        while len(self._classes) > 1 and len(self._classes) * len(self._changed) > MOST_SCORES:
            del self._classes[next(iter(self._classes))]
        return found

    def stale(self, kept: KeptClass) -> Rows:
        """The suitable nodes whose scores are those of another use, or were never found."""
        if kept.scores is None:
            return np.flatnonzero(kept.suitable)
        return np.flatnonzero((self._changed > kept.renewed) & kept.suitable)


@dataclass(frozen=True, slots=True, eq=False)
class NodesAtOpen:
    """The nodes as one session found them, and what earlier ones left about them."""

    kept: KeptNodes
    session: int
    used: Amounts

    def about(self, pod_class: int, find_suitable: Callable[[], Mask]) -> ClassAtOpen:
        return ClassAtOpen(self, self.kept.about(pod_class, find_suitable))


@dataclass(frozen=True, slots=True, eq=False)
class ClassAtOpen:
    """The same about one class of pods."""

    nodes: NodesAtOpen
    about: KeptClass

    def fits_an_empty_node(self, find: Callable[[], bool]) -> bool:
        if self.about.fits_an_empty_node is None:
            self.about.fits_an_empty_node = find()
        return self.about.fits_an_empty_node

    def scores(self, score: Callable[[Rows, Amounts], Scores]) -> Scores | None:
        """By node as the session began, -inf where a pod of the class did not fit. The caller may
        write into it.

        `score` tells them of these nodes, if this is used on all nodes. None if another session has
        begun since.
        """
        nodes, about = self.nodes, self.about
        if not nodes.kept.is_latest(nodes.session):
            return None
        stale = nodes.kept.stale(about)
        found = score(stale, nodes.used)  # a plugin that fails leaves nothing behind
        if about.scores is None:
            about.scores = np.full(len(about.suitable), -np.inf)
        about.scores[stale] = found
        about.renewed = nodes.session
        return about.scores.copy()
