"""How often a task of a job was started again, and which of its pods that meant.

It is kept in the status of the Job, in the map of what the job controls, so one write holds both
the decision and its trace. A pod has the number that was the task's when it was made. One with a
lower number that was meant is a leftover. So a controller that is killed at any moment goes on
where it was, and no retry counts twice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

PREFIX: Final = "fumarole.io/restarts-"
LAST_COMMAND: Final = "fumarole.io/last-command"
"""The uid of the last Command that the job obeyed."""
_ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class TaskRestarts:
    """`again` are the numbers of the pods that the last ones meant; None for all of the task."""

    retries: int = 0
    again: frozenset[int] | None = frozenset()

    def means(self, index: int, made_after: int) -> bool:
        """Whether a pod that was made after so many restarts has to go."""
        if made_after >= self.retries:
            return False
        return self.again is None or index in self.again

    def once_more(self, indexes: Collection[int] | None, unfinished: Collection[int]) -> str:
        """As it is kept after the next one. `unfinished` still have to go for an earlier one."""
        meant = _ALL
        if indexes is not None:
            meant = ",".join(str(index) for index in sorted({*indexes, *unfinished}))
        return f"{self.retries + 1}:{meant}"


NO_RESTARTS: Final = TaskRestarts()


def read_restarts(controlled: Mapping[str, str], task: str) -> TaskRestarts:
    """What cannot be read counts as none: somebody else wrote it."""
    number, _, meant = controlled.get(PREFIX + task, "").partition(":")
    if not number.isdigit():
        return NO_RESTARTS
    if meant == _ALL:
        return TaskRestarts(int(number), None)
    indexes = [int(text) for text in meant.split(",") if text.isdigit()]
    return TaskRestarts(int(number), frozenset(indexes))
