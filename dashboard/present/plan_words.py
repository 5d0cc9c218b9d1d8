"""What stands against a planned change, told to one reader.

The texts were written for all readers alike, and can name queues and plans of other tenants.
"""

from __future__ import annotations

from dashboard.http.visibility import NOT_TOLD
from scheduler.models import ChangePlan, Occurrence
from scheduler.selectors.accounts.hidden_names import HiddenNames


def problems_for_reader(plan: ChangePlan, hidden: HiddenNames) -> list[dict[str, object]]:
    """What is foreseen, as it is stored."""
    problems = []
    for problem in plan.outlook:
        message = problem["message"]
        if hidden.occur_in(message):
            message = NOT_TOLD
        problems.append({**problem, "message": message})
    return problems


def message_for_reader(turn: Occurrence, hidden: HiddenNames) -> str:
    """Why it was not done, or what became of it."""
    if hidden.occur_in(turn.message):
        return NOT_TOLD
    return turn.message
