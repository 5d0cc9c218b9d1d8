"""vcctl changes."""

from __future__ import annotations

from pathlib import Path

from tests.dashboard.cli.conftest import Type

FILE = """
kind: Queue
metadata: {name: a}
spec: {weight: 5}
---
kind: Queue
metadata: {name: b}
"""


def test_a_change_set_from_a_file_to_its_end(vcctl: Type, tmp_path: Path):
    vcctl("vcctl queue create a --weight 2")
    file = tmp_path / "set.yaml"
    file.write_text(FILE)

    made = vcctl(f"vcctl changes create Friday -f {file} -o json").json
    number = made["metadata"]["name"]

    shown = vcctl(f"vcctl changes show {number}").out
    assert "- spec.weight: 2" in shown
    assert "+ spec.weight: 5" in shown
    assert "queue/b created" in shown
    assert "It can be applied." in shown
    assert "queue/b created" in vcctl(f"vcctl changes diff {number}").out
    assert vcctl(f"vcctl changes apply {number} --dry-run").code == 0
    assert vcctl(f"vcctl changes apply {number}").code == 2  # nobody answers the question
    applied = vcctl(f"vcctl changes apply {number} --yes").out
    assert "Applied “Friday”: 1 queue created, 1 queue changed." in applied
    assert vcctl("vcctl queue get a -o json").json["spec"]["weight"] == 5

    back = vcctl(f"vcctl changes revert {number} -o json").json["metadata"]["name"]
    vcctl(f"vcctl changes apply {back} --yes")
    assert vcctl("vcctl queue get a -o json").json["spec"]["weight"] == 2
    assert vcctl("vcctl queue get b").code == 3
    assert [row[0] for row in vcctl("vcctl changes list").rows] == [back, number]


def test_a_conflict_is_told_and_brought_up_to_date(vcctl: Type, tmp_path: Path):
    vcctl("vcctl queue create a --weight 2")
    file = tmp_path / "set.yaml"
    file.write_text(FILE)
    number = vcctl("vcctl changes create Friday -o json").json["metadata"]["name"]
    vcctl(f"vcctl changes add {number} -f {file}")
    vcctl("vcctl queue update a --weight 3")

    refused = vcctl(f"vcctl changes apply {number} --yes")
    assert refused.code != 0
    assert "spec.weight from 2 to 3" in refused.err
    assert vcctl(f"vcctl changes refresh {number}").code == 0
    assert vcctl(f"vcctl changes apply {number} --yes").code == 0


def test_a_draft_is_discarded(vcctl: Type):
    number = vcctl("vcctl changes create empty -o json").json["metadata"]["name"]

    assert "discarded" in vcctl(f"vcctl changes discard {number}").out
    assert vcctl(f"vcctl changes apply {number} --yes").code != 0
    assert vcctl("vcctl changes show 999999").code == 3


def test_an_entry_of_the_audit_log_is_undone(vcctl: Type):
    vcctl("vcctl queue create a --weight 2")
    vcctl("vcctl queue update a --weight 3")
    entry = vcctl("vcctl audit --action UpdateQueue -o wide").rows[0][-1]

    made = vcctl(f"vcctl changes undo {entry} -o json").json

    assert vcctl(f"vcctl changes apply {made['metadata']['name']} --yes").code == 0
    assert vcctl("vcctl queue get a -o json").json["spec"]["weight"] == 2
    assert vcctl("vcctl changes undo 999999").code == 3
