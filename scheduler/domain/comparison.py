"""Two schedulers compared: when they agree about a gang, and how they can differ."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

EVICTED_MESSAGE: Final = "Evicted: "
"""How the message of a pod begins that another scheduler evicts, until it is gone."""

SAME_TIME: Final = timedelta(seconds=10)
"""Two starts no further apart are the same. A gang may be half started for as long."""

SAME_EVICTION: Final = timedelta(seconds=60)
"""An eviction frees room for somebody, and both find out at different moments."""


class Verdict(StrEnum):
    """What became of one question about one gang."""

    TOGETHER = "together"
    OURS_EARLIER = "oursEarlier"
    ONLY_OURS = "onlyOurs"
    ONLY_THEIRS = "onlyTheirs"
    HALF_STARTED = "halfStarted"
    EVICTED_BY_BOTH = "evictedByBoth"
    EVICTED_BY_OURS = "evictedByOurs"
    EVICTED_BY_THEIRS = "evictedByTheirs"
    BOTH_WAIT = "bothWait"
    UNDECIDED = "undecided"
    NOT_SEEN = "notSeen"


START_DIFFERENCES: Final = (
    Verdict.OURS_EARLIER,
    Verdict.ONLY_OURS,
    Verdict.ONLY_THEIRS,
    Verdict.HALF_STARTED,
)
EVICTION_DIFFERENCES: Final = (Verdict.EVICTED_BY_OURS, Verdict.EVICTED_BY_THEIRS)
DIFFERENCES: Final = (*START_DIFFERENCES, *EVICTION_DIFFERENCES)

TITLES: Final[dict[Verdict, str]] = {
    Verdict.TOGETHER: "Both started it",
    Verdict.OURS_EARLIER: "Fumarole would have started it earlier",
    Verdict.ONLY_OURS: "Only Fumarole would have started it",
    Verdict.ONLY_THEIRS: "Only the other scheduler started it",
    Verdict.HALF_STARTED: "The other scheduler started only a part of it",
    Verdict.EVICTED_BY_BOTH: "Both evicted it",
    Verdict.EVICTED_BY_OURS: "Only Fumarole would have evicted it",
    Verdict.EVICTED_BY_THEIRS: "Only the other scheduler evicted it",
    Verdict.BOTH_WAIT: "Both let it wait",
    Verdict.UNDECIDED: "Fumarole would start it now",
    Verdict.NOT_SEEN: "Not compared",
}

DEFINITION: Final = (
    "They agree on a start if the other scheduler started the gang, whole, within "
    f"{SAME_TIME.seconds} seconds after Fumarole would have done so."
)


@dataclass(frozen=True, slots=True)
class Agreement:
    """`agreed` of `decided` questions; those that nobody has decided yet do not count."""

    agreed: int
    decided: int

    @property
    def rate(self) -> float | None:
        """None where nothing was decided."""
        if not self.decided:
            return None
        return self.agreed / self.decided
