"""What an installation stands on: its folder, its lock, its Redis, its output."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.supervisor.console import Console
from scheduler.supervisor.installation import Installation, check_writable, installation_from
from scheduler.supervisor.lock import SupervisorLock
from scheduler.supervisor.problems import StartError
from scheduler.supervisor.redis_server import find_redis, without_password
from scheduler.supervisor.runtime import lend_secret_key
from scheduler.supervisor.up import tell_how_to_sign_in


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = Terminal()
    file = io.StringIO()

    Console(terminal).line("web", "hello")
    Console(file).line("web", "hello")

    assert terminal.getvalue() == "\x1b[36mweb       |\x1b[0m hello\n"
    assert file.getvalue() == "web       | hello\n"


def test_colour_can_be_declined(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()

    Console(terminal).line("web", "hello")

    assert "\x1b" not in terminal.getvalue()


def test_a_terminal_that_was_closed_is_noticed_without_writing_to_it():
    master, terminal = os.openpty()
    with os.fdopen(terminal, "w") as stream:
        console = Console(stream)
        assert not console.is_gone
        os.close(master)

        assert console.is_gone


def test_a_pipe_that_nobody_reads_is_noticed():
    reads, writes = os.pipe()
    with os.fdopen(writes, "w") as stream:
        console = Console(stream)
        assert not console.is_gone
        os.close(reads)

        assert console.is_gone


@pytest.fixture
def ordinary_user() -> Iterator[Path]:
    """A folder that everybody may write, seen by somebody whom permissions hold back: root is
    nobody for a while.
    """
    folder = Path(tempfile.mkdtemp(prefix="fumarole-"))
    folder.chmod(0o777)
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    yield folder
    os.seteuid(before)
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["supervisor.lock", "fumarole.sqlite3", "redis/redis.conf"])
def test_a_file_that_another_user_left_is_named(ordinary_user: Path, name: str):
    left = ordinary_user / "var" / name
    left.parent.mkdir(parents=True)
    left.touch(mode=0o400)

    with pytest.raises(
        StartError, match=f"{left} cannot be written: it belongs to .*FUMAROLE_VAR="
    ):
        check_writable(ordinary_user / "var")


def test_a_folder_that_may_not_be_written_is_named(ordinary_user: Path):
    (ordinary_user / "var").mkdir(mode=0o500)

    with pytest.raises(StartError, match=r"var cannot be written \(Permission denied\)"):
        check_writable(ordinary_user / "var")


def test_what_is_ours_may_be_there(ordinary_user: Path):
    (ordinary_user / "var" / "redis").mkdir(parents=True)
    (ordinary_user / "var" / "supervisor.lock").touch(mode=0o600)

    check_writable(ordinary_user / "var")


def test_a_command_beside_make_run_borrows_its_key(tmp_path: Path):
    (tmp_path / "secret-key").write_text("kept\n")
    nothing: dict[str, str] = {}
    given = {"SECRET_KEY": "own"}

    lend_secret_key(nothing, tmp_path)
    lend_secret_key(given, tmp_path)

    assert (nothing, given) == ({"SECRET_KEY": "kept"}, {"SECRET_KEY": "own"})


def test_where_there_is_no_key_none_is_lent(tmp_path: Path):
    nothing: dict[str, str] = {}

    lend_secret_key(nothing, tmp_path)

    assert nothing == {}


def test_the_folder_and_the_port_come_from_the_environment(tmp_path: Path):
    assert installation_from({"FUMAROLE_VAR": str(tmp_path), "PORT": "8123"}) == Installation(
        tmp_path, 8123
    )
    assert installation_from({}).port == 8000
    assert installation_from({}).var.name == "var"


def test_a_lock_whose_holder_says_nothing_is_respected_all_the_same(tmp_path: Path):
    installation = Installation(tmp_path, 8000)

    with SupervisorLock(installation):
        (tmp_path / "supervisor.lock").write_text("")
        with pytest.raises(
            StartError, match=r"already running on .*: a process that is just starting or stopping"
        ):
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


@pytest.mark.parametrize(
    ("is_terminal", "is_new", "shown"),
    [(True, True, True), (True, False, False), (False, True, False)],
)
def test_the_first_password_is_printed_to_a_terminal_only(
    tmp_path: Path,
    is_terminal: bool,
    is_new: bool,
    shown: bool,
):
    installation = installation_from({"FUMAROLE_VAR": str(tmp_path), "PORT": "8123"})
    (tmp_path / "admin-password").write_text("one-of-many\n")
    stream = Terminal() if is_terminal else io.StringIO()

    tell_how_to_sign_in(installation, Console(stream), "" if is_new else "one-of-many")

    assert ("one-of-many" in stream.getvalue()) is shown
    assert str(tmp_path / "admin-password") in stream.getvalue()
