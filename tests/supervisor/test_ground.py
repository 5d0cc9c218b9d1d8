"""What an installation stands on: its folder, its lock, its Redis, its output."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from scheduler.supervisor.console import Console
from scheduler.supervisor.installation import Installation, installation_from
from scheduler.supervisor.lock import SupervisorLock
from scheduler.supervisor.problems import StartError
from scheduler.supervisor.redis_server import find_redis, without_password


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal, file = Terminal(), io.StringIO()

    Console(terminal).line("web", "hello")
    Console(file).line("web", "hello")

    assert terminal.getvalue() == "\x1b[36mweb       |\x1b[0m hello\n"
    assert file.getvalue() == "web       | hello\n"


def test_colour_can_be_declined(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()

    Console(terminal).line("web", "hello")

    assert "\x1b" not in terminal.getvalue()


def test_the_folder_and_the_port_come_from_the_environment(tmp_path: Path):
    assert installation_from({"FUMAROLE_VAR": str(tmp_path), "PORT": "8123"}) == Installation(tmp_path, 8123)
    assert installation_from({}).port == 8000
    assert installation_from({}).var.name == "var"


def test_a_lock_whose_holder_says_nothing_is_respected_all_the_same(tmp_path: Path):
    installation = Installation(tmp_path, 8000)

    with SupervisorLock(installation):
        (tmp_path / "supervisor.lock").write_text("")
        with pytest.raises(StartError, match=r"already running on .*: a process that is just starting or stopping"):
            SupervisorLock(installation).__enter__()

    with SupervisorLock(installation):
        pass  # free again


def test_two_starts_have_different_passwords(tmp_path: Path):
    first, second = (find_redis({}, tmp_path) for _ in range(2))

    assert first is not None
    assert second is not None
    assert first.url != second.url
    assert (tmp_path / "redis-url").read_text().strip() == second.url
    assert second.url.split(":")[2].split("@")[0] in second.config.read_text()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:secret@host:6379/0", "redis://:***@host:6379/0"),
        ("rediss://user:se:cr.et@host/1", "rediss://user:***@host/1"),
        ("redis://host:6379/0", "redis://host:6379/0"),
    ],
)
def test_a_password_is_not_shown(url: str, shown: str):
    assert without_password(url) == shown
