"""Why a gang that waits does not take room from other queues, in words.

The engine finds the code and the figures (`engine/report/no_reclaim.py`). Which queues a sentence
may name depends on who reads it, so it is made for the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from scheduler.domain.evictions import NameOf
from scheduler.domain.plans import counted
from scheduler.domain.resources import format_quantity

Figures = Mapping[str, Any]


class ReclaimCode(StrEnum):
    """What keeps a gang from reclaiming; or that nothing does."""

    NO_ACTION = "NoReclaimAction"
    NO_SHARES = "NoShares"
    HAS_ITS_DUE = "HasItsDue"
    EXPECTED_SOON = "ExpectedSoon"
    WAITS_FIRST = "WaitsFirst"
    NOBODY_HAS_TOO_MUCH = "NobodyHasTooMuch"
    NOT_RECLAIMABLE = "NotReclaimable"
    SUSPENDED = "VictimsSuspended"
    NOT_EVICTABLE = "NotEvictable"
    TOO_LARGE = "VictimsTooLarge"
    PROTECTED = "VictimsProtected"
    NOT_ENOUGH = "NotEnoughVictims"
    NO_ALLOWED_SET = "NoAllowedSet"
    LOSES_TOO_MUCH = "LosesTooMuch"
    POD_BY_POD = "PodByPod"
    HAS_ROOM = "HasRoom"
    MAY_RECLAIM = "MayReclaim"


@dataclass(frozen=True, slots=True)
class ReclaimAnswer:
    """`figures` hold amounts in base units, and other queues under `others`."""

    code: ReclaimCode
    figures: Figures = field(default_factory=dict, hash=False)


def reclaim_words(answer: ReclaimAnswer, name_of: NameOf) -> str:
    """One sentence. A queue that the reader may not know is not named, nor are its figures."""
    return _WORDS[answer.code](answer.figures, name_of)


def visible_figures(figures: Figures, name_of: NameOf) -> dict[str, Any]:
    """Without the queues that the reader may not know."""
    seen = dict(figures)
    if "others" in seen:
        seen["others"] = [other for other in seen["others"] if name_of(other["queue"])]
    return seen


def _amount(figures: Figures, key: str) -> str:
    return format_quantity(figures["resource"], int(figures[key]))


def _has_its_due(figures: Figures, name_of: NameOf) -> str:
    queue = figures["queue"]
    resource = figures["resource"]
    if not figures["deserved"]:
        due = f"{queue} deserves no {resource}"
    else:
        due = (
            f"{queue} has {_amount(figures, 'allocated')} of the {_amount(figures, 'deserved')} "
            f"{resource} that it deserves, and this gang needs {_amount(figures, 'need')} more"
        )
    borrowed = _borrowed_words(figures, name_of)
    if borrowed:
        return f"{due}; {borrowed}, but not from {queue}'s share."
    return f"{due}."


def _borrowed_words(figures: Figures, name_of: NameOf) -> str:
    """ "8 of vision's are borrowed": of the first that the reader may know."""
    for other in figures.get("others", ()):
        name = name_of(other["queue"])
        if name:
            excess = int(other["excess"])
            verb = "is" if format_quantity(figures["resource"], excess) == "1" else "are"
            amount = format_quantity(figures["resource"], excess)
            return f"{amount} of {name}'s {verb} borrowed"
    return ""


def _has_too_much_words(figures: Figures, name_of: NameOf) -> str:
    """ "vision has 8 nvidia.com/gpu more than it deserves"."""
    resource = figures["resource"]
    for other in figures.get("others", ()):
        name = name_of(other["queue"])
        if name:
            excess = format_quantity(resource, int(other["excess"]))
            return f"{name} has {excess} {resource} more than it deserves"
    return f"Another queue has more {resource} than it deserves"


def _expected_soon(figures: Figures, _: NameOf) -> str:
    seconds = _seconds(figures)
    if figures["isItself"]:
        return (
            f"It is expected to start by itself in about {seconds}, when other pods end; "
            "until then nothing is evicted for it."
        )
    return (
        f"{figures['podgroup']} of its queue is expected to start by itself in about {seconds}; "
        "until then nothing is evicted for its queue."
    )


def _waits_first(figures: Figures, _: NameOf) -> str:
    return (
        "Nothing is evicted for it before it has waited for another "
        f"{_seconds(figures)}: other pods may end by themselves."
    )


def _seconds(figures: Figures) -> str:
    return f"{max(1, round(figures['seconds']))} s"


def _protected(figures: Figures, _: NameOf) -> str:
    return (
        "The pods that would have to be evicted are protected for another "
        f"{_seconds(figures)}: by then they have run for their minimum running time, or end."
    )


def _not_reclaimable(figures: Figures, name_of: NameOf) -> str:
    return f"{_has_too_much_words(figures, name_of)}, but it is not reclaimable."


def _suspended(figures: Figures, name_of: NameOf) -> str:
    words = _has_too_much_words(figures, name_of)
    return f"{words}, but it is suspended, and the policy protects suspended queues."


def _possible(figures: Figures) -> str:
    return counted(int(figures["possible"]), "possible victim")


def _not_enough(figures: Figures, _: NameOf) -> str:
    return (
        f"Even without all of the {_possible(figures)} there would not be room for the whole gang."
    )


def _no_allowed_set(figures: Figures, _: NameOf) -> str:
    return (
        f"No set of the {_possible(figures)} makes room for the whole gang and leaves every "
        "queue what it deserves."
    )


def _loses_too_much(figures: Figures, _: NameOf) -> str:
    pods = counted(int(figures["pods"]), "pod")
    words = f"To evict {pods} for it would lose too much work for what it gains"
    if figures.get("isShort"):
        return (
            f"{words}: it would do less work than they have done. "
            f"It waits for another {_seconds(figures)} at most."
        )
    return f"{words}: the last of them ends in about {_seconds(figures)}."


def _may_reclaim(figures: Figures, _: NameOf) -> str:
    pods = counted(int(figures["pods"]), "pod")
    return f"It may reclaim: the next session can evict {pods} of other queues for it."


def _always(words: str) -> Callable[[Figures, NameOf], str]:
    return lambda figures, _: words.format_map(figures)


_WORDS: Final[Mapping[ReclaimCode, Callable[[Figures, NameOf], str]]] = {
    ReclaimCode.NO_ACTION: _always(
        "The policy has no reclaim action: nothing is evicted for another queue."
    ),
    ReclaimCode.NO_SHARES: _always(
        "The policy gives queues no shares: there is nothing to take back."
    ),
    ReclaimCode.HAS_ITS_DUE: _has_its_due,
    ReclaimCode.EXPECTED_SOON: _expected_soon,
    ReclaimCode.WAITS_FIRST: _waits_first,
    ReclaimCode.NOBODY_HAS_TOO_MUCH: _always(
        "No other queue has more {resource} than it deserves."
    ),
    ReclaimCode.NOT_RECLAIMABLE: _not_reclaimable,
    ReclaimCode.SUSPENDED: _suspended,
    ReclaimCode.NOT_EVICTABLE: _always(
        "No pod of the queues that have too much {resource} may be evicted: they are critical, or "
        "not preemptable."
    ),
    ReclaimCode.TOO_LARGE: _always(
        "Each gang that could be evicted is so large that its queue would fall below the "
        "{resource} that it deserves."
    ),
    ReclaimCode.PROTECTED: _protected,
    ReclaimCode.NOT_ENOUGH: _not_enough,
    ReclaimCode.NO_ALLOWED_SET: _no_allowed_set,
    ReclaimCode.LOSES_TOO_MUCH: _loses_too_much,
    ReclaimCode.POD_BY_POD: _always(
        "The policy reclaims pod by pod, as Volcano does; too few pods may be evicted for it."
    ),
    ReclaimCode.HAS_ROOM: _always("There is room for it on nodes without any eviction."),
    ReclaimCode.MAY_RECLAIM: _may_reclaim,
}
