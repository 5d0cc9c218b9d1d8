"""Every shell line of README.md and docs/, in order, on one fresh installation: the one that
README.md's own `make run` starts.

A document is read in one shell, as somebody would type it who follows it. The reference,
docs/cli.md, shows ways to call a command, not a story: before each of its lines the queues and jobs
that it speaks of are put back.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.dashboard.cli.terminals import Terminal, launchers
from tests.docs.reading import BASE, DOCUMENTS, Block, shell_blocks
from tests.docs.reference_world import ReferenceWorld
from tests.running import PATIENCE_SECONDS, Running, clean_environment

pytestmark = pytest.mark.processes
REFERENCE = BASE / "docs" / "cli.md"
API = (
    BASE / "docs" / "api.md"
)  # run by tests/dashboard/api/test_docs_examples.py, whose lines speak Python too
STORIES = [
    path
    for path in DOCUMENTS
    if path not in (REFERENCE, API) and any(not block.marker for block in shell_blocks(path))
]


def _line_that_stays(document: Path) -> list[str]:
    staying = [block for block in shell_blocks(document) if block.marker.startswith("stays")]
    assert len(staying) == 1
    return shlex.split(staying[0].text, comments=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    command = _line_that_stays(BASE / "README.md")
    assert command == ["make", "run"]
    in_this_python = f"VENV={sys.prefix}"  # where `make test` has installed everything already
    with Running(
        tmp_path_factory.mktemp("installation") / "var",
        command=(*command, in_this_python),
        demo=True,
    ) as running:
        running.wait_until_sessions_run()
        yield running


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as links: what lines write lands beside them, not in the project."""
    folder = tmp_path_factory.mktemp("checkout")
    for entry in BASE.iterdir():
        if entry.name not in (".venv", ".git", "var"):
            (folder / entry.name).symlink_to(entry)
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (folder / ".venv" / "bin" / "python").chmod(0o755)
    launchers(folder / ".venv" / "bin")
    return folder


@pytest.fixture(scope="module")
def world(site: Running, checkout: Path) -> ReferenceWorld:
    made = ReferenceWorld(
        site.address,
        (site.var / "cli-token").read_text().strip(),
        checkout,
        site.var.parent,
    )
    made.prepare()
    return made


@pytest.fixture
def env(site: Running) -> dict[str, str]:
    return {**clean_environment(site.var, site.port), "NO_PROXY": "*", "no_proxy": "*"}


def _as_here(text: str, site: Running, world: ReferenceWorld) -> str:
    """With the address, the token and the session of this installation for those that documents
    name.
    """
    text = text.replace("http://127.0.0.1:8000", site.address).replace(
        "https://fumarole.example.com", site.address
    )
    if "812" in text:
        text = text.replace("812", str(world.kept_session()))
    return text.replace("fum_…", world.token)


@pytest.mark.parametrize("document", STORIES, ids=lambda path: str(path.relative_to(BASE)))
def test_a_document_can_be_followed_line_by_line(
    document: Path,
    site: Running,
    world: ReferenceWorld,
    checkout: Path,
    env: dict[str, str],
):
    plain = [
        _as_here(block.text, site, world) for block in shell_blocks(document) if not block.marker
    ]
    tell_the_line = "trap 'echo \"stopped at: $BASH_COMMAND\" >&2' ERR"
    script = "\n".join([tell_the_line, *plain])

    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=checkout,
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        stdin=subprocess.DEVNULL,
        check=False,
    )

    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stdout + done.stderr


EXAMPLES = [block for block in shell_blocks(REFERENCE) if not block.marker]
PATH_LINE = next(
    line for block in EXAMPLES for line in block.commands if line.startswith("export PATH=")
)
NEEDS_A_CONFLICT = "vcctl changes resolve"
"""It comes when a plan begins, minutes ahead: tests/dashboard/cli/files/test_plans.py types it."""


@pytest.mark.parametrize("block", EXAMPLES, ids=lambda block: f"docs/cli.md:{block.line}")
def test_an_example_of_the_reference_runs(
    block: Block,
    site: Running,
    world: ReferenceWorld,
    checkout: Path,
    env: dict[str, str],
):
    failed = []
    # A session is chosen when its lines are run: it may be gone later.
    for line in replace(block, text=_as_here(block.text, site, world)).commands:
        if line.startswith(NEEDS_A_CONFLICT):
            continue
        world.put_back_for(line)
        typed = world.with_entry(world.with_window(world.with_change_set(line)))
        typed = world.with_plan(typed)
        code, said = _type(f"{PATH_LINE}\n{typed}", checkout, env, world)
        if code != 0 or "Traceback" in said:
            failed.append(f"{line}: {code}\n{said[-600:]}")

    assert not failed, "\n".join(failed)


def test_the_reference_is_full_of_examples():
    assert sum(len(block.commands) for block in EXAMPLES) > 100


def _type(line: str, checkout: Path, env: dict[str, str], world: ReferenceWorld) -> tuple[int, str]:
    if "vcctl login" in line and "--with-token" not in line:
        return _sign_in(line, env, checkout, world)
    if _goes_on(line):
        return _look_on(line, env, checkout)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line],
        cwd=checkout,
        env=env,
        input="y\n" * 3,  # to what is asked before something that cannot be undone
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def _goes_on(line: str) -> bool:
    """Until somebody ends it."""
    if "job watch" in line:
        return "--until" not in line
    follows_a_log = " logs " in line and "-f" in line.split()
    return "--watch" in line or follows_a_log


def _sign_in(
    line: str,
    env: dict[str, str],
    checkout: Path,
    world: ReferenceWorld,
) -> tuple[int, str]:
    """A password can be typed at a terminal only."""
    with Terminal("bash", "-c", f"cd {shlex.quote(str(checkout))}\n{line}", env=env) as screen:
        if "--username" not in line:
            screen.wait_for("User name:")
            screen.type("ann\n")
        screen.wait_for("Password of ann:")
        screen.type(world.password + "\n")
        return screen.exit_code(), screen.text


def _look_on(line: str, env: dict[str, str], checkout: Path) -> tuple[int, str]:
    """Until something is shown; then Ctrl-C, which is how such a line ends."""
    with Terminal("bash", "-c", f"cd {shlex.quote(str(checkout))}\n{line}", env=env) as screen:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not screen.text and screen.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        screen.type("\x03")
        code = screen.exit_code()
        return 0 if code in (0, 130, -signal.SIGINT) else code, screen.text


def test_nothing_is_left_in_the_project_by_the_lines(checkout: Path):
    written = {entry.name for entry in checkout.iterdir() if not entry.is_symlink()}

    assert not [name for name in written if (BASE / name).exists() and name != ".venv"]
    assert os.path.lexists(checkout / "README.md")
