"""The policy and its presets over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import worlds
from tests.dashboard.api.conftest import Caller
from tests.worlds import run_session

pytestmark = pytest.mark.django_db


POLICY = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: proportion\n'


def test_the_policy_is_checked_and_replaced_as_a_whole(admin: Caller):
    before = admin.get("policy/")
    assert before["status"]["isDefault"] is True
    wrong = admin.post("policy/validate/", {"spec": {"policy": POLICY.replace("gang", "gnag")}})
    assert (wrong["valid"], wrong["violations"][0]["field"]) == (False, "tiers[0].plugins[0].name")
    admin.put("policy/", {"spec": {"policy": POLICY.replace("gang", "gnag")}}, expect=400)
    admin.put("policy/?dry_run=true", {"spec": {"policy": POLICY}})
    assert admin.get("policy/") == before

    replaced = admin.ask(
        "PUT",
        "policy/",
        text=POLICY,
        content_type="application/yaml",
        expect=200,
        **{"If-Match": '"0"'},
    )
    assert (replaced["spec"]["policy"], replaced["status"]["author"]) == (POLICY, "boss")
    late = admin.put("policy/", {"spec": {"policy": POLICY}}, expect=412, **{"If-Match": '"0"'})
    assert late["changed"]["by"] == "boss"
    run_session()


IDLE = "actions: backfill\ntiers: [{plugins: [{name: priority}]}]\n"


def test_a_policy_that_starts_nothing_is_applied_only_if_that_is_confirmed(admin: Caller):
    worlds.node("n1", cpu="8")
    worlds.job("fresh", cpu="2")
    before = admin.get("policy/")

    tried = admin.put("policy/?dry_run=true", {"spec": {"policy": IDLE}})
    assert [warning["code"] for warning in tried["warnings"]] == [
        "no_allocate",
        "no_gang",
        "no_queue_plugin",
        "no_predicates",
    ]
    assert (tried["effect"]["now"]["placed"], tried["effect"]["then"]["placed"]) == (1, 0)
    assert tried["effect"]["noLonger"] == ["default/fresh"]
    refused = admin.put("policy/", {"spec": {"policy": IDLE}}, expect=409)
    assert refused["violations"][0]["ruleId"] == "policy_starts_nothing"
    assert "confirm=true" in refused["violations"][0]["fix"]
    assert admin.get("policy/") == before

    applied = admin.put("policy/?confirm=true", {"spec": {"policy": IDLE}})
    assert applied["status"]["warnings"][0].startswith("actions: There is no allocate action")


def test_a_preset_with_other_times_is_told_as_such(admin: Caller):
    text = admin.get("policy/")["spec"]["policy"]
    slower = text.replace("minRunSeconds: 300", "minRunSeconds: 900")
    assert slower != text

    status = admin.put("policy/", {"spec": {"policy": slower}})["status"]

    assert (status["preset"], status["presetWithOtherTimes"]) == ("", "fumarole")
    listed = admin.get("policy/presets/")["presets"]
    assert [one["name"] for one in listed if one["inForceWithOtherTimes"]] == ["fumarole"]
    assert not any(one["inForce"] for one in listed)


def test_a_preset_is_chosen_by_name_and_named_while_it_is_in_force(admin: Caller):
    assert admin.get("policy/")["status"]["preset"] == "fumarole"

    tried = admin.put("policy/?dry_run=true", {"spec": {"preset": "volcano"}})
    assert (tried["changed"], tried["effect"]["waiting"]) == (True, 0)
    assert admin.get("policy/")["status"]["preset"] == "fumarole"

    chosen = admin.put("policy/", {"spec": {"preset": "volcano"}, "reason": "as before"})
    assert (chosen["status"]["preset"], chosen["status"]["reason"]) == ("volcano", "as before")
    listed = admin.get("policy/presets/")["presets"]
    assert [preset["name"] for preset in listed if preset["inForce"]] == ["volcano"]
    assert [preset["name"] for preset in listed if preset["isDefault"]] == ["fumarole"]

    admin.put("policy/", {"spec": {"policy": POLICY}})
    assert admin.get("policy/")["status"]["preset"] == ""
    admin.put("policy/", {"preset": "fumarole"})
    assert admin.get("policy/")["status"]["preset"] == "fumarole"


def test_presets_say_what_their_settings_mean(admin: Caller):
    fumarole, volcano, _ = admin.get("policy/presets/")["presets"]

    def values(preset: dict[str, Any]) -> dict[tuple[str, str], Any]:
        return {
            (setting["owner"], setting["name"]): setting["value"] for setting in preset["settings"]
        }

    assert values(fumarole)["reclaim", "minRunSeconds"] == 300
    assert values(volcano)["reclaim", "minRunSeconds"] == 0
    assert values(volcano)["scarcity", "scarcity.weight"] is None
    assert all(setting["meaning"] for setting in fumarole["settings"])


def test_the_preset_that_ignores_quotas_needs_a_confirmation(admin: Caller):
    refused = admin.put("policy/", {"spec": {"preset": "bound"}}, expect=409)
    assert refused["violations"][0]["ruleId"] == "policy_ignores_quotas"
    assert admin.get("policy/")["status"]["preset"] == "fumarole"

    admin.put("policy/?confirm=true", {"spec": {"preset": "bound"}})
    assert admin.get("policy/")["status"]["preset"] == "bound"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"spec": {"preset": "best"}}, "There is no preset “best”."),
        ({"spec": {"preset": "volcano", "policy": POLICY}}, "the name of a preset"),
        ({"spec": {"preset": 7}}, "the name of a preset"),
    ],
    ids=["unknown", "preset and text", "no name"],
)
def test_a_preset_that_is_none_is_refused(admin: Caller, body: dict[str, Any], words: str):
    assert words in json.dumps(admin.put("policy/", body, expect=400), ensure_ascii=False)
