"""Reads settings.SCHEDULER once, into a typed value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from django.conf import settings


@dataclass(frozen=True, slots=True)
class SchedulerConf:
    cluster: str = "simulated"
    tick_seconds: float = 1.0
    lease_seconds: float = 30.0
    demo: bool = True
    check_sums_every: int = 60  # sessions between two checks of the resident snapshot's sums
    scenarios_kept: int = 30  # sessions that can be replayed
    scenario_pods: int = 5_000  # above this many pods a session is kept only when asked for
    # retention by table, where it is not the usual one
    keep_hours: Mapping[str, float] = field(default_factory=dict)
    # on what may wait, where it is not the usual one
    limits: Mapping[str, int] = field(default_factory=dict)
    gap_seconds: float = (
        0.2  # between the beginnings of two sessions, however often one is asked for
    )


@cache
def conf() -> SchedulerConf:
    return SchedulerConf(**settings.SCHEDULER)
