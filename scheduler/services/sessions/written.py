"""What one session wrote down, counted and named for its record."""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler.engine.decisions import (
    Bind,
    Evict,
)


@dataclass(slots=True)
class Written:
    """What was really written."""

    bound: list[Bind] = field(default_factory=list)
    evicted: list[Evict] = field(default_factory=list)
    lost: int = 0  # placements that something else had overtaken
    # podgroups that lost theirs: nothing else is said about them either
    broken: set[str] = field(default_factory=set)
    # podgroups of which some pods run while the others cannot
    unknown: list[int] = field(default_factory=list)
    # podgroups that waited and run now, and that ended: the keys of their rows
    started: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    podgroups: set[str] = field(default_factory=set)
    queues: set[str] = field(default_factory=set)
    completed: bool = False  # some podgroup was completed: a closing queue may be closed now
