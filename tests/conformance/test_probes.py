"""Cases that ask a question of the scheduler's insides, or bring a plugin of their own."""

import json

import pytest

from scheduler.engine import open_session
from scheduler.engine.actions.backfill import _in_order, best_effort_pods
from scheduler.engine.plugin import Vote
from scheduler.scenarios.files import read_scenarios
from tests.conformance.cases import differences, run, scheduling_cases
from tests.conformance.comparing import unmet
from tests.conformance.plugins import PATHS

CASES = scheduling_cases()
WITH_PLUGINS = {
    name: case
    for name, case in CASES.items()
    if "testPlugins" in case and name not in differences()["notRunnable"]
}
ENQUEUEABLE = {
    name: case for name, case in CASES.items() if "jobEnqueueable" in case.get("expect", {})
}
BACKFILL = {name: case for name, case in CASES.items() if "backfillOrder" in case.get("expect", {})}


def opened(case):
    """A session before its first action."""
    (scenario,) = read_scenarios(
        json.dumps({key: value for key, value in case.items() if key != "probe"}), case["name"]
    )
    return open_session(scenario.cluster.snapshot(), scenario.policy)


@pytest.mark.parametrize("name", sorted(WITH_PLUGINS))
def test_a_plugin_from_outside_takes_part(name):
    case = WITH_PLUGINS[name]
    tiers = [
        [{**plugin, "name": PATHS.get(plugin["name"], plugin["name"])} for plugin in tier]
        for tier in case["conf"]["tiers"]
    ]

    (session,) = run({**case, "conf": {**case["conf"], "tiers": tiers}})

    assert unmet(case["expect"], {}, session.outcome) == []
    assert session.outcome.phases["ns1/pgA"].label == "Pending"


@pytest.mark.parametrize("name", sorted(ENQUEUEABLE))
def test_overcommit_lets_in_what_the_stretched_cluster_could_hold(name):
    case = ENQUEUEABLE[name]
    session = opened(case)
    overcommit = session.plugin("overcommit")
    jobs = [session.gang(row) for row in range(len(session.snapshot.groups))]

    for job in jobs:
        overcommit.job_enqueued(job)

    assert {job.key: overcommit.job_enqueueable(job) is Vote.PERMIT for job in jobs} == case[
        "expect"
    ]["jobEnqueueable"]


@pytest.mark.parametrize("name", sorted(BACKFILL))
def test_backfill_tries_pods_in_the_order_of_jobs_and_tasks(name):
    session = opened(BACKFILL[name])

    tried = [
        session.snapshot.pods.key[pod]
        for job in _in_order(session, best_effort=True)
        for pod in best_effort_pods(session, job)
    ]

    assert tried == BACKFILL[name]["expect"]["backfillOrder"]


def test_every_probe_and_every_plugin_case_is_here_or_listed_with_its_reason():
    asked = {name for name, case in CASES.items() if "probe" in case or "testPlugins" in case}

    assert asked == {*WITH_PLUGINS, *ENQUEUEABLE, *BACKFILL} | (
        asked & set(differences()["notRunnable"])
    )
