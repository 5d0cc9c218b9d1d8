"""vcctl changes plan and what belongs to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from scheduler.models import Occurrence
from scheduler.services.change_sets.calendar import keep_calendar
from tests.dashboard.cli.conftest import Type


def later(**time: float) -> str:
    return f"{datetime.now(UTC) + timedelta(**time):%Y-%m-%dT%H:%M}"


@pytest.fixture
def number(vcctl: Type, tmp_path: Path) -> str:
    vcctl("vcctl queue create a --weight 2")
    file = tmp_path / "set.yaml"
    file.write_text("kind: Queue\nmetadata: {name: a}\nspec: {weight: 5}\n")
    made = vcctl(f"vcctl changes create Weekend -f {file} -o json").json
    return str(made["metadata"]["name"])


def test_a_plan_from_its_begin_to_its_end(vcctl: Type, number: str):
    times = f"--begin {later(days=1)} --end {later(days=1, hours=2)} --weekly"
    assert vcctl(f"vcctl changes plan {number} {times} --dry-run").code == 0
    assert "plan" in vcctl(f"vcctl changes plan {number} {times}").out
    (plan,) = vcctl("vcctl changes plans").rows
    assert plan[1:3] == ["Weekend", "Active"]

    vcctl("vcctl queue update a --weight 3")
    Occurrence.objects.update(begins_at=datetime.now(UTC))
    keep_calendar()

    (turn,) = vcctl("vcctl changes turns --state BeginConflict").rows
    assert "spec.weight from 2 to 3" in vcctl("vcctl changes turns").out
    assert vcctl(f"vcctl changes resolve {turn[0]}").code == 2  # nobody answers the question
    assert vcctl(f"vcctl changes resolve {turn[0]} --yes").code == 0
    assert vcctl("vcctl queue get a -o json").json["spec"]["weight"] == 5
    assert vcctl(f"vcctl changes unplan {plan[0]} --yes").code == 0
    assert vcctl("vcctl queue get a -o json").json["spec"]["weight"] == 3


def test_a_turn_is_skipped_and_wrong_times_are_told(vcctl: Type, number: str):
    refused = vcctl(f"vcctl changes plan {number} --begin soon")
    assert refused.code == 1
    assert "“soon” is not a time" in refused.err
    past = vcctl(f"vcctl changes plan {number} --begin 2020-11-20T18:00")
    assert "It would begin at 2020-11-20 18:00 UTC, which has passed (--begin)." in past.err
    nowhere = vcctl(f"vcctl changes plan {number} --begin {later(days=1)} --zone Mars/Base")
    assert "(--zone)" in nowhere.err
    assert vcctl("vcctl changes plan x --begin 2026-11-20T18:00").code == 3
    vcctl(f"vcctl changes plan {number} --begin {later(days=1)}")

    (turn,) = vcctl("vcctl changes turns").rows
    assert vcctl(f"vcctl changes skip {turn[0]}").code == 0

    assert vcctl(f"vcctl changes show {number}").out.startswith("Weekend (Draft)")
