"""What one node has to say to a gang that waits: whether its pods fit, and what is in the way.

The engine finds it (`engine/report/node_fit.py`); pages, API and CLI say it in these words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from scheduler.domain.plans import counted
from scheduler.domain.resources import format_quantity


class Fit(StrEnum):
    """How a gang stands to a node, the best first."""

    KEPT = "kept"
    FITS = "fits"
    FULL = "full"
    POD_RULES = "podRules"
    CORDONED = "cordoned"
    NOT_READY = "notReady"
    TOO_SMALL = "tooSmall"
    TAINTED = "tainted"
    NOT_SELECTED = "notSelected"
    NOT_SUPPORTED = "notSupported"


TITLES: Final[Mapping[Fit, str]] = {
    Fit.KEPT: "has a place here",
    Fit.FITS: "fits now",
    Fit.FULL: "would fit if the node were empty",
    Fit.POD_RULES: "rules between pods",
    Fit.CORDONED: "cordoned",
    Fit.NOT_READY: "not ready",
    Fit.TOO_SMALL: "node too small",
    Fit.TAINTED: "taint",
    Fit.NOT_SELECTED: "selector or affinity",
    Fit.NOT_SUPPORTED: "not supported",
}
RANK: Final[Mapping[Fit, int]] = {fit: number for number, fit in enumerate(Fit)}


@dataclass(frozen=True, slots=True)
class Shortage:
    """What one pod asks for and the node has too little of, in base units."""

    resource: str
    need: int
    free: int
    whole: int

    @property
    def short(self) -> int:
        return self.need - self.free


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """`places` counts those of the gang's `pods` that wait for which there is room here now."""

    fit: Fit
    pods: int = 0
    places: int = 0
    shortages: tuple[Shortage, ...] = ()
    taint: str = ""

    @property
    def words(self) -> str:
        """One sentence."""
        if self.fit is Fit.FITS:
            return f"Room here now for {self.places} of its {counted(self.pods, 'pod')} that wait."
        if self.fit is Fit.KEPT:
            return f"A place is kept here for {counted(self.places, 'pod')} of it."
        if self.fit is Fit.FULL:
            return f"Too full now: {self._missing()}. It would fit if the node were empty."
        if self.fit is Fit.TOO_SMALL:
            return f"Too small, even when empty: {self._missing()}."
        if self.fit is Fit.TAINTED:
            return f"It does not tolerate the taint {self.taint}."
        return _SENTENCES[self.fit]

    def _missing(self) -> str:
        parts = []
        for item in self.shortages:
            name = item.resource
            need = format_quantity(name, item.need)
            free = format_quantity(name, item.free)
            whole = format_quantity(name, item.whole)
            short = format_quantity(name, item.short)
            parts.append(f"a pod needs {need} {name}, {free} of {whole} are free, {short} short")
        return "; ".join(parts)


_SENTENCES: Final[Mapping[Fit, str]] = {
    Fit.POD_RULES: "Rules between pods keep it away from this node now.",
    Fit.CORDONED: "The node is cordoned: it gets no new pods.",
    Fit.NOT_READY: "The node is not ready: it gets no pods.",
    Fit.NOT_SELECTED: "Its node selector or affinity does not choose this node.",
    Fit.NOT_SUPPORTED: "It asks for what no session can honour, so no node suits it.",
}


@dataclass(frozen=True, slots=True)
class WaitingGang:
    """A gang that waits, as the engine knows it: `row` is its place in the snapshot."""

    row: int
    key: str  # namespace/name
    queue: str
    priority: int
    created: float
    fit: Fit
