"""vcctl apply, diff and export."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from dashboard.cli.files import apply
from tests.dashboard.cli.conftest import Type

TREE = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: child, labels: {by: git}}
spec: {parent: team, weight: 3}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: team, labels: {by: git}}
spec: {weight: 2}
"""


def test_what_was_exported_changes_nothing_when_applied(vcctl: Type, tmp_path: Path):
    vcctl("vcctl apply -f -", stdin=TREE)
    file = tmp_path / "all.yaml"
    file.write_text(vcctl("vcctl export").out)

    assert [found["metadata"]["name"] for found in yaml.safe_load_all(file.read_text())] == [
        "root",
        "default",
        "team",
        "child",
    ]
    assert vcctl(f"vcctl diff -f {file} --exit-code").out == "Everything is as the files say.\n"
    assert set(vcctl(f"vcctl apply -f {file}").out.split()[1::2]) == {"unchanged"}


def test_all_configuration_is_exported_and_applied_unchanged(vcctl: Type, tmp_path: Path):
    vcctl("vcctl apply -f -", stdin=TREE)
    file = tmp_path / "all.yaml"
    file.write_text(vcctl("vcctl export --all").out)

    kinds = {found["kind"] for found in yaml.safe_load_all(file.read_text())}
    assert {"Queue", "User", "Cluster", "Policy"} <= kinds
    assert set(vcctl(f"vcctl apply -f {file}").out.split()[1::2]) == {"unchanged"}
    assert vcctl("vcctl export --all").out == file.read_text()
    assert vcctl("vcctl export team --all").code == 2


def test_a_folder_is_applied_whole_or_not_at_all(vcctl: Type, tmp_path: Path):
    first, second = TREE.split("---\n")
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / "1.yaml").write_text(first)
    (tmp_path / "q" / "2.yaml").write_text(second.replace("weight: 2", "weight: -1"))
    (tmp_path / "q" / "notes.txt").write_text("not a manifest")

    refused = vcctl(f"vcctl apply -f {tmp_path / 'q'}")

    assert refused.code == 1
    assert "2.yaml, line 4: spec.weight" in refused.err
    assert vcctl("vcctl queue get child").code == 3
    (tmp_path / "q" / "2.yaml").write_text(second)
    assert sorted(vcctl(f"vcctl apply -f {tmp_path / 'q'}").out.splitlines()) == [
        "queue/child created",
        "queue/team created",
    ]


def test_a_difference_is_shown_field_by_field(vcctl: Type):
    vcctl("vcctl apply -f -", stdin=TREE)

    done = vcctl("vcctl diff -f - --exit-code", stdin=TREE.replace("weight: 2", "weight: 5"))

    assert done.code == 1
    assert done.out == "queue/team updated\n- spec.weight: 2\n+ spec.weight: 5\n"
    assert vcctl("vcctl queue get team").rows[0][1] == "2"


def test_a_dry_run_applies_nothing(vcctl: Type):
    assert vcctl("vcctl apply -f - --dry-run", stdin=TREE).out.endswith("(dry run)\n")
    assert vcctl("vcctl queue get team").code == 3


def test_pruning_names_what_goes_and_asks(vcctl: Type, tmp_path: Path):
    vcctl("vcctl apply -f -", stdin=TREE)
    vcctl("vcctl queue create old --label by=git --state Closed")
    file = tmp_path / "tree.yaml"
    file.write_text(TREE)

    asked = vcctl(f"vcctl apply -f {file} --prune by=git", stdin="n\n")
    unasked = vcctl("vcctl apply -f - --prune by=git", stdin=TREE)

    assert (asked.code, unasked.code) == (1, 2)
    assert "queue/old" in asked.err
    assert "queue/old deleted" in vcctl(f"vcctl apply -f {file} --prune by=git --yes").out


def test_what_came_to_wear_the_label_meanwhile_is_not_pruned_unseen(
    vcctl: Type,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    vcctl("vcctl apply -f -", stdin=TREE)
    vcctl("vcctl queue create old --label by=git --state Closed")
    file = tmp_path / "tree.yaml"
    file.write_text(TREE)
    monkeypatch.setattr(
        apply, "confirm", lambda *_: vcctl("vcctl queue create new --label by=git --state Closed")
    )

    refused = vcctl(f"vcctl apply -f {file} --prune by=git")

    assert (refused.code, "are not those that were shown" in refused.err) == (1, True)
    assert vcctl("vcctl queue get old").code == vcctl("vcctl queue get new").code == 0


def test_what_can_not_be_read_is_named(vcctl: Type, tmp_path: Path):
    (tmp_path / "bad.yaml").write_text("a: [1\nb: 2")
    (tmp_path / "empty").mkdir()

    for name, words in (
        ("bad.yaml", "line 2"),
        ("none.yaml", "No such file"),
        ("empty", "has no file"),
    ):
        done = vcctl(f"vcctl apply -f {tmp_path / name}")
        assert done.code == 2
        assert words in done.err
    assert vcctl("vcctl apply").code == 2
    assert vcctl("vcctl apply -f -", stdin="").code == 2
    assert vcctl("vcctl export nowhere").code == 3


EVERY_KIND = """
apiVersion: v1
kind: Namespace
metadata: {name: lab, creationTimestamp: null, uid: 0f6c1b0e-0000-4000-8000-000000000000}
---
apiVersion: v1
kind: Node
metadata: {name: n1, resourceVersion: "77", managedFields: [{manager: kubectl}]}
status: {capacity: {cpu: 8000m, memory: 16Gi, pods: 110}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: team, uid: 0f6c1b0e-0000-4000-8000-000000000000}
spec: {weight: 0, guarantee: {cpu: 1000m}, weigth: 3, affinity: {}}
status: {state: Open, allocated: {cpu: "1"}}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: lab}
spec:
  queue: team
  runningEstimate: 1h
  unheardOf: 1.50
  tasks:
  - topologyPolicy: best-effort
    unheardOf: {}
    template:
      spec:
        restartPolicy: OnFailure
        containers: [{name: main, resources: {requests: {cpu: 1.5, memory: 1024Mi}}}]
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: own, namespace: lab}
spec: {queue: team, minResources: {cpu: 0.5}, subGroupPolicy: [{name: a}]}
---
apiVersion: v1
kind: Pod
metadata: {name: single, namespace: lab, annotations: {scheduling.k8s.io/group-name: own}}
spec: {containers: [{name: main}]}
---
apiVersion: bus.volcano.sh/v1alpha1
kind: Command
action: SuspendQueue
target: {kind: Queue, name: team}
"""


def test_a_file_of_every_kind_changes_nothing_the_second_time(vcctl: Type):
    first = vcctl("vcctl apply -f -", stdin=EVERY_KIND)
    again = vcctl("vcctl apply -f -", stdin=EVERY_KIND)

    assert (first.code, again.code) == (0, 0), first.err + again.err
    assert [line.split()[1] for line in first.out.splitlines()[:7]] == ["created"] * 7
    assert [line.split()[-1] for line in again.out.splitlines()] == ["unchanged"] * 8
