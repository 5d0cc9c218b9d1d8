"""What pods of others hold on each node: sums, because such pods have no rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from scheduler.domain.resources import NOTHING, Resources


class TakenRoom:
    """Sums of whole numbers, so that adding and subtracting is exact."""

    def __init__(self) -> None:
        self._pods: dict[str, tuple[str, Mapping[str, int]]] = {}
        self._sums: dict[str, Counter[str]] = defaultdict(Counter)

    def put(self, uid: str, node: str, requests: Resources) -> set[str]:
        """This pod holds so much there. The nodes whose sums changed."""
        amounts = {**requests, "pods": 1}
        if self._pods.get(uid) == (node, amounts):
            return set()
        touched = self.drop(uid)
        self._pods[uid] = (node, amounts)
        self._sums[node].update(amounts)
        return touched | {node}

    def drop(self, uid: str) -> set[str]:
        """This pod holds nothing any more. The nodes whose sums changed."""
        held = self._pods.pop(uid, None)
        if held is None:
            return set()
        node, amounts = held
        self._sums[node].subtract(amounts)
        return {node}

    def on(self, node: str) -> Resources:
        sums = self._sums.get(node)
        if not sums:
            return NOTHING
        return Resources({name: amount for name, amount in sums.items() if amount})
