"""Whether a sentence is news to somebody who has heard another one."""

from __future__ import annotations

import re
from typing import Final

from scheduler.clusters.kubernetes.values import Condition

_FIGURES: Final = re.compile(r"\d+")


def says_the_same(known: Condition | None, wanted: Condition) -> bool:
    """Other figures in the same sentence are no news."""
    if known is None:
        return False
    if (known.status, known.reason) != (wanted.status, wanted.reason):
        return False
    return without_figures(known.message) == without_figures(wanted.message)


def without_figures(sentence: str) -> str:
    return _FIGURES.sub("0", sentence)
