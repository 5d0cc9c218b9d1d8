"""vcctl does what its options say, and speaks of its own options.

Without a role on root it shows what there is to see.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from dashboard.cli.advice import option_for, sentence
from dashboard.cli.jobs.read import PHASES
from scheduler.models import Job
from scheduler.models.workload import JOB_PHASES
from tests.dashboard.cli.conftest import Type

FILE = """
kind: Job
metadata: {name: train, namespace: lab}
spec:
  queue: team-a
  tasks:
  - name: w
    replicas: 1
    template:
      spec:
        containers: [{name: c, image: busybox, resources: {requests: {cpu: 1}}}]
"""


@pytest.fixture
def teams(vcctl: Type) -> Type:
    for line in ("create team-a", "create team-b", "create ml --parent team-a"):
        assert vcctl(f"vcctl queue {line}").code == 0
    return vcctl


class TestWithoutARoleOnRoot:
    @pytest.fixture
    def ann(
        self,
        teams: Type,
        new_token: Callable[..., str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> Type:
        monkeypatch.setenv("VCCTL_TOKEN", new_token("ann", role="viewer", queue="team-a"))
        return teams

    def test_the_tree_is_what_may_be_seen(self, ann: Type):
        tree = ann("vcctl queue tree")

        assert tree.code == 0, tree.err
        assert "team-a" in tree.out
        assert "ml" in tree.out
        assert "team-b" not in tree.out
        assert ann("vcctl queue tree -o json").json["metadata"]["name"] == "team-a"
        assert ann("vcctl queue tree -o name").out.split() == ["queue/team-a", "queue/ml"]

    def test_the_export_is_what_may_be_seen(self, ann: Type):
        documents = list(yaml.safe_load_all(ann("vcctl export").out))

        assert [document["metadata"]["name"] for document in documents] == ["team-a", "ml"]
        assert [item["metadata"]["name"] for item in ann("vcctl export -o json").json["items"]] == [
            "team-a",
            "ml",
        ]

    def test_several_parts_of_the_tree_are_shown_one_after_the_other(self, ann: Type):
        from scheduler.services.accounts.actors import SYSTEM
        from scheduler.services.accounts.grants import grant_role

        grant_role(user="ann", role="viewer", queue="team-b", by=SYSTEM)

        assert ann("vcctl queue tree -o name").out.split() == [
            "queue/team-a",
            "queue/ml",
            "queue/team-b",
        ]
        assert [
            tree["metadata"]["name"] for tree in ann("vcctl queue tree -o json").json["items"]
        ] == ["team-a", "team-b"]
        documents = list(yaml.safe_load_all(ann("vcctl export").out))
        assert [document["metadata"]["name"] for document in documents] == [
            "team-a",
            "ml",
            "team-b",
        ]

    def test_who_may_see_nothing_is_told_what_to_do(
        self,
        vcctl: Type,
        new_token: Callable[..., str],
        monkeypatch: pytest.MonkeyPatch,
    ):
        from scheduler.models import Grant

        monkeypatch.setenv("VCCTL_TOKEN", new_token("eve", role="viewer", queue="default"))
        Grant.objects.all().delete()

        for line in ("vcctl queue tree", "vcctl export"):
            done = vcctl(line)
            assert (done.code, done.out) != (0, "")
            assert "role" in done.err


class TestAFileWithOptions:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        path = tmp_path / "job.yaml"
        path.write_text(FILE)
        return path

    def test_the_queue_that_is_said_counts(self, teams: Type, file: Path):
        done = teams(f"vcctl job run -f {file} -q team-b")

        assert done.code == 0, done.err
        assert Job.objects.get(name="train").queue.name == "team-b"

    def test_so_do_name_namespace_scheduler_and_priority_class(self, teams: Type, file: Path):
        teams('vcctl api post priorityclasses/ -d "{metadata: {name: high}, value: 10}"')

        done = teams(
            f"vcctl job run -f {file} -N other -n place -S volcano --priority-class high -q team-b"
        )

        assert done.code == 0, done.err
        job = Job.objects.get()
        assert (job.namespace, job.name, job.priority_class, job.queue.name) == (
            "place",
            "other",
            "high",
            "team-b",
        )

    def test_what_the_file_says_stands_where_nothing_is_said(self, teams: Type, file: Path):
        teams("vcctl queue delete ml --close-first --yes")

        done = teams(f"vcctl job run -f {file}")

        assert done.code == 0, done.err
        assert str(Job.objects.get()) == "lab/train"
        assert Job.objects.get().queue.name == "team-a"

    @pytest.mark.parametrize(
        "option", ["--image nginx", "--replicas 3", "--min 2", "--requests cpu=2", "--limits cpu=2"]
    )
    def test_what_cannot_be_obeyed_is_refused(self, teams: Type, file: Path, option: str):
        done = teams(f"vcctl job run -f {file} {option}")

        assert done.code == 2
        assert option.split(maxsplit=1)[0] in done.err
        assert not Job.objects.exists()

    def test_a_name_for_several_jobs_is_refused(self, teams: Type, file: Path):
        file.write_text(f"{FILE}\n---\n{FILE.replace('train', 'second')}")

        assert teams(f"vcctl job run -f {file} --name one").code == 2
        assert not Job.objects.exists()


class TestAdvice:
    def test_to_delete_names_its_own_options(self, teams: Type):
        done = teams("vcctl queue delete team-a --yes")

        assert "--cascade" in done.err
        assert "--close-first" in done.err
        assert "cascade=true" not in done.err

    @pytest.mark.parametrize(
        ("line", "option"),
        [
            ("vcctl queue create x --weight 70000", "--weight"),
            ("vcctl queue create x --parent nowhere", "--parent"),
            ("vcctl queue create x --deserved cpu=many", "--deserved"),
            ("vcctl job run --name x --queue nowhere", "--queue"),
            ("vcctl queue list --state Foo", "--state"),
            ("vcctl queue list -l 'a=b=c'", "--selector"),
            ("vcctl job list --phase Nope", "--phase"),
            ("vcctl job watch x --until Nope", "--until"),
            ("vcctl audit --from yesterday", "--from"),
        ],
    )
    def test_names_the_option_and_no_field_of_the_api(self, teams: Type, line: str, option: str):
        done = teams(line)

        assert done.code != 0
        assert option in done.err
        assert "spec." not in done.err
        assert "(label)" not in done.err

    def test_of_what_stands_in_a_file_names_the_field(self, teams: Type, tmp_path: Path):
        path = tmp_path / "job.yaml"
        path.write_text(
            json.dumps(
                {
                    "kind": "Job",
                    "metadata": {"name": "x"},
                    "spec": {"queue": "nowhere", "tasks": []},
                }
            )
        )

        assert "--queue" not in teams(f"vcctl job run -f {path}").err

    def test_labels_that_are_not_are_selected(self, teams: Type):
        teams("vcctl queue update team-a --label team=a")

        found = teams("vcctl queue list -l team!=a -o name").out.split()

        assert "queue/team-a" not in found
        assert "queue/team-b" in found


def test_the_phases_of_the_command_line_are_those_of_jobs():
    assert PHASES == JOB_PHASES


@pytest.mark.parametrize(
    ("field", "option"),
    [
        ("spec.weight", "--weight"),
        ("spec.dequeueStrategy", "--dequeue-strategy"),
        ("spec.guarantee.resource.nvidia.com/gpu", "--guarantee"),
        ("spec.tasks[0].template.spec.containers[0].resources.requests.cpu", "--requests"),
        ("spec.minAvailable", "--min"),
        ("metadata.labels", "--label"),
        ("status.state", ""),
        ("", ""),
    ],
)
def test_an_option_is_found_by_its_field(field: str, option: str):
    options = {"--weight", "--dequeue-strategy", "--guarantee", "--requests", "--min", "--label"}

    assert option_for(field, options) == option


@pytest.mark.parametrize(
    ("field", "message", "told"),
    [
        ("end", "The end is not after the begin.", "The end is not after the begin (--end)."),
        ("begin", "begin must be a text.", "--begin must be a text."),
        ("lastDate", "A day before lastDate.", "A day before --last-date."),
    ],
)
def test_a_field_that_is_also_a_plain_word_is_exchanged_only_in_front(
    field: str, message: str, told: str
):
    options = {"--begin", "--end", "--last-date"}

    assert sentence({"message": message, "field": field}, options) == told


def test_without_an_option_the_field_is_named():
    assert (
        sentence({"message": "It is 0.", "field": "spec.weight", "fix": "write 1"})
        == "It is 0 (spec.weight). Fix: write 1."
    )
