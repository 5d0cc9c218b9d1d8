"""vcctl window."""

from __future__ import annotations

from pathlib import Path

from tests.dashboard.cli.conftest import Type

FILE = """
kind: Queue
metadata: {name: a}
spec: {weight: 5}
"""


def test_a_window_in_a_terminal_from_begin_to_end(vcctl: Type, tmp_path: Path):
    vcctl("vcctl queue create team")
    vcctl("vcctl queue create a --parent team --weight 2")
    file = tmp_path / "set.yaml"
    file.write_text(FILE)
    assert vcctl("vcctl window begin team").code == 2  # nobody answers the question

    begun = vcctl("vcctl window begin team --reason quotas --yes -o json").json
    number = begun["metadata"]["name"]
    changes = begun["spec"]["changeSet"]
    shown = vcctl(f"vcctl window show {number}").out
    assert "team (Open)" in shown
    assert f"vcctl changes add {changes} -f FILE" in shown
    vcctl(f"vcctl changes add {changes} -f {file}")
    assert "(dry run)" in vcctl(f"vcctl window apply {number} --dry-run").out
    assert vcctl(f"vcctl window apply {number}").code == 2
    assert "vcctl window resume" in vcctl(f"vcctl window apply {number} --yes").out
    assert vcctl("vcctl queue get a -o json").json["spec"]["weight"] == 5
    assert "a draft again" in vcctl(f"vcctl window revert {number} --yes").out
    assert vcctl("vcctl queue get a -o json").json["spec"]["weight"] == 2
    vcctl(f"vcctl window apply {number} --yes")
    assert vcctl(f"vcctl window resume {number}").code == 0

    assert [row[2] for row in vcctl("vcctl window list").rows] == ["Finished"]
    assert vcctl("vcctl queue get team -o json").json["status"]["state"] == "Open"
    assert vcctl(f"vcctl window suspend {number}").code == 0
    assert "Reverted" in vcctl(f"vcctl window abandon {number} --yes").out
    assert vcctl("vcctl queue get a -o json").json["spec"]["weight"] == 2
    assert vcctl("vcctl window show 99").code == 3


def test_what_others_did_is_said(vcctl: Type):
    vcctl("vcctl queue create team")
    number = vcctl("vcctl window begin team --yes -o json").json["metadata"]["name"]
    vcctl("vcctl queue resume team")

    shown = vcctl(f"vcctl window show {number}")

    assert "team is no longer suspended" in shown.err
    assert f"vcctl window suspend {number}" in shown.out
