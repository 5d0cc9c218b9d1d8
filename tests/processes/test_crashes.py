"""Whatever moment a scheduler is killed in, nothing is broken, lost or done twice.

And one that slept too long cannot write.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.running import BASE, clean_environment, random_port
from tests.services.notices.receiver import receiver

pytestmark = pytest.mark.processes

LEASE = "0.6"  # seconds; the next worker waits this long for one that was killed


def crash(var: Path, database: str, *arguments: str) -> dict[str, Any]:
    environment = clean_environment(
        var,
        random_port(),
        demo=False,
        SCHEDULER_LEASE_SECONDS=LEASE,
        NOTICE_ALLOWED_NETWORKS="127.0.0.1",
        **({"DATABASE_URL": database} if database else {}),
    )
    var.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.crashing", *arguments]
    done = subprocess.run(
        command,
        cwd=BASE,
        env={**environment, "SECRET_KEY": "x"},
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str:
    return "" if request.param == "sqlite" else request.getfixturevalue("postgres_database")


def assert_nothing_is_broken(found: dict[str, Any]) -> None:
    assert found["broken"] == []
    assert found["binds"] > 0
    assert found["commands"] > 0
    assert found["sessions"] > 3


def test_a_scheduler_killed_at_random_moments_leaves_nothing_broken(tmp_path: Path, database: str):
    assert_nothing_is_broken(crash(tmp_path / "var", database, "6", "1"))


@pytest.mark.long
@pytest.mark.parametrize("seed", ["2", "3"])
def test_two_hundred_kills_under_load_leave_nothing_broken(
    tmp_path: Path,
    database: str,
    seed: str,
):
    found = crash(tmp_path / "var", database, "100", seed)

    assert_nothing_is_broken(found)
    assert found["takenOver"] > 0


def test_a_worker_stopped_past_its_lease_and_continued_can_not_write(tmp_path: Path, database: str):
    found = crash(tmp_path / "var", database, "stop")

    assert (found["secondEnded"], found["firstEnded"]) == (0, 0)
    assert found["sessions"] == ["TakenOver", "Done"]
    assert found["bindsByToken"] == [max(found["tokens"])] * 3
    assert found["phases"] == ["Binding"] * 3


def test_a_message_whose_sender_was_killed_is_sent_again_under_the_same_id(
    tmp_path: Path, database: str
):
    with receiver() as hook:
        found = crash(tmp_path / "var", database, "notice", hook.url)

    assert found["killedBy"] == signal.SIGKILL
    assert found["triesWhileClaimed"] == 0
    assert len(hook.got) == 2
    assert hook.got[0].id == hook.got[1].id
    assert hook.got[0].body == hook.got[1].body
    assert (found["state"], found["attempts"], found["noted"]) == ("Sent", 2, 1)
