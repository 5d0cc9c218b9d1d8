"""Whatever a policy can name, and every reason a session can give, has a scenario: this fails for
one that was added without.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import replace

import pytest

from scheduler.domain.reasons import ReasonCode
from scheduler.domain.workloads import Phase
from scheduler.engine.actions import ACTIONS
from scheduler.engine.dispatch import POINTS
from scheduler.engine.plugin import Plugin
from scheduler.engine.plugins import PLUGINS
from scheduler.engine.policy import Flag
from scheduler.scenarios.vocabulary import ARGUMENTS, SETTINGS
from tests.engine import test_future_places
from tests.engine.actions import test_backfill, test_reclaim, test_shed
from tests.engine.builders import (
    CAPACITY,
    PROPORTION,
    binds,
    cluster,
    evicted,
    job,
    node,
    phase,
    queue,
    run,
    waiting,
    with_actions,
)
from tests.engine.eviction import test_waits, test_whole_gangs, test_worth
from tests.engine.plugins import (
    test_capacity,
    test_capacity_tree,
    test_flags,
    test_node_scores,
    test_overcommit,
    test_sla,
)
from tests.engine.report import test_explain, test_held_back, test_lacking_room, test_too_large
from tests.engine.state import test_reserved_guarantees

ELSEWHERE = {
    "proportion reclaimable": (
        test_flags.test_proportion_reclaimable_protects_a_queue_within_its_share
    )
}

TRIED = {
    "overcommit-factor": test_overcommit.test_the_overcommit_factor_says_how_much_more_is_let_in,
    "sla-waiting-time": test_sla.test_the_waiting_time_of_sla_lets_a_job_in,
    "hierarchyViolation": (
        test_capacity_tree.test_a_broken_rule_of_the_tree_stops_what_the_policy_says
    ),
    "fillByWeight": test_capacity_tree.test_weights_alone_make_a_tree_that_reclaims,
    "ancestorReclaimLevel": test_reclaim.test_e14b_the_reclaim_level_asks_ancestors_of_the_victim,
    "breakGangs": test_reclaim.test_e15_without_breaking_gangs_the_guarantee_has_to_wait,
    "strictDeserved": test_reclaim.test_e20_strictly_no_queue_falls_below_its_deserved,
    "suspendedVictims": (
        test_reclaim.test_pods_of_a_suspended_queue_are_protected_unless_the_policy_says_otherwise
    ),
    "admission": (
        test_capacity.test_a_large_gang_that_waits_keeps_nobody_out_unless_the_policy_says_so
    ),
    "scarcity.weight": test_node_scores.test_the_weight_of_scarcity_moves_the_pod,
    "setAside": test_future_places.test_only_what_ends_in_time_is_put_where_a_gang_will_start,
    "reserveGuarantees": (
        test_reserved_guarantees.test_a_gang_within_its_due_leaves_free_what_another_queue_is_guaranteed
    ),
    "wholeGangs": test_whole_gangs.test_a_gang_goes_whole_or_keeps_its_minimum,
    "waitSeconds": test_waits.test_nothing_is_evicted_for_a_gang_that_has_just_come,
    "shortRunWaitSeconds": (test_waits.test_a_gang_that_does_less_work_than_is_lost_takes_nothing),
    "waitPercent": test_waits.test_the_longer_pods_have_run_the_longer_a_gang_waits,
    "gainPercent": test_worth.test_reclaim_must_gain_as_much_more_than_it_loses_as_the_policy_says,
    "patiencePercent": test_whole_gangs.test_a_gang_that_runs_for_long_waits_longer_for_its_place,
    "minRunSeconds": (
        test_whole_gangs.test_who_has_just_started_is_left_in_peace_and_longer_each_time
    ),
    "patienceSeconds": test_whole_gangs.test_a_gang_that_will_have_room_soon_makes_nobody_go,
    "graceSessions": test_shed.test_shed_waits_for_its_grace,
    "beyondDeserved": (
        test_backfill.test_backfill_goes_beyond_deserved_unless_the_policy_says_otherwise
    ),
    **dict.fromkeys(
        test_node_scores.NODE_ARGUMENTS,
        test_node_scores.test_an_argument_of_nodeorder_moves_the_pod,
    ),
    **dict.fromkeys(
        test_node_scores.BINPACK_ARGUMENTS,
        test_node_scores.test_an_argument_of_binpack_moves_the_pod,
    ),
}


def _answers(plugin: type[Plugin], point: str) -> bool:
    return getattr(plugin, point) is not getattr(Plugin, point)


def test_every_flag_of_every_plugin_has_a_scenario():
    """A flag of a plugin is one that switches a question on which the plugin has a word."""
    pairs = {
        f"{name} {flag.value}"
        for name, plugin in PLUGINS.items()
        for point, flag in POINTS.items()
        if flag and _answers(plugin, point)
    }

    assert pairs | {f"capacity {Flag.HIERARCHY.value}"} == set(test_flags.FLAGS) | set(ELSEWHERE)


def _without(policy, plugin):
    return replace(
        policy,
        tiers=tuple(tuple(item for item in tier if item.name != plugin) for tier in policy.tiers),
    )


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_policy_without_the_plugin_comes_out_differently(plugin):
    cases = [case for name, case in test_flags.FLAGS.items() if name.startswith(f"{plugin} ")]

    assert any(
        observe(run(snapshot, _without(policy, plugin))) != on
        for policy, _, _, snapshot, observe, on, _ in cases
    )


def test_every_argument_and_setting_has_a_scenario():
    named = {name for group in (*ARGUMENTS.values(), *SETTINGS.values()) for name in group}
    tried = {re.sub(r"(?<=^binpack\.resources\.).*", "*", name) for name in TRIED}

    assert named == tried


def _crowd(**high):
    """A full node: q1 runs a job of two and one of low priority; q2 asks for its share, and q1 for
    more.
    """
    return cluster(
        nodes=[node("n1", cpu=4, pods=5)],
        queues=[queue("q1", deserved=2), queue("q2", deserved=2)],
        jobs=[
            job("low", "q1", tasks=4, min=0, cpu=1, on="n1"),
            job("new", high.pop("queue"), cpu=1, **high),
        ],
    )


def _starving():
    """Two of three run, the queue has what it deserves, and this is so for long."""
    part = job(
        "part",
        "q1",
        tasks=3,
        cpu=1,
        on=["n1", "n1", ""],
        starving_since=0,
        phase=Phase.RUNNING,
    )
    return cluster(nodes=[node("n1", cpu=2)], queues=[queue("q1")], jobs=[part], session=9)


SCENES = {
    "enqueue": (
        CAPACITY,
        _crowd(queue="q2", phase=Phase.PENDING, min_resources=9),
        lambda outcome: phase(outcome, "new"),
    ),
    "allocate": (
        CAPACITY,
        cluster(nodes=[node("n1")], queues=[queue("q1")], jobs=[job("new", "q1", cpu=1)]),
        binds,
    ),
    "preempt": (CAPACITY, _crowd(queue="q1", priority=5), waiting),
    "reclaim": (CAPACITY, _crowd(queue="q2"), evicted),
    "shed": (PROPORTION, _starving(), evicted),
    "backfill": (
        CAPACITY,
        cluster(nodes=[node("n1")], queues=[queue("q1")], jobs=[job("new", "q1")]),
        binds,
    ),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_a_policy_without_the_action_comes_out_differently(action):
    policy, snapshot, observe = SCENES[action]
    others = " ".join(name for name in policy.actions if name != action)

    assert observe(run(snapshot, policy)) != observe(run(snapshot, with_actions(policy, others)))


WITHOUT_FIGURES = {
    ReasonCode.SCHEDULING_PAUSED,
    ReasonCode.QUEUE_NOT_FOUND,
    ReasonCode.AWAITING_EVALUATION,
}
"""What there is to say is in the code."""
IN_WORDS = {ReasonCode.ON_HOLD, ReasonCode.NOT_PERMITTED, ReasonCode.HIERARCHY_INVALID}
"""The figures are somebody's words, and the test has the whole sentence."""


TESTS_OF_REASONS = (test_explain, test_held_back, test_lacking_room, test_too_large)


def sources_of_tests() -> list[str]:
    """Of the tests that are about reasons."""
    sources = []
    for module in TESTS_OF_REASONS:
        for name, test in vars(module).items():
            if name.startswith("test_"):
                sources.append(inspect.getsource(test))
    return sources


@pytest.mark.parametrize("code", ReasonCode)
def test_every_reason_has_a_scenario_with_its_figures(code):
    about = [text for text in sources_of_tests() if f"ReasonCode.{code.name}" in text]

    assert about
    assert code in WITHOUT_FIGURES | IN_WORDS or any("figures" in text for text in about)
