"""The policy of a session as a value: its actions, and its plugins with flags and arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class Flag(StrEnum):
    """The functions of a plugin that can be switched; in the file `enableJobOrder` or
    `enabledJobOrder`.
    """

    JOB_ORDER = "jobOrder"
    TASK_ORDER = "taskOrder"
    QUEUE_ORDER = "queueOrder"
    NODE_ORDER = "nodeOrder"
    JOB_READY = "jobReady"
    JOB_PIPELINED = "jobPipelined"
    JOB_STARVING = "jobStarving"
    JOB_ENQUEUED = "jobEnqueued"  # switches the vote on enqueueing
    PREDICATE = "predicate"
    OVERUSED = "overused"
    ALLOCATABLE = "allocatable"
    PREEMPTABLE = "preemptable"
    RECLAIMABLE = "reclaimable"
    PREEMPTIVE = "preemptive"
    HIERARCHY = "hierarchy"


OFF_UNLESS_NAMED: Final = frozenset({Flag.HIERARCHY})


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """One plugin of a tier.

    `name` is a key of PLUGINS or a dotted path; `flags` holds those that were named, `arguments` as
    written.
    """

    name: str
    flags: Mapping[Flag, bool] = field(default_factory=dict, hash=False)
    arguments: Mapping[str, object] = field(default_factory=dict, hash=False)


Tier = tuple[PluginConfig, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """`configurations` are the arguments of actions by name.

    `unlisted_flags`: whether a flag that is not named is on.
    """

    actions: tuple[str, ...]
    tiers: tuple[Tier, ...]
    configurations: Mapping[str, Mapping[str, object]] = field(default_factory=dict, hash=False)
    unlisted_flags: bool = True

    def plugins(self) -> Iterator[PluginConfig]:
        return (plugin for tier in self.tiers for plugin in tier)

    def enables(self, plugin: PluginConfig, flag: Flag) -> bool:
        """Whether this function of the plugin is on; hierarchy only when named."""
        unlisted = self.unlisted_flags and flag not in OFF_UNLESS_NAMED
        return plugin.flags.get(flag, unlisted)

    def setting(self, action: str, name: str, default: object) -> object:
        return self.configurations.get(action, {}).get(name, default)
