"""Policies by name: which there are, which one is in force, and what their settings mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from scheduler.admission.violations import Rejected, Violation
from scheduler.engine.presets import (
    ABOUT_PRESETS,
    DEFAULT_PRESET,
    PRESETS,
    preset_of,
    preset_with_other_times,
)
from scheduler.models import ClusterState
from scheduler.scenarios.meanings import SETTINGS_OF_PRESETS, Setting
from scheduler.scenarios.policies import write_policy
from scheduler.services.sessions.policies import policy_in_force

PRESET_NAMES: Final = tuple(PRESETS)


@dataclass(frozen=True, slots=True)
class Preset:
    """`is_current`: the policy in force is equal to it.

    `is_current_but_for_times`: it differs in times alone.
    """

    name: str
    about: str
    text: str
    is_default: bool
    is_current: bool
    is_current_but_for_times: bool

    def value_of(self, setting: Setting) -> object:
        return setting.value_in(PRESETS[self.name])


@dataclass(frozen=True, slots=True)
class SettingValues:
    """What a setting is under the policy in force, and under each preset."""

    setting: Setting
    in_force: object
    of_presets: Mapping[str, object]


def preset_in_force(state: ClusterState) -> str:
    """The preset that the policy in force is equal to; empty if it is none."""
    return preset_of(policy_in_force(state))


def preset_with_other_times_in_force(state: ClusterState) -> str:
    """The preset that the policy in force differs from in times alone; empty if there is none."""
    return preset_with_other_times(policy_in_force(state))


def preset_text(name: str) -> str:
    """The policy of this name, ready to be applied. Raises `Rejected`."""
    if name not in PRESETS:
        message = f"There is no preset “{name}”."
        fix = f"choose one of {', '.join(PRESETS)}"
        raise Rejected([Violation("unknown_preset", "", "spec.preset", message, fix)])
    return write_policy(PRESETS[name])


def all_presets(state: ClusterState) -> list[Preset]:
    current = preset_in_force(state)
    nearly = preset_with_other_times_in_force(state)
    presets: list[Preset] = []
    for name in PRESETS:
        presets.append(
            Preset(
                name=name,
                about=ABOUT_PRESETS[name],
                text=preset_text(name),
                is_default=name == DEFAULT_PRESET,
                is_current=name == current,
                is_current_but_for_times=name == nearly,
            )
        )
    return presets


def setting_values(state: ClusterState) -> list[SettingValues]:
    """The settings that the presets differ in."""
    policy = policy_in_force(state)
    values: list[SettingValues] = []
    for setting in SETTINGS_OF_PRESETS:
        of_presets = {}
        for name, preset in PRESETS.items():
            of_presets[name] = setting.value_in(preset)
        values.append(
            SettingValues(
                setting=setting,
                in_force=setting.value_in(policy),
                of_presets=of_presets,
            )
        )
    return values
