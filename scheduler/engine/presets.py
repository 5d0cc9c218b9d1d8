"""Policies by name, for everybody who does not want to write one.

One of them is the default.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from scheduler.engine.policy import Flag, PluginConfig, Policy

FUMAROLE: Final = Policy(
    actions=("enqueue", "allocate", "preempt", "reclaim", "shed", "backfill"),
    tiers=(
        (PluginConfig("priority"), PluginConfig("gang"), PluginConfig("conformance")),
        (
            PluginConfig("drf"),
            PluginConfig("predicates"),
            PluginConfig(
                "capacity",
                {Flag.HIERARCHY: True},
                {"fillByWeight": True, "admission": "possible", "reserveGuarantees": True},
            ),
            PluginConfig("scarcity"),
            PluginConfig("nodeorder", {}, {"leastrequested.weight": 0}),
            PluginConfig("binpack"),
        ),
    ),
    configurations={
        "allocate": {"setAside": 8},
        "preempt": {
            "wholeGangs": True,
            "minRunSeconds": 300,
            "patienceSeconds": 600,
            "gainPercent": 200,
        },
        "reclaim": {
            "wholeGangs": True,
            "minRunSeconds": 300,
            "patienceSeconds": 600,
            "patiencePercent": 10,
            "shortRunWaitSeconds": 3600,
            "gainPercent": 200,
        },
    },
)
"""Whole gangs, nobody evicted for nothing, places in the future for large gangs, devices kept for
who needs them.
"""

BOUND: Final = Policy(
    actions=("allocate",),
    tiers=(
        (
            PluginConfig("priority"),
            PluginConfig("gang"),
            PluginConfig("predicates"),
            PluginConfig(
                "binpack",
                {},
                {"binpack.resources": "nvidia.com/gpu", "binpack.resources.nvidia.com/gpu": 1},
            ),
        ),
    ),
)
"""Gangs and packing alone, no quotas: what a cluster can do at most that owes nobody anything.

A yardstick, not for use.
"""

VOLCANO: Final = Policy(
    actions=("enqueue", "allocate", "preempt", "reclaim", "shed", "backfill"),
    tiers=(
        (PluginConfig("priority"), PluginConfig("gang"), PluginConfig("conformance")),
        (
            PluginConfig("overcommit"),
            PluginConfig("drf"),
            PluginConfig("predicates"),
            PluginConfig("capacity", {Flag.HIERARCHY: True}, {"fillByWeight": True}),
            PluginConfig("nodeorder", {}, {"leastrequested.weight": 0}),
            PluginConfig("binpack"),
        ),
    ),
)
"""Volcano's rules with all of its actions: weights or quotas in a tree, packed nodes."""

PRESETS: Final = {"fumarole": FUMAROLE, "volcano": VOLCANO, "bound": BOUND}
ABOUT_PRESETS: Final = {
    "fumarole": (
        "Evicts whole gangs or members beyond the minimum, only for queues below their deserved, "
        "and spares pods that have just started. Sets nodes aside for large gangs."
    ),
    "volcano": (
        "Volcano's own rules, with all of its actions. Reclaim may evict parts of gangs, and the "
        "same gang again and again."
    ),
    "bound": (
        "A yardstick for simulations: gangs and packing alone. It ignores all quotas of queues, "
        "and evicts nothing."
    ),
}

_TIMES: Final = (
    "waitSeconds",
    "waitPercent",
    "shortRunWaitSeconds",
    "minRunSeconds",
    "patienceSeconds",
    "patiencePercent",
)

DEFAULT_PRESET: Final = "fumarole"
DEFAULT_POLICY: Final = PRESETS[DEFAULT_PRESET]
"""What runs when nobody says otherwise."""


def preset_of(policy: Policy) -> str:
    """The name of the preset that this policy is equal to; empty if there is none."""
    for name, preset in PRESETS.items():
        if preset == policy:
            return name
    return ""


def preset_with_other_times(policy: Policy) -> str:
    """The preset that this policy differs from in times alone; empty if there is none."""
    for name, preset in PRESETS.items():
        if preset != policy and without_times(preset) == without_times(policy):
            return name
    return ""


def without_times(policy: Policy) -> Policy:
    """The same policy, but nothing waits and nothing is spared for a while."""
    configurations = {}
    for action, settings in policy.configurations.items():
        configurations[action] = {
            name: value for name, value in settings.items() if name not in _TIMES
        }
    return replace(policy, configurations=configurations)
