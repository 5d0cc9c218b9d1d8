"""What tests of sessions share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scheduler.engine import run_session as think
from scheduler.services.sessions import runner


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Something happens after a session has thought and before it writes."""

    def arrange(happening: Callable[[], object]) -> None:
        def think_slowly(*args: Any, **more: Any) -> Any:
            outcome = think(*args, **more)
            happening()
            return outcome

        monkeypatch.setattr(runner, "run_session", think_slowly)

    return arrange
