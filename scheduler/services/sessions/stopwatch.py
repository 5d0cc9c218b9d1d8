"""How long the parts of a session took."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Stopwatch:
    """Milliseconds by part, in the order in which they happened."""

    parts: dict[str, float] = field(default_factory=dict)
    actions: dict[str, float] = field(default_factory=dict)  # of the part "think"
    _since: float = field(default_factory=time.perf_counter)
    _action_since: float = 0.0

    def lap(self, part: str) -> None:
        now = time.perf_counter()
        self.parts[part] = round((now - self._since) * 1000, 3)
        self._since = now
        self._action_since = now

    def lap_action(self, action: str) -> None:
        """An action that a policy names twice has the sum of both."""
        now = time.perf_counter()
        before = self.actions.get(action, 0.0)
        self.actions[action] = round(before + (now - self._action_since) * 1000, 3)
        self._action_since = now

    @property
    def durations(self) -> dict[str, Any]:
        """As they are stored: milliseconds by part, and below `actions` by action."""
        stored: dict[str, Any] = dict(self.parts)
        if self.actions:
            stored["actions"] = dict(self.actions)
        return stored

    @property
    def total(self) -> float:
        return sum(self.parts.values())
