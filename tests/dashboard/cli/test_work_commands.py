"""vcctl job, pod, node, session, policy, pause, and Volcano's short programs."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path

from scheduler.models import Job
from scheduler.scenarios.files import read_scenarios
from scheduler.scenarios.running import run_scenario
from tests.dashboard.cli.conftest import Type
from tests.worlds import node, run_session

_COLUMNS = [
    "Name",
    "Creation",
    "Phase",
    "JobType",
    "Replicas",
    "Min",
    "Pending",
    "Running",
    "Succeeded",
    "Failed",
    "Unknown",
    "RetryCount",
]


def test_a_job_from_flags(vcctl: Type):
    vcctl("vcctl queue create q")

    done = vcctl(
        "vcctl job run -N train -n default -q q -i pytorch -r 4 -m 3 -R cpu=2,memory=1Gi -o json"
    )

    assert done.code == 0
    spec = done.json["spec"]
    assert (spec["queue"], spec["minAvailable"], spec["tasks"][0]["replicas"]) == ("q", 3, 4)
    container = spec["tasks"][0]["template"]["spec"]["containers"][0]
    assert container["image"] == "pytorch"
    assert container["resources"]["requests"] == {"cpu": "2", "memory": "1Gi"}
    listed = vcctl("vcctl job list")
    assert listed.out.splitlines()[0].split() == _COLUMNS
    assert listed.rows[0][0] == "train"
    assert listed.rows[0][2:6] == ["Pending", "Batch", "4", "3"]


def test_a_job_from_a_file(vcctl: Type, tmp_path: Path):
    file = tmp_path / "job.yaml"
    file.write_text(
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: two}\n"
        "spec: {queue: default, minAvailable: 1, tasks: [{name: t, replicas: 2, template: {spec: {containers: [{name: c}]}}}]}\n"
    )

    assert vcctl(f"vcctl job run -f {file}").out == "job/default/two created\n"
    assert vcctl("vcctl job run -f /nowhere.yaml").code == 2
    file.write_text("apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\n")
    assert "vcctl apply" in vcctl(f"vcctl job run -f {file}").err


def test_a_closed_queue_takes_no_job(vcctl: Type):
    vcctl("vcctl queue create q --state Closed")

    refused = vcctl("vcctl job run -N train -q q")

    assert refused.code == 1
    assert "q" in refused.err
    assert not Job.objects.exists()


def test_the_life_of_a_job(vcctl: Type):
    node("n1", cpu="8", memory="32Gi")
    vcctl("vcctl job run --name train")
    run_session()

    assert "does not wait" not in vcctl("vcctl job explain train").out
    assert "train-task-0" in vcctl("vcctl pod list --job train").out
    assert vcctl("vcctl job view train").out.startswith("Name:             train\n")
    assert vcctl("vcctl job suspend train").code == 0
    assert vcctl("vcctl job list").rows[0][2] in ("Aborting", "Aborted")
    asked = vcctl("vcctl job cancel train", stdin="n\n")
    assert (asked.code, "Cancel default/train, which is Abort" in asked.err) == (1, True)
    assert vcctl("vcctl job cancel default/train --yes").code == 0


def test_a_job_that_lives_is_ended_before_it_is_deleted(vcctl: Type):
    vcctl("vcctl job run --name train")

    assert "would be deleted" in vcctl("vcctl job delete train --dry-run").out
    assert vcctl("vcctl job delete train").code == 2
    assert vcctl("vcctl job delete -N train --yes").out == "job/default/train deleted\n"
    assert vcctl("vcctl job view train").code == 3


def test_names_of_jobs_are_needed(vcctl: Type):
    for verb in ("view", "suspend", "resume", "restart", "cancel", "delete", "explain", "watch"):
        done = vcctl(f"vcctl job {verb}")
        assert (done.code, done.out) == (2, "")
        assert "--name" in done.err


def test_jobs_of_all_namespaces_and_of_one_queue(vcctl: Type):
    vcctl("vcctl queue create q")
    vcctl("vcctl job run -N one -q q")
    vcctl("vcctl job run -N two")

    assert vcctl("vcctl job list -A -q q").rows[0][:2] == ["default", "one"]
    assert vcctl("vcctl job list --selector tw -o name").out == "job/default/two\n"
    assert vcctl("vcctl job list -n elsewhere").out == "No resources found\n"
    mismatch = vcctl("vcctl pod list -j two -q q")
    assert mismatch.code == 2
    assert "default" in mismatch.err


def test_nodes(vcctl: Type):
    node("n1", cpu="8", memory="32Gi")

    assert vcctl("vcctl node cordon n1").code == 0
    assert vcctl("vcctl node list").rows[0][:2] == ["n1", "Cordoned"]
    assert vcctl("vcctl node uncordon n1").code == 0
    assert vcctl("vcctl node drain n1 --dry-run").code == 0
    assert vcctl("vcctl node drain n1").code == 2
    assert vcctl("vcctl node list").rows[0][1] == "Ready"
    assert vcctl("vcctl node drain n1 --yes").code == 0
    assert vcctl("vcctl node cordon n2").code == 3
    assert vcctl("vcctl node cordon").code == 2


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


def test_pause_and_unpause(vcctl: Type):
    assert vcctl('vcctl pause --reason "moving the racks"').out == "Scheduling is paused.\n"
    assert "already" in vcctl("vcctl pause").out
    assert vcctl("vcctl unpause").out == "Scheduling is resumed.\n"


def test_volcanos_short_programs(vcctl: Type):
    vcctl("vcctl queue create q")

    assert vcctl("vsub -n train -N default -q q").out == "job/default/train created\n"
    assert vcctl("vjobs -q q").rows[0][0] == "train"
    assert vcctl("vqueues -n q").out.splitlines()[0].split() == [
        "Name",
        "Weight",
        "State",
        "Inqueue",
        "Pending",
        "Running",
        "Unknown",
    ]
    assert vcctl("vqueues").rows[1][0] == "q"
    assert vcctl("vsuspend -n train").code == 0
    assert vcctl("vresume -n train").code == 0
    assert vcctl("vcancel -n train --yes").out == "job/default/train deleted\n"
    assert vcctl("vcancel").code == 2
