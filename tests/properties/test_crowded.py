"""Several sessions in a row on full clusters: the order of the file does not matter, and things
come to rest.
"""

from __future__ import annotations

import json
from random import Random

import pytest

from scheduler.scenarios.files import read_scenarios
from scheduler.scenarios.running import run_scenario
from tests.properties.crowded import PROPORTION, crowded

POLICIES = {"default policy": None, "proportion": PROPORTION}
SEEDS = (0, 3, 9, 12, 14, 17, 19, 24, 27, 38)  # in these somebody has to go


def outcomes(scenario, sessions):
    (read,) = read_scenarios(json.dumps(scenario), "made up")
    return [session.outcome for session in run_scenario(read, sessions)]


def shuffled(scenario, seed):
    random = Random(seed)
    return {
        key: random.sample(value, len(value)) if isinstance(value, list) else value
        for key, value in scenario.items()
    }


def decided(outcome):
    """All that a session says, in an order that does not come from the file."""
    return {
        "binds": sorted((bind.pod, bind.node, bind.borrowed) for bind in outcome.binds),
        "evictions": [
            (eviction.pod, eviction.beneficiary, eviction.action, eviction.level)
            for eviction in outcome.evictions
        ],
        "reservations": [(kept.pod, kept.node, kept.expires) for kept in outcome.reservations],
        "phases": dict(outcome.phases),
        "reasons": {
            name: (reason.code, reason.message, reason.checks)
            for name, reason in outcome.reasons.items()
        },
        "queues": dict(outcome.queues),
        "events": [(event.reason, event.name, event.message) for event in outcome.events],
    }


@pytest.mark.parametrize("conf", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_of_the_file_changes_nothing_in_any_session(seed, conf):
    scenario = crowded(seed, conf)

    told = [decided(outcome) for outcome in outcomes(scenario, 5)]

    assert [decided(outcome) for outcome in outcomes(shuffled(scenario, seed), 5)] == told


@pytest.mark.parametrize("conf", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_few_sessions_nobody_has_to_go_any_more_and_whom_it_was_for_has_started(seed, conf):
    sessions = outcomes(crowded(seed, conf), 8)

    wanted = {eviction.beneficiary for outcome in sessions for eviction in outcome.evictions} - {""}
    assert not [eviction for outcome in sessions[5:] for eviction in outcome.evictions]
    assert wanted <= {bind.podgroup for outcome in sessions for bind in outcome.binds}


def test_the_clusters_are_crowded_enough_to_be_worth_it():
    """Reclaim, preempt and shed all have something to do in them."""
    actions = {
        eviction.action
        for seed in SEEDS
        for conf in POLICIES.values()
        for eviction in outcomes(crowded(seed, conf), 1)[0].evictions
    }

    assert actions == {"preempt", "reclaim", "shed"}
