"""What docs/how-to/operation.md promises, with the real processes: everything fails and goes on,
web processes are restarted under load, a standby scheduler takes over.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest

from tests.running import BASE

pytestmark = pytest.mark.processes


def run(*arguments: str) -> tuple[int, dict[str, Any], str]:
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=BASE, text=True, capture_output=True, check=False)
    told = done.stdout + done.stderr
    assert done.stdout.strip(), told
    return done.returncode, json.loads(done.stdout.splitlines()[-1]), told


def need(is_there: bool, what: str) -> None:
    if not is_there:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(what)


def test_whatever_fails_nothing_is_lost_and_everything_goes_on():
    code, found, told = run("tests.processes.soak", "--short", "--json")

    assert (code, found["problems"]) == (0, []), told
    assert all(found["faults"][kind] for kind in found["kinds"]), told
    assert found["figures"]["deeds answered"] > 20


@pytest.mark.long
def test_ten_minutes_of_faults_of_every_kind_break_nothing():
    code, found, told = run("tests.processes.soak", "--seconds", "600", "--json")

    assert (code, found["problems"]) == (0, []), told


def test_web_processes_are_restarted_in_turn_without_a_lost_click():
    need(bool(shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")), "install nginx")

    code, found, told = run("tests.processes.soak.rolling", "1")

    assert code == 0, told
    assert (found["restarted"], found["failed"], found["problems"]) == (3, {}, []), told
    assert found["done"] > 20
    assert found["connects"] > 2


def test_followed_lists_go_on_behind_nginx_whichever_web_process_goes_away():
    need(bool(shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")), "install nginx")

    code, found, told = run("tests.processes.soak.watching")

    assert code == 0, told
    assert (len(found["listed"]), found["agree"]) == (14, 6), told
    assert found["connects"] > 6  # two web processes went away, and took connections with them
    assert found["begunAnew"]["web-1"] == 0, told  # the one that was stopped handed over


def test_a_standby_on_another_machine_takes_over_and_nobody_writes_late():
    need(os.geteuid() == 0 and bool(shutil.which("ip")), "needs root and the package iproute2")

    code, found, told = run("tests.processes.soak.standby", "1")

    assert code == 0, told
    assert found["machines"] == 2
    assert all(found["failover"][case] for case in ("killed", "cutOff", "frozen"))
    assert found["writtenLate"] == []
