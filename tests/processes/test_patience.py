"""How long the soak waits at its end."""

from __future__ import annotations

from tests.processes.soak.harness import Patience


def test_a_slow_machine_is_waited_for_as_long_as_something_ends():
    patience = Patience(180, now=0)

    slowly = [patience.has_run_out(10 - turn, 150.0 * turn) for turn in range(1, 9)]

    assert slowly == [False] * 8


def test_what_comes_and_goes_is_no_progress():
    patience = Patience(180, now=0)

    found = [patience.has_run_out(5 + turn % 2, 60.0 * turn) for turn in range(6)]

    assert found == [False, False, False, False, True, True]
