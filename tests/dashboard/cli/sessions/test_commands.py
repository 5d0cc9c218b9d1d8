"""vcctl session and vcctl policy."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path

from scheduler.scenarios.files import read_scenarios
from scheduler.scenarios.running import run_scenario
from tests.dashboard.cli.conftest import Type
from tests.worlds import node, run_session


def test_sessions(vcctl: Type):
    assert vcctl("vcctl session view").code == 3
    node("n1", cpu="8", memory="32Gi")
    vcctl("vcctl job run -N train")
    run_session()

    number = vcctl("vcctl session list").rows[0][0]

    seen = vcctl(f"vcctl session view {number}").out
    assert "train-task-0" in seen
    assert "1 pod placed" in seen
    assert "changedRows" not in seen
    assert vcctl("vcctl session view 999999").code == 3


def test_the_parts_of_a_session_add_up(vcctl: Type):
    node("n1", cpu="8", memory="32Gi")
    run_session()

    session = vcctl("vcctl session view -o json").json["status"]
    lines = dict(re.findall(r"^  (\S.*?)\s{2,}(\d+) ms$", vcctl("vcctl session view").out, re.M))
    took = datetime.fromisoformat(session["finishedAt"]) - datetime.fromisoformat(
        session["startedAt"]
    )
    after_the_claim = sum(
        lasted
        for part, lasted in session["durations"].items()
        if part in ("read", "think", "write")
    )

    assert list(lines)[:3] == ["claim", "read", "think"]
    assert list(lines)[-1] == "write"
    assert took / timedelta(milliseconds=1) >= after_the_claim - 1


def test_a_session_is_saved_and_simulated(vcctl: Type, tmp_path: Path):
    node("n1", cpu="8", memory="32Gi")
    vcctl("vcctl job run -N train")
    run_session()
    number = vcctl("vcctl session list").rows[0][0]

    saved = vcctl(f"vcctl session save {number}")
    (scenario,) = read_scenarios(saved.out, "saved")

    assert [bind.node for run in run_scenario(scenario) for bind in run.outcome.binds] == ["n1"]
    missing = vcctl("vcctl session save 999999")
    assert missing.code == 3
    assert "999999" in missing.err


def test_the_policy_is_read_checked_and_replaced(vcctl: Type, tmp_path: Path):
    file = tmp_path / "policy.yaml"
    file.write_text(vcctl("vcctl policy get").out)
    assert vcctl(f"vcctl policy validate {file}").out == "The policy is valid.\n"
    assert vcctl(f"vcctl policy set {file} --yes").out == "policy unchanged\n"

    file.write_text(
        "actions: enqueue, allocate\ntiers: [{plugins: [{name: gang}, {name: proportion}]}]\n"
    )
    assert vcctl(f"vcctl policy set {file} --dry-run").out == "policy would be replaced (dry run)\n"
    assert vcctl(f"vcctl policy set -f {file}").code == 2
    assert vcctl(f"vcctl policy set -f {file} --reason simpler --yes").out == "policy replaced\n"
    assert vcctl("vcctl policy get").out.startswith("actions: enqueue, allocate\n")

    file.write_text("actions: backfill\n")
    idle = vcctl(f"vcctl policy set {file} --dry-run")
    assert "There is no allocate action: no job that asks for resources will start." in idle.err
    assert "Pods placed by the next session: 0 (now " in idle.err
    assert vcctl(f"vcctl policy set {file} --yes").out == "policy replaced\n"

    file.write_text("actions: dance\n")
    refused = vcctl(f"vcctl policy validate {file}")
    assert refused.code == 1
    assert "dance" in refused.err


def test_presets_are_listed_and_chosen(vcctl: Type):
    assert vcctl("vcctl policy presets").out.startswith("fumarole (default, in force)\n  Evicts ")
    dry = vcctl("vcctl policy preset volcano --dry-run")
    assert dry.out == "policy would be replaced (dry run)\n"
    assert vcctl("vcctl policy preset volcano").code == 2  # nobody answers

    chosen = vcctl("vcctl policy preset volcano --yes")
    assert chosen.out == "policy replaced by the preset volcano\n"
    assert vcctl("vcctl policy preset volcano --yes").out == "policy unchanged\n"
    assert "volcano (in force)\n" in vcctl("vcctl policy presets").out

    refused = vcctl("vcctl policy preset best --yes")
    assert refused.code == 1
    assert "There is no preset “best”" in refused.err


def test_a_preset_with_other_times_is_marked(vcctl: Type, tmp_path: Path):
    file = tmp_path / "policy.yaml"
    text = vcctl("vcctl policy get").out
    file.write_text(text.replace("minRunSeconds: 300", "minRunSeconds: 900"))
    vcctl(f"vcctl policy set {file} --yes")

    assert "fumarole (default, in force, with other times)\n" in vcctl("vcctl policy presets").out


def test_the_preset_that_ignores_quotas_is_asked_about(vcctl: Type):
    asked = vcctl("vcctl policy preset bound")

    assert asked.code == 2
    assert "ignores the quotas of all queues" in asked.err
    assert vcctl("vcctl policy preset bound --yes").code == 0


def test_a_cluster_without_another_scheduler_has_nothing_to_compare(vcctl: Type):
    answer = vcctl("vcctl comparison --verdict onlyTheirs --window 1h")

    assert answer.code == 0
    assert "there is nothing to compare" in answer.out + answer.err
    assert vcctl("vcctl comparison").code == 0
    assert vcctl("vcctl comparison --queue default --verdict all -o json").json["items"] == []
