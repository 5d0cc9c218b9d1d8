"""Why a pod was evicted, in words."""

from __future__ import annotations

import pytest

from scheduler.domain.evictions import RULES, EvictionRule, event_words, eviction_words, rule_words

GPU = "nvidia.com/gpu"
TAKER = {"queue": "language", "before": 16000, "after": 24000, "due": 32000, "dueIs": "deserved"}
LOSER = {"queue": "vision", "before": 40000, "after": 32000, "due": 32000, "dueIs": "deserved"}
BETWEEN_QUEUES = {"rule": "Deserved", "resource": GPU, "taker": TAKER, "loser": LOSER}


def everybody(name: str) -> str:
    return name


def test_an_eviction_names_its_rule_both_queues_and_the_choice():
    grounds = {**BETWEEN_QUEUES, "possible": 5, "chosen": 1, "hasTriedAll": True}

    assert eviction_words("reclaim", grounds, everybody) == (
        "Reclaim: a queue that stays within its deserved takes from one that stays at or above "
        "its own. "
        "language goes from 16 to 24 nvidia.com/gpu; it deserves 32. "
        "vision goes from 40 to 32 nvidia.com/gpu; it deserves 32. "
        "1 of 5 possible victims was evicted: every set was looked at, and no other loses less "
        "work."
    )


def test_a_choice_among_many_says_that_each_victim_is_needed():
    grounds = {**BETWEEN_QUEUES, "possible": 120, "chosen": 3, "hasTriedAll": False}

    words = eviction_words("reclaim", grounds, everybody)

    assert words.endswith(
        "3 of 120 possible victims were evicted: without any one of them the gang would not fit."
    )


def test_a_guarantee_is_named():
    taker = {**TAKER, "dueIs": "guarantee"}

    words = eviction_words("reclaim", {**BETWEEN_QUEUES, "taker": taker}, everybody)

    assert "language goes from 16 to 24 nvidia.com/gpu; it is guaranteed 32." in words


def test_of_a_queue_that_the_reader_may_not_know_nothing_is_said():
    words = eviction_words("reclaim", BETWEEN_QUEUES, lambda name: name.replace("language", ""))

    assert "language" not in words
    assert "24" not in words
    assert "vision goes from 40 to 32" in words


def test_an_event_does_not_name_the_other_queue():
    words = event_words("reclaim", BETWEEN_QUEUES)

    assert "vision goes from 40 to 32 nvidia.com/gpu; it deserves 32." in words
    assert "language" not in words


def test_inside_one_queue_the_priorities_are_told():
    grounds = {"rule": "Priority", "priority": 100, "victimPriority": -5}

    assert eviction_words("preempt", grounds, everybody) == (
        "Preempt: in one queue, a higher priority goes first. Priority 100 goes before -5."
    )


def test_a_record_without_a_rule_is_told_by_its_action():
    assert eviction_words("reclaim", {}, everybody) == (
        "Reclaim: its queue gave back what it had borrowed."
    )
    assert rule_words("") == ""


@pytest.mark.parametrize("rule", list(EvictionRule))
def test_every_rule_has_words(rule: EvictionRule):
    assert rule_words(rule.value) == RULES[rule]
