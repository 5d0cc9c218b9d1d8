"""When Python may look for garbage."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scheduler.garbage import undisturbed
from scheduler.services.sessions import runner
from scheduler.services.sessions.runner import SessionRunner

BASE = Path(__file__).parents[1]


@pytest.mark.django_db
def test_no_look_interrupts_a_session(monkeypatch: pytest.MonkeyPatch):
    seen = []

    def think(*words: Any, **names: Any) -> Any:
        seen.append(gc.isenabled())
        return run_session(*words, **names)

    run_session = runner.run_session
    monkeypatch.setattr(runner, "run_session", think)
    SessionRunner("test").run()
    assert seen == [False]
    assert gc.isenabled()


def test_looking_goes_on_after_a_failure():
    with pytest.raises(ValueError, match="in between"), undisturbed():
        raise ValueError("in between")
    assert gc.isenabled()


def test_who_has_it_switched_off_keeps_it_so():
    gc.disable()
    try:
        with undisturbed():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "start",
    [
        "import dashboard.asgi",
        "import django; django.setup(); from dashboard.worker import life; life.prepare()",
    ],
)
def test_a_process_sets_aside_what_it_has_loaded(start: str):
    code = f"import gc; {start}; print(gc.get_freeze_count() > 20 * len(gc.get_objects()))"
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=BASE,
        env={**os.environ, "SECRET_KEY": "only for this test, and long enough for it"},
        text=True,
        capture_output=True,
        check=False,
    )
    assert run.stdout == "True\n", run.stderr
