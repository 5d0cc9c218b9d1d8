"""What the benchmark of the start knows of processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench import start

pytestmark = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux")


def test_children_are_found_with_their_memory():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = start.processes_under(os.getpid())

        assert found[0] == os.getpid()
        assert child.pid in found
        assert start.memory_of(child.pid) > 0
        child.communicate(b"\n")


def test_a_process_that_has_ended_has_no_memory():
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()

    assert start.memory_of(child.pid) == 0
    assert start.processor_seconds(child.pid) == 0


def test_a_worker_is_known_by_its_queue():
    waits = [sys.executable, "-c", "input(input('ready'))", "-Q", "default"]
    with subprocess.Popen(waits, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin
        assert child.stdout
        child.stdin.write("\n")
        child.stdin.flush()
        child.stdout.read(len("ready"))  # its command is known once it runs
        name = start.name_of(child.pid)
        child.communicate("\n")

    assert name == "worker"
