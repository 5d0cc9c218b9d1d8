"""What stands against a planned change, told to one reader.

The texts were written for all readers alike, and can name queues and plans of other tenants.
"""

from __future__ import annotations

from dashboard.http.visibility import NOT_TOLD
from scheduler.models import ChangePlan, Occurrence
from scheduler.selectors.accounts.hidden_names import HiddenNames


def told_problems(plan: ChangePlan, hidden: HiddenNames) -> list[dict[str, object]]:
    """What is foreseen, as it is stored."""
    told = []
    for problem in plan.outlook:
        message = problem["message"]
        if hidden.occur_in(message):
            message = NOT_TOLD
        told.append({**problem, "message": message})
    return told


def told_message(turn: Occurrence, hidden: HiddenNames) -> str:
    """Why it was not done, or what became of it."""
    if hidden.occur_in(turn.message):
        return NOT_TOLD
    return turn.message
