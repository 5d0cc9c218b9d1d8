"""Those who follow something are told before the server stops."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from dashboard.live import stopping


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    told: list[str] = []
    monkeypatch.setattr(stopping, "_deeds", [])
    before = signal.signal(signal.SIGTERM, lambda *_: told.append("server"))
    yield told
    signal.signal(signal.SIGTERM, before)


def test_all_deeds_come_before_the_server_stops(heard: list[str]):
    stopping.at_stop(lambda: heard.append("first"))
    stopping.at_stop(lambda: heard.append("second"))

    signal.raise_signal(signal.SIGTERM)

    assert heard == ["first", "second", "server"]


def test_nothing_is_caught_where_no_server_listens(heard: list[str]):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    stopping.at_stop(lambda: heard.append("first"))

    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
