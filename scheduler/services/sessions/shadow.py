"""Sessions beside another scheduler: what they find is written, what they decide is not.

Pods, podgroups and nodes are as the cluster says. Figures and reasons are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scheduler.engine.decisions import Outcome, QueueFigures

_TOLD = ("Unschedulable", "FailedScheduling", "QueueSuspended")
"""Events that say why something waits. All others tell of decisions."""


def without_decisions(outcome: Outcome) -> Outcome:
    """Nothing is bound, evicted, reserved or moved from phase to phase.

    Figures are those before the decisions: what pods really hold.
    """
    return replace(
        outcome,
        binds=(),
        evictions=(),
        reservations=(),
        phases={},
        phase_changes=(),
        conditions=tuple(each for each in outcome.conditions if each.type == "Unschedulable"),
        events=tuple(event for event in outcome.events if event.reason in _TOLD),
        queues=_figures(outcome),
        starving={},
    )


def _figures(outcome: Outcome) -> Mapping[str, QueueFigures]:
    figures: dict[str, QueueFigures] = {}
    for name, at_open in outcome.queues_at_open.items():
        at_end = outcome.queues[name]
        figures[name] = replace(at_open, lacking=at_end.lacking, warnings=at_end.warnings)
    return figures
