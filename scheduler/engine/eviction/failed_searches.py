"""Searches for victims that found none: a gang that asks for as much or more need not be tried as
long as nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.domain.nodes import Amounts, Mask
from scheduler.engine.eviction.claims import missing_runs
from scheduler.engine.session import Session
from scheduler.engine.state.gang import Gang


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """For so many alike pods. `is_bound`: there were limits that do not bind every gang."""

    request: Amounts
    count: int
    suitable: Mask
    is_bound: bool

    def settles(self, other: Search) -> bool:
        """Whether the other asks for the same resources, and no less of any."""
        return (
            self.count <= other.count
            and self.is_bound <= other.is_bound
            and bool((self.request <= other.request).all())
            and bool(((self.request > 0) == (other.request > 0)).all())
            and not bool((other.suitable & ~self.suitable).any())
        )


class FailedSearches:
    """By queue. Of gangs of pods that are not alike only those are kept that rules bind, and they
    settle only the same again.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._state = session.queue_usage.state
        self._by_queue: dict[int, list[Search]] = {}
        self._ruled: set[tuple[object, ...]] = set()
        # By what is asked for: how many of the searches of its queue do not settle it; -1: one does
        self._looked_at: dict[tuple[int, int, int, bool], int] = {}

    def include(self, gang: Gang, *, is_bound: bool = False) -> bool:
        """Whether a search for this gang must fail."""
        if self._session.queue_usage.state != self._state:
            self._state = self._session.queue_usage.state
            self._by_queue.clear()
            self._ruled.clear()
            self._looked_at.clear()
        if self._ruled and self._key_of(gang, is_bound) in self._ruled:
            return True
        earlier = self._by_queue.get(gang.queue)
        if not earlier:
            return False
        runs = missing_runs(self._session, gang)
        if len(runs) != 1 or self._session.is_bound_by_rules(runs[0][0]):
            return False
        key = (gang.queue, *runs[0], is_bound)
        looked_at = self._looked_at.get(key, 0)
        if 0 <= looked_at < len(earlier):
            search = self._new_search(*runs[0], is_bound)
            is_settled = any(other.settles(search) for other in earlier[looked_at:])
            looked_at = self._looked_at[key] = -1 if is_settled else len(earlier)
        return looked_at < 0

    def add(self, gang: Gang, *, is_bound: bool = False) -> None:
        search = self._search_for(gang, is_bound)
        if search is not None and not gang.ready:
            self._by_queue.setdefault(gang.queue, []).append(search)
        if search is None and self._is_ruled(gang):
            self._ruled.add(self._key_of(gang, is_bound))

    def _is_ruled(self, gang: Gang) -> bool:
        rules = self._session.pod_rules
        return rules is not None and rules.bind(gang)

    def _key_of(self, gang: Gang, is_bound: bool) -> tuple[object, ...]:
        """Just the same again: what rules mean for more or larger pods nobody knows."""
        return (gang.queue, is_bound, gang.ready, *missing_runs(self._session, gang))

    def _search_for(self, gang: Gang, is_bound: bool) -> Search | None:
        runs = missing_runs(self._session, gang)
        if len(runs) != 1 or self._session.is_bound_by_rules(runs[0][0]):
            return None
        return self._new_search(*runs[0], is_bound)

    def _new_search(self, pod_class: int, count: int, is_bound: bool) -> Search:
        suitable = self._session.node_scores(pod_class).suitable
        return Search(self._session.request[pod_class], count, suitable, is_bound)
