"""A real installation, the real stories (docs/how-to/command-line.md), and a person at a real
terminal.

One installation for all of it: starting one is the dear part.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard.cli.terminals import BASE, Terminal, launchers
from tests.running import Running

pytestmark = pytest.mark.processes
STORIES = BASE / "examples" / "stories.sh"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("installation") / "var", demo=False) as running:
        yield running


@pytest.fixture
def env(site: Running, tmp_path: Path) -> dict[str, str]:
    """A user of this machine who has set nothing but where the installation is."""
    path = f"{launchers(tmp_path / 'bin')}:{os.environ['PATH']}"
    return {
        "PATH": path,
        "HOME": str(tmp_path),
        "FUMAROLE_VAR": str(site.var),
        "LANG": "C.UTF-8",
        "NO_PROXY": "*",
    }


def run(env: dict[str, str], *command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=env,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_start_leaves_a_key_for_this_machine_only(site: Running, env: dict[str, str]):
    assert stat.S_IMODE((site.var / "cli-token").stat().st_mode) == 0o600

    done = run(env, "vcctl", "whoami")

    assert done.stdout.startswith(f"admin at {site.address} (this machine)\n"), done.stderr


def test_the_stories_can_be_told_in_a_terminal(env: dict[str, str]):
    done = run(env, "sh", str(STORIES))

    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.rstrip().endswith("# That was all")
    assert "QueueSuspended" in done.stdout
    assert "queue/research deleted" in done.stdout


def test_a_tree_on_a_terminal_has_colours_and_bars_and_in_a_pipe_has_none(env: dict[str, str]):
    with Terminal("vcctl", "queue", "tree", "--resource", "cpu", env=env) as screen:
        assert screen.exit_code() == 0
        seen = screen.text
    piped = run(env, "vcctl", "queue", "tree").stdout

    assert "\x1b[32m" in seen
    assert "·" * 6 in seen
    assert "default" in piped
    assert "\x1b" not in piped
    assert "·" not in piped


def test_a_question_is_asked_and_ctrl_c_is_no_yes(env: dict[str, str]):
    run(env, "vcctl", "queue", "create", "doomed", "--state", "Closed")

    with Terminal("vcctl", "queue", "delete", "doomed", env=env) as screen:
        screen.wait_for("[y/N]")
        screen.type("\x03")
        assert screen.exit_code() == 130
        assert "Traceback" not in screen.text

    assert run(env, "vcctl", "queue", "get", "doomed").returncode == 0


def test_closing_with_children_is_asked_about_at_a_terminal(env: dict[str, str]):
    run(env, "vcctl", "queue", "create", "above")
    run(env, "vcctl", "queue", "create", "below", "--parent", "above")

    with Terminal("vcctl", "queue", "close", "above", env=env) as screen:
        screen.wait_for("[y/N]")
        assert "below Open → Closed" in screen.text
        screen.type("y\n")
        assert screen.exit_code() == 0

    assert "Closed" in run(env, "vcctl", "queue", "get", "below").stdout


def test_bash_completes_commands_options_and_names_of_queues(env: dict[str, str]):
    run(env, "vcctl", "queue", "create", "zanzibar")

    with Terminal("bash", "--norc", "--noprofile", "-i", env={**env, "PS1": "ready> "}) as shell:
        shell.wait_for("ready> ")
        shell.type(
            'bind "set enable-bracketed-paste off"; eval "$(vcctl completion bash)"; echo '
            'loa""ded\n'
        )
        shell.wait_for("loaded")
        shell.type("vcctl queue get zanz\t")
        shell.wait_for("zanzibar")
        shell.type("-o na\t\n")
        shell.wait_for("queue/zanzibar")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_are_told_the_names_too(env: dict[str, str], shell: str):
    run(env, "vcctl", "queue", "create", "zanzibar")
    asked = {
        "_VCCTL_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "vcctl queue get zan",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_WORD_TO_COMPLETE": "zan",
    }

    script = run(env, "vcctl", "completion", shell)
    done = run({**env, **asked}, "vcctl")

    assert f"complete_{shell}" in script.stdout
    assert "zanzibar" in done.stdout


def test_a_watch_outlives_its_server_and_ends_with_ctrl_c(site: Running, env: dict[str, str]):
    with Terminal("vcctl", "queue", "list", "--watch", "--interval", "0.3", env=env) as screen:
        screen.wait_for("default")
        run(env, "vcctl", "queue", "create", "appears")
        screen.wait_for("appears")
        site.kill("web")
        lost = screen.wait_for("No connection since")
        site.wait(site.is_ready, "the server again")
        back = screen.wait_for("Ctrl-C ends this\r\n\r\n\x1b[1mName", lost)
        run(env, "vcctl", "queue", "create", "later")
        screen.wait_for("later", back)
        screen.type("\x03")

        assert screen.exit_code() == 130
        assert screen.text.endswith("\x1b[?25h\x1b[?1049l")


def test_without_a_server_the_exit_code_is_5(tmp_path: Path, env: dict[str, str]):
    nothing = run({**env, "FUMAROLE_VAR": str(tmp_path)}, "vcctl", "queue", "list")
    nobody = run(env, "vcctl", "queue", "list", "--server", "http://127.0.0.1:9")

    assert (nothing.returncode, nobody.returncode) == (5, 5)
    assert "make run" in nothing.stderr
    assert "http://127.0.0.1:9" in nobody.stderr


def test_sign_in_with_a_password_makes_a_context(
    site: Running,
    env: dict[str, str],
    tmp_path: Path,
):
    elsewhere = {**env, "FUMAROLE_VAR": str(tmp_path / "nothing")}
    password = (site.var / "admin-password").read_text().strip()

    with Terminal(
        "vcctl",
        "login",
        site.address,
        "--username",
        "admin",
        "--name",
        "lab",
        env=elsewhere,
    ) as screen:
        screen.wait_for("Password of admin:")
        screen.type(f"{password}\n")
        assert screen.exit_code() == 0, screen.text
        assert password not in screen.text

    file = tmp_path / ".config" / "fumarole" / "contexts.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert run(elsewhere, "vcctl", "whoami").stdout.startswith(
        f"admin at {site.address} (context lab)\n"
    )
