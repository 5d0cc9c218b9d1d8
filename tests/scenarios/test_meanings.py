"""Every setting of a policy has its meaning in words, and in the docs."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.engine.presets import PRESETS
from scheduler.scenarios.meanings import ALL_SETTINGS, SETTINGS_OF_PRESETS, Setting
from scheduler.scenarios.vocabulary import ARGUMENTS, SETTINGS

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "policies.md"


def test_whatever_a_policy_can_set_is_explained_and_nothing_else():
    known = {
        (owner, name) for table in (SETTINGS, ARGUMENTS) for owner in table for name in table[owner]
    }

    assert {(setting.owner, setting.name) for setting in ALL_SETTINGS} == known


def test_every_difference_between_presets_is_among_the_settings_that_pages_show():
    shown = {(setting.owner, setting.name) for setting in SETTINGS_OF_PRESETS}
    fumarole = PRESETS["fumarole"]
    volcano = PRESETS["volcano"]

    for setting in ALL_SETTINGS:
        values = (setting.value_in(fumarole), setting.value_in(volcano))
        if None not in values and values[0] != values[1]:
            assert (setting.owner, setting.name) in shown


@pytest.mark.parametrize(
    "setting", ALL_SETTINGS, ids=lambda setting: f"{setting.owner} {setting.name}"
)
def test_the_docs_give_each_meaning(setting: Setting):
    rows = [
        line
        for line in PAGE.read_text().splitlines()
        if line.startswith(f"| {setting.owner} | `{setting.name}` |")
    ]

    assert len(rows) == 1
    assert rows[0].endswith(f"| {setting.meaning} |")


@pytest.mark.parametrize(
    "setting", SETTINGS_OF_PRESETS, ids=lambda setting: f"{setting.owner} {setting.name}"
)
def test_the_docs_give_the_values_of_the_presets(setting: Setting):
    values = [_value_text(setting.value_in(PRESETS[name])) for name in ("fumarole", "volcano")]

    assert f"| {setting.owner} | `{setting.name}` | {' | '.join(values)} |" in PAGE.read_text()


def _value_text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def test_a_setting_that_is_not_given_has_its_default_and_one_left_out_has_none():
    settings = {(setting.owner, setting.name): setting for setting in ALL_SETTINGS}

    assert settings["shed", "graceSessions"].value_in(PRESETS["volcano"]) == 3
    assert settings["shed", "graceSessions"].value_in(PRESETS["bound"]) is None
    assert settings["scarcity", "scarcity.weight"].value_in(PRESETS["fumarole"]) == 10
