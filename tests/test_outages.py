"""What is away is told once, and once when it is back, however many changes there are meanwhile."""

from __future__ import annotations

import logging

import pytest
from channels.layers import channel_layers
from django.test import override_settings

from scheduler import notify

_NOWHERE = {
    "default": {
        "BACKEND": "dashboard.live.layer.NewsLayer",
        "CONFIG": {"hosts": ["redis://127.0.0.1:1"]},
    }
}
_HERE = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}


def _announce_all(layers: dict[str, object]) -> None:
    with override_settings(CHANNEL_LAYERS=layers):
        channel_layers.backends = {}
        for name in ("a", "b", "c"):
            notify.jobs_changed([name])
            notify.queues_changed([name])


@pytest.mark.django_db(transaction=True)
def test_news_that_reach_nobody_are_complained_about_once(caplog: pytest.LogCaptureFixture):
    _announce_all(_HERE)
    caplog.clear()
    try:
        _announce_all(_NOWHERE)
        _announce_all(_HERE)
    finally:
        channel_layers.backends = {}

    told = [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.WARNING and record.name == "scheduler.notify"
    ]
    assert len(told) == 2, told
    assert told[0].startswith("Open pages are not told of changes: ")
    assert told[1] == "Open pages are told of changes again."
