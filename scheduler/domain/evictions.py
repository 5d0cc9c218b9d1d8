"""Why pods were evicted, in words: the one place that says it, for events, timelines and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from scheduler.domain.plans import counted
from scheduler.domain.resources import format_quantity

WHY: Final = {
    "shed": "what was left of its gang could not run, and gave its room back",
    "reclaim": "its queue gave back what it had borrowed",
    "preempt": "the other one has a higher priority",
}


class EvictionRule(StrEnum):
    """What allowed an eviction."""

    GUARANTEE = "Guarantee"
    DESERVED = "Deserved"
    OVERUSED = "Overused"
    PRIORITY = "Priority"
    BROKEN_GANG = "BrokenGang"


RULES: Final = {
    EvictionRule.GUARANTEE: "a queue takes back what it is guaranteed",
    EvictionRule.DESERVED: (
        "a queue that stays within its deserved takes from one that stays at or above its own"
    ),
    EvictionRule.OVERUSED: "a queue below its deserved takes from one that has more than its own",
    EvictionRule.PRIORITY: "in one queue, a higher priority goes first",
    EvictionRule.BROKEN_GANG: "a gang that is short of its minimum gives the rest back",
}
"""Each as the rule that it is."""

RULE_OF_ACTION: Final = {
    "reclaim": EvictionRule.OVERUSED,
    "preempt": EvictionRule.PRIORITY,
    "shed": EvictionRule.BROKEN_GANG,
}
"""Of an action that decides pod by pod, as Volcano does."""

Grounds = Mapping[str, Any]
"""What is stored with an eviction: `engine.decisions.Grounds` as a dictionary."""
NameOf = Callable[[str], str]
"""A queue's name as the reader may know it; "" if they may not."""


def why_evicted(action: str) -> str:
    """By the action that evicted it; one that is not known speaks for itself."""
    return WHY.get(action, action)


def rule_words(rule: str) -> str:
    """ "" of evictions that were recorded before rules were."""
    if rule not in RULES:
        return ""
    return RULES[EvictionRule(rule)]


def eviction_words(action: str, grounds: Grounds, name_of: NameOf) -> str:
    """The rule, what both queues had before and after, and how the victims were chosen.

    Of a queue that the reader may not know nothing is said.
    """
    rule = rule_words(grounds.get("rule", "")) or why_evicted(action)
    sentences = [f"{action.capitalize()}: {rule}."]
    for side in ("taker", "loser"):
        holding = grounds.get(side)
        if holding and name_of(holding["queue"]):
            sentences.append(_holding_words(grounds["resource"], holding))
    sentences.append(_priority_words(grounds))
    sentences.append(_choice_words(grounds))
    return " ".join(sentence for sentence in sentences if sentence)


def event_words(action: str, grounds: Grounds) -> str:
    """For an event, which all read who may see the victim: the other queue is not named."""
    loser = grounds.get("loser") or {}
    own = loser.get("queue", "")
    return eviction_words(action, grounds, lambda name: name if name == own else "")


def _holding_words(resource: str, holding: Mapping[str, Any]) -> str:
    """ "vision goes from 40 to 32 nvidia.com/gpu; it deserves 32." """
    before = format_quantity(resource, int(holding["before"]))
    after = format_quantity(resource, int(holding["after"]))
    due = format_quantity(resource, int(holding["due"]))
    claim = "deserves"
    if holding["dueIs"] == "guarantee":
        claim = "is guaranteed"
    return f"{holding['queue']} goes from {before} to {after} {resource}; it {claim} {due}."


def _priority_words(grounds: Grounds) -> str:
    if grounds.get("rule") != EvictionRule.PRIORITY or "priority" not in grounds:
        return ""
    return f"Priority {grounds['priority']} goes before {grounds['victimPriority']}."


def _choice_words(grounds: Grounds) -> str:
    """That no smaller set would have done, and how that is known."""
    possible = grounds.get("possible", 0)
    if not possible:
        return ""
    chosen = grounds["chosen"]
    verb = "was" if chosen == 1 else "were"
    evicted = f"{chosen} of {counted(possible, 'possible victim')} {verb} evicted"
    if grounds["hasTriedAll"]:
        return f"{evicted}: every set was looked at, and no other loses less work."
    return f"{evicted}: without any one of them the gang would not fit."
