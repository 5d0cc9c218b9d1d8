from __future__ import annotations

import pytest

from scheduler.domain.durations import seconds_in
from scheduler.engine.arguments import duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90.0), ("1h30m", 5400.0), ("500ms", 0.5), ("2.5m", 150.0), ("45", 45.0), (".5s", 0.5)],
)
def test_a_length_of_time_is_read_as_go_writes_it_or_as_plain_seconds(text: str, seconds: float):
    assert seconds_in(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "soon", "-1s", "1 h", "h", "²s", "1e9s", "inf", "nan", "1_0s", "9" * 30 + "s"]
)
def test_nothing_else_is(text: str):
    assert seconds_in(text) is None


@pytest.mark.parametrize("text", ["45", "500ms"])
def test_a_plugin_reads_what_a_policy_is_let_in_with(text: str):
    assert duration({"sla-waiting-time": text}, "sla-waiting-time") == seconds_in(text)
