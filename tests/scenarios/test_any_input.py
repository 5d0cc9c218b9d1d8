"""Whatever a file holds, it is read or refused in one sentence; nothing else rises."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.scenarios.files import ScenarioError, read_scenarios
from scheduler.scenarios.policies import PolicyError, read_policy

KEYS = st.sampled_from(
    [
        "name",
        "conf",
        "actions",
        "tiers",
        "plugins",
        "arguments",
        "configurations",
        "nodes",
        "queues",
        "podgroups",
        "pods",
        "steps",
        "add",
        "allocatable",
        "requests",
        "cpu",
        "memory",
        "parent",
        "weight",
        "state",
        "guarantee",
        "phase",
        "node",
        "minMember",
        "tolerations",
        "affinity",
        "nodeAffinity",
        "nodeSelector",
        "taints",
        "key",
        "reservation",
        "until",
        "creationTimestamp",
        "enableJobOrder",
        "cases",
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 2**70)
    | st.sampled_from(["", "a", "1Gi", "-1", "NaN", "gang", "allocate", "root", "Open", "x" * 300])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
_SETTINGS = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def scenarios_or_refusal(text: str):
    try:
        return read_scenarios(text, "any"), ""
    except ScenarioError as refusal:
        return [], str(refusal)


def policy_or_problems(text: str):
    try:
        return read_policy(text).policy, ()
    except PolicyError as refusal:
        return None, refusal.problems


@_SETTINGS
@given(VALUES)
def test_a_scenario_of_any_shape_is_read_or_refused(value):
    scenarios, refusal = scenarios_or_refusal(json.dumps(value))

    assert bool(scenarios) != refusal.startswith("any: ")
    assert "\n" not in refusal
    assert all(scenario.cluster.snapshot() for scenario in scenarios)


@_SETTINGS
@given(VALUES | st.text(max_size=60))
def test_a_policy_of_any_shape_is_read_or_refused(value):
    policy, problems = policy_or_problems(value if isinstance(value, str) else json.dumps(value))

    assert (policy is None) == bool(problems)
    assert policy is None or policy.actions
