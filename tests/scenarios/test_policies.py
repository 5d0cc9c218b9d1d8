"""A policy file in Volcano's form is read, warned about or refused with the place of
every problem.
"""

import pytest

from scheduler.engine.policy import Flag, PluginConfig, Policy
from scheduler.engine.presets import DEFAULT_POLICY
from scheduler.engine.report.omissions import omissions
from scheduler.scenarios.policies import PolicyError, default_policy_text, read_policy, write_policy

HELM = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""


def policy(plugins: str, actions: str = "enqueue, allocate", more: str = "") -> str:
    return f'actions: "{actions}"\ntiers:\n- plugins:\n{plugins}\n{more}'


def problems(text: str) -> list[str]:
    with pytest.raises(PolicyError) as refusal:
        read_policy(text)
    return [str(problem) for problem in refusal.value.problems]


def test_volcanos_own_file_is_read_as_it_is():
    reading = read_policy(HELM)

    assert reading.warnings == ()
    assert reading.policy.actions == ("enqueue", "allocate", "backfill")
    assert [[plugin.name for plugin in tier] for tier in reading.policy.tiers] == [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"],
    ]
    assert reading.policy.tiers[0][1] == PluginConfig("gang", {Flag.PREEMPTABLE: False})


@pytest.mark.parametrize("spelling", ["enableJobOrder", "enabledJobOrder"])
def test_both_spellings_of_a_flag_are_read(spelling):
    reading = read_policy(policy(f"  - name: gang\n    {spelling}: false"))

    assert reading.policy.tiers[0][0].flags == {Flag.JOB_ORDER: False}


def test_arguments_come_typed():
    text = policy(
        """  - {name: overcommit, arguments: {overcommit-factor: 1.5}}
  - name: capacity
    enableHierarchy: true
    arguments: {ancestorReclaimLevel: "2", fillByWeight: "true", hierarchyViolation: warn}
  - name: binpack
    arguments:
      binpack.weight: 10
      binpack.resources: "nvidia.com/gpu"
      binpack.resources.nvidia.com/gpu: 5
  - {name: sla, arguments: {sla-waiting-time: 1h30m}}"""
    )

    overcommit, capacity, binpack, sla = read_policy(text).policy.tiers[0]

    assert overcommit.arguments == {"overcommit-factor": 1.5}
    assert capacity.arguments == {
        "ancestorReclaimLevel": 2,
        "fillByWeight": True,
        "hierarchyViolation": "warn",
    }
    assert binpack.arguments == {
        "binpack.weight": 10,
        "binpack.resources": "nvidia.com/gpu",
        "binpack.resources.nvidia.com/gpu": 5,
    }
    assert sla.arguments == {"sla-waiting-time": "1h30m"}


def test_settings_of_actions_come_typed():
    text = policy(
        "  - name: gang",
        "reclaim, shed, backfill",
        """configurations:
- name: reclaim
  arguments: {breakGangs: false, strictDeserved: "true", suspendedVictims: allow}
- name: shed
  arguments: {graceSessions: 0}
- name: backfill
  arguments: {beyondDeserved: false}""",
    )

    assert read_policy(text).policy.configurations == {
        "reclaim": {"breakGangs": False, "strictDeserved": True, "suspendedVictims": "allow"},
        "shed": {"graceSessions": 0},
        "backfill": {"beyondDeserved": False},
    }


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param(policy("  - name: tdm"), "tiers[0].plugins[0].name", id="plugin"),
        pytest.param(
            policy("  - {name: gang, enableBestNode: true}"),
            "tiers[0].plugins[0].enableBestNode",
            id="flag",
        ),
        pytest.param(
            policy("  - {name: predicates, arguments: {predicate.GPUSharingEnable: true}}"),
            "tiers[0].plugins[0].arguments.predicate.GPUSharingEnable",
            id="argument",
        ),
        pytest.param(
            policy(
                "  - name: gang",
                more=(
                    "configurations: [{name: preempt, arguments: "
                    "{enableTopologyAwarePreemption: true}}]"
                ),
            ),
            "configurations[0].arguments.enableTopologyAwarePreemption",
            id="setting of an action",
        ),
        pytest.param(
            policy("  - name: gang", more="metrics: {type: prometheus}"), "metrics", id="section"
        ),
        pytest.param(
            policy("  - {name: overcommit, arguments: {overcommit-factor: 0.8}}"),
            "tiers[0].plugins[0].arguments.overcommit-factor",
            id="factor",
        ),
    ],
)
def test_what_volcano_knows_and_we_do_not_use_is_accepted_with_a_warning(text, place):
    reading = read_policy(text)

    assert [warning.place for warning in reading.warnings] == [place]


def test_an_overcommit_factor_below_one_is_read_as_volcanos_default():
    reading = read_policy(policy("  - {name: overcommit, arguments: {overcommit-factor: 0.8}}"))

    assert reading.policy.tiers[0][0].arguments == {"overcommit-factor": 1.2}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param(
            policy("  - name: gang", "enqueue, shuffle"),
            "actions[1]: “shuffle” is not an action",
            id="action",
        ),
        pytest.param(
            policy("  - name: gang", ""), "actions: must name at least one action", id="no action"
        ),
        pytest.param(
            policy("  - name: gangs"),
            "tiers[0].plugins[0].name: “gangs” is not a plugin",
            id="plugin",
        ),
        pytest.param(
            policy("  - enableJobOrder: true"),
            "tiers[0].plugins[0].name: must be given",
            id="nameless plugin",
        ),
        pytest.param(
            policy("  - name: gang\n  - name: gang"),
            "tiers[0].plugins[1].name: the plugin “gang” is listed twice",
            id="plugin twice",
        ),
        pytest.param(
            policy("  - name: nowhere.to.be.Found"),
            "tiers[0].plugins[0].name: “nowhere.to.be.Found” cannot be loaded",
            id="outside plugin",
        ),
        pytest.param(
            policy("  - {name: gang, enableJobOrders: true}"),
            "tiers[0].plugins[0].enableJobOrders: is not a known key",
            id="flag",
        ),
        pytest.param(
            policy("  - {name: gang, jobOrder: true}"),
            "tiers[0].plugins[0].jobOrder: is not a known key",
            id="flag without enable",
        ),
        pytest.param(
            policy("  - {name: gang, enableJobOrder: maybe}"),
            "tiers[0].plugins[0].enableJobOrder: must be true or false",
            id="flag value",
        ),
        pytest.param(
            policy("  - {name: gang, enableJobOrder: true, enabledJobOrder: false}"),
            "tiers[0].plugins[0].enabledJobOrder: is given in both spellings",
            id="both spellings, two values",
        ),
        pytest.param(
            policy("  - {name: gang, arguments: {foo: 1}}"),
            "tiers[0].plugins[0].arguments.foo: is not a known argument",
            id="argument",
        ),
        pytest.param(
            policy("  - {name: capacity, arguments: {hierarchyViolation: panic}}"),
            (
                "tiers[0].plugins[0].arguments.hierarchyViolation: must be one of subtree, "
                "session, warn"
            ),
            id="choice",
        ),
        pytest.param(
            policy("  - {name: capacity, arguments: {ancestorReclaimLevel: -1}}"),
            "tiers[0].plugins[0].arguments.ancestorReclaimLevel: must be between 0 and 100",
            id="range",
        ),
        pytest.param(
            policy("  - {name: overcommit, arguments: {overcommit-factor: .inf}}"),
            "tiers[0].plugins[0].arguments.overcommit-factor: must be a number",
            id="infinite factor",
        ),
        pytest.param(
            policy("  - {name: sla, arguments: {sla-waiting-time: soon}}"),
            "sla-waiting-time: must be a duration",
            id="duration",
        ),
        pytest.param(
            policy(
                "  - name: gang",
                more="configurations: [{name: reclaim, arguments: {breakGang: true}}]",
            ),
            "configurations[0].arguments.breakGang: is not a known argument",
            id="setting",
        ),
        pytest.param(
            policy("  - name: gang", more="configurations: [{name: nap}]"),
            "configurations[0].name: “nap” is not an action",
            id="setting of nothing",
        ),
        pytest.param(
            policy("  - name: gang", more="extra: 1"), "extra: is not a known key", id="section"
        ),
        pytest.param("actions: allocate\ntiers: gang", "tiers: must be a list", id="tiers"),
        pytest.param("- a\n- b", "must be a mapping", id="not a mapping"),
        pytest.param("a: &x 1\nb: *x", "anchors and aliases", id="alias"),
    ],
)
def test_whatever_else_is_unknown_is_refused_with_its_place(text, complaint):
    assert any(complaint in problem for problem in problems(text)), problems(text)


def test_all_problems_are_told_at_once():
    found = problems(
        policy("  - {name: gang, arguments: {foo: 1}}\n  - name: nope", "enqueue, nap")
    )

    assert [problem.split(":")[0] for problem in found] == [
        "actions[1]",
        "tiers[0].plugins[0].arguments.foo",
        "tiers[0].plugins[1].name",
    ]


def test_proportion_and_capacity_together_are_refused_when_both_answer_the_same_question():
    both = "  - {name: proportion}\n  - {name: capacity}"
    only_order = (
        "  - {name: proportion, enableJobEnqueued: false, enableAllocatable: false, "
        "enableReclaimable: false, enablePreemptive: false}\n  - {name: capacity}"
    )

    assert "proportion and capacity both answer enableJobEnqueued" in problems(policy(both))[0]
    assert read_policy(policy(only_order)).policy.tiers[0][1].name == "capacity"


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(DEFAULT_POLICY, id="default"),
        pytest.param(read_policy(HELM).policy, id="helm"),
        pytest.param(
            Policy(
                ("reclaim",),
                ((), (PluginConfig("overcommit", {}, {"overcommit-factor": 1.7}),)),
                {
                    "shed": {"graceSessions": 1},
                    "reclaim": {"suspendedVictims": "allow", "breakGangs": False},
                },
                unlisted_flags=False,
            ),
            id="everything",
        ),
    ],
)
def test_a_policy_written_and_read_again_is_the_same(written):
    assert read_policy(write_policy(written)).policy == written


def test_the_default_policy_has_a_text():
    assert default_policy_text().startswith(
        "actions: enqueue, allocate, preempt, reclaim, shed, backfill\n"
    )


class TestOmissions:
    @pytest.mark.parametrize(
        ("text", "codes"),
        [
            (
                "actions: backfill\ntiers: [{plugins: [{name: priority}]}]",
                ["no_allocate", "no_gang", "no_queue_plugin", "no_predicates"],
            ),
            (
                (
                    "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: capacity}, "
                    "{name: predicates}]}]"
                ),
                [],
            ),
            (
                "actions: allocate\ntiers: [{plugins: [{name: capacity}, {name: predicates}]}]",
                ["no_gang"],
            ),
            (
                "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: proportion}]}]",
                ["no_predicates"],
            ),
            (
                (
                    "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: drf}, {name: "
                    "predicates}]}]"
                ),
                ["no_queue_plugin"],
            ),
            (
                (
                    "actions: allocate\ntiers: [{plugins: [{name: gang, enableJobReady: "
                    "false}, {name: capacity}, {name: predicates}]}]"
                ),
                ["no_gang"],
            ),
        ],
        ids=[
            "starts nothing",
            "all there",
            "no gang",
            "no predicates",
            "no queue plugin",
            "gang switched off",
        ],
    )
    def test_what_a_policy_leaves_out_is_named(self, text: str, codes: list[str]):
        assert [omission.code for omission in omissions(read_policy(text).policy)] == codes

    def test_the_built_in_policy_leaves_nothing_out(self):
        assert omissions(DEFAULT_POLICY) == ()

    def test_only_without_allocate_nothing_starts(self):
        stops = {
            omission.code
            for omission in omissions(read_policy("actions: enqueue\ntiers: []").policy)
            if omission.stops
        }

        assert stops == {"no_allocate"}
