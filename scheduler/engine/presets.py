"""Policies by name, for who does not want to write one: `simulate --policy NAME` compares them."""

from __future__ import annotations

from typing import Final

from scheduler.engine.policy import DEFAULT_POLICY, Flag, PluginConfig, Policy

FUMAROLE: Final = Policy(
    actions=("enqueue", "allocate", "preempt", "reclaim", "shed", "backfill"),
    tiers=(
        (PluginConfig("priority"), PluginConfig("gang"), PluginConfig("conformance")),
        (
            PluginConfig("drf"),
            PluginConfig("predicates"),
            PluginConfig(
                "capacity", {Flag.HIERARCHY: True}, {"fillByWeight": True, "admission": "possible"}
            ),
            PluginConfig("scarcity"),
            PluginConfig("nodeorder", {}, {"leastrequested.weight": 0}),
            PluginConfig("binpack"),
        ),
    ),
    configurations={
        "allocate": {"setAside": 8},
        "preempt": {"wholeGangs": True, "minRunSeconds": 300},
        "reclaim": {"wholeGangs": True, "minRunSeconds": 300, "patienceSeconds": 600},
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

PRESETS: Final = {
    "default": DEFAULT_POLICY,
    "fumarole": FUMAROLE,
    "volcano": DEFAULT_POLICY,
    "bound": BOUND,
}
"""`volcano` follows Volcano's rules with all of its actions; it is what `default` stands for at
present.
"""
