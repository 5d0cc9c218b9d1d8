"""vcctl job and vcctl pod: from the first submit to the last delete."""

from __future__ import annotations

from pathlib import Path

from scheduler.models import Job
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
        "spec: {queue: default, minAvailable: 1, tasks: [{name: t, replicas: 2, template: "
        "{spec: {containers: [{name: c}]}}}]}\n"
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


def test_a_job_is_taken_as_its_name_is_written(vcctl: Type):
    vcctl("vcctl job run -N train -n team")
    written = vcctl("vcctl job list -A -o name").out.strip()
    assert written == "job/team/train"

    for command in ("explain", "view", "suspend", "resume"):
        assert vcctl(f"vcctl job {command} {written}").code == 0
    assert vcctl("vcctl job view -N job/team/train").code == 0
    assert vcctl(f"vcctl job delete {written} --yes").out == "job/team/train deleted\n"


def test_a_namespace_may_be_called_job(vcctl: Type):
    vcctl("vcctl job run -N train -n job")

    assert vcctl("vcctl job view job/train").code == 0
    assert vcctl("vcctl job view job/job/train").code == 0


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


def test_the_checks_of_a_waiting_job_are_written_as_people_write_amounts(vcctl: Type):
    node("n1", cpu="2500m", memory="16Gi")
    vcctl("vcctl job run --name large -R cpu=500m,memory=20Gi")
    run_session()

    told = vcctl("vcctl job explain large").out

    lines = [line.split() for line in told.splitlines()]
    assert any("20Gi" in line and "16Gi" in line for line in lines)
    assert str(20 * 2**30) not in told
