"""`manage.py quality`: how well the cluster was scheduled lately, and whether kept sessions come to
rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.utils import timezone

from scheduler.domain.plans import counted
from scheduler.scenarios.files import read_scenarios
from scheduler.selectors.sessions.kept import kept_sessions
from scheduler.selectors.sessions.quality import (
    LONGEST_WHOLE_SPAN,
    Quality,
    quality_between,
)
from scheduler.services.sessions.replay import scenario_text
from scheduler.simulation.runs import Rest, run_to_rest

_TOO_LONG = (
    "  Jobs that ended more than an hour ago may be deleted by now. Their pods are not counted\n"
    "  above, so more time was useful than is shown. Look back for an hour at most."
)


_MOST_RESTS: Final = 30


@dataclass(frozen=True, slots=True)
class SessionRest:
    """What became of a kept session on which nothing changes any more."""

    session: int
    rest: Rest


def figures_of_the_last(minutes: float) -> Quality:
    now = timezone.now()
    return quality_between(now - timedelta(minutes=minutes), now)


def rests_of_kept_sessions(sessions: int) -> list[SessionRest]:
    """The newest kept sessions are run forward, each under its own policy, oldest first."""
    found = []
    for row in reversed(kept_sessions()[:_MOST_RESTS]):
        number = row.session_number
        (scenario,) = read_scenarios(scenario_text(number), f"session {number}")
        found.append(SessionRest(number, run_to_rest(scenario.cluster, scenario.policy, sessions)))
    return found


def as_document(figures: Quality, rests: list[SessionRest]) -> dict[str, Any]:
    return {
        "seconds": round(figures.seconds),
        "measuredIn": figures.measured_in,
        "placements": figures.placements,
        "evictions": figures.evictions,
        "evictionsPerPlacement": round(figures.evictions_per_placement, 4),
        "evictionsByAction": figures.evictions_by_action,
        "mostEvicted": dict(figures.most_evicted),
        "useful": round(figures.share(figures.useful), 4),
        "lost": round(figures.share(figures.lost), 4),
        "unfinished": round(figures.share(figures.unfinished), 4),
        "rests": {str(found.session): found.rest.document() for found in rests},
    }


def as_text(figures: Quality, rests: list[SessionRest]) -> str:
    counts = []
    for action, count in figures.evictions_by_action.items():
        counts.append(f"{action} {count}")
    by_action = ", ".join(counts)
    lines = [
        f"The last {_span_in_words(figures.seconds)}:",
        f"  placements               {figures.placements}",
        f"  evictions                {figures.evictions} ({by_action or 'none'})",
        f"  evictions per placement  {figures.evictions_per_placement:.4f}",
        f"  time of {figures.measured_in}:",
        f"    of pods that ran to their end  {figures.share(figures.useful):.1%}",
        f"    of pods that still run         {figures.share(figures.unfinished):.1%}",
        f"    lost to evictions              {figures.share(figures.lost):.1%}",
    ]
    if figures.seconds > LONGEST_WHOLE_SPAN:
        lines.append(_TOO_LONG)
    for gang, times in figures.most_evicted:
        lines.append(f"  evicted in {counted(times, 'session')}: {gang}")
    for found in rests:
        lines.append(f"Session {found.session}: {_in_words(found.rest)}")
    return "\n".join(lines)


def _span_in_words(seconds: float) -> str:
    if seconds < 120:
        return counted(round(seconds), "second")
    return counted(round(seconds / 60), "minute")


def _in_words(rest: Rest) -> str:
    if rest.after is None:
        return f"no rest, evictions {', '.join(map(str, rest.evictions))}"
    sessions = counted(rest.after, "session")
    return f"at rest after {sessions}, {counted(sum(rest.evictions), 'eviction')}"
