"""Volcano's own test scenarios come out as they expect, but for those that a decided point
overrides.
"""

import pytest

from tests.conformance.cases import SCHEDULING, differences, load, run, scheduling_cases
from tests.conformance.comparing import unmet

CASES = scheduling_cases()
OVERRIDDEN = differences()["scheduling"]
NOT_RUNNABLE = differences()["notRunnable"]
SHARES = SCHEDULING / "unit" / "plugin-capacity_Test_updateQueueAttrShare.json"
RUNNABLE = {
    name: case
    for name, case in CASES.items()
    if name not in NOT_RUNNABLE and "probe" not in case and "testPlugins" not in case
}


def complaints(case):
    runs = run(case)
    expectations = (
        [step["expect"] for step in case["steps"]] if "steps" in case else [case["expect"]]
    )
    assert len(runs) == len(expectations)
    return [
        problem
        for expect, each in zip(expectations, runs, strict=True)
        for problem in unmet(expect, case.get("relaxed", {}), each.outcome)
    ]


@pytest.mark.parametrize("name", sorted(set(RUNNABLE) - set(OVERRIDDEN)))
def test_a_case_comes_out_as_volcano_expects(name):
    assert complaints(RUNNABLE[name]) == []


def test_cases_that_a_decision_overrides_do_come_out_otherwise():
    assert [name for name in OVERRIDDEN if not complaints(RUNNABLE[name])] == []


def test_every_case_is_run_probed_or_listed_with_its_reason():
    probed = {name for name, case in CASES.items() if "probe" in case or "testPlugins" in case}

    assert set(RUNNABLE) | probed | set(NOT_RUNNABLE) == set(CASES)
    assert not {name for name in NOT_RUNNABLE if CASES[name]["core"]}, "a core case must be run"
    assert {path.name for path in (SCHEDULING / "unit").glob("*.json")} == {SHARES.name}
    assert all(NOT_RUNNABLE.values())


@pytest.mark.parametrize("case", load(SHARES), ids=lambda case: case["name"])
def test_the_share_of_a_queue_is_volcanos(case):
    scenario = {
        "name": "share",
        "conf": {"actions": [], "tiers": [[{"name": "capacity"}]]},
        "nodes": [{"name": "n1", "allocatable": {"cpu": "100", "memory": "100Gi"}}],
        "queues": [{"name": "q", "deserved": case["deserved"]}],
        "podgroups": [{"name": "g", "queue": "q", "phase": "Running"}],
        "pods": [
            {
                "name": "p",
                "podgroup": "g",
                "node": "n1",
                "phase": "Running",
                "requests": case["allocated"],
            }
        ],
    }

    (session,) = run(scenario)

    assert session.outcome.queues["q"].share == case["expect"]["share"]
