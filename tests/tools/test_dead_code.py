"""Code that nothing uses is found, and what is listed as an exception is still one."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.tools import dead_code

Write = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Files of a small project of its own."""
    monkeypatch.setattr(dead_code, "ROOT", tmp_path)

    def write_file(path: str, text: str) -> None:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    return write_file


def unused() -> list[str]:
    return [item.name for item in dead_code.unused_names(["scheduler"])]


def test_a_function_that_only_tests_call_is_dead(write: Write):
    write("scheduler/queues.py", "def used(): ...\ndef dead(): ...\nused()\n")
    write("tests/test_queues.py", "from scheduler.queues import dead\ndead()\n")

    assert unused() == ["dead"]


def test_what_a_template_shows_is_used(write: Write):
    write("scheduler/queues.py", "class Row:\n    shown = 1\n    hidden = 2\nRow()\n")
    write("templates/queues/row.html", "<td>{{ row.shown }}</td>")

    assert unused() == ["hidden"]


def test_what_a_setting_names_by_its_path_is_used(write: Write):
    write("scheduler/guard.py", "class Guard: ...\nclass Other: ...\n")
    write("dashboard/settings.py", 'MIDDLEWARE = ["scheduler.guard.Guard"]\n')

    assert unused() == ["Other"]


def test_what_a_framework_is_handed_is_used(write: Write):
    write("scheduler/tasks.py", "@shared_task\ndef tick(): ...\n@cached\ndef other(): ...\n")

    assert unused() == ["other"]


def test_every_exception_is_still_needed():
    found = [
        f"{dead_code._path(item)}:{item.name}" for item in dead_code.unused_names(dead_code.CODE)
    ]
    stale = [
        pattern
        for pattern in dead_code.ALLOWED
        if not any(fnmatchcase(place, pattern) for place in found)
    ]

    assert stale == []
