"""Which server, and as whom: options, environment, contexts, this machine."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from dashboard.cli.accounts.contexts import (
    Context,
    Contexts,
    contexts_file,
    read_contexts,
    write_contexts,
)
from dashboard.cli.problems import Problem
from dashboard.cli.target import ConnectionOptions, find_target
from tests.dashboard.cli.conftest import Type, typed


def local_installation(tmp_path: Path, address: str = "http://127.0.0.1:8000/") -> None:
    folder = tmp_path / "var"
    folder.mkdir()
    (folder / "address").write_text(f"{address}\n")
    (folder / "cli-token").write_text("fum_local\n")


def test_without_anything_it_is_this_machines_installation(tmp_path: Path):
    local_installation(tmp_path)

    target = find_target(ConnectionOptions())

    assert (target.server, target.token, target.origin) == (
        "http://127.0.0.1:8000",
        "fum_local",
        "this machine",
    )


def test_this_machines_key_is_for_this_machine_only(tmp_path: Path):
    local_installation(tmp_path)

    assert find_target(ConnectionOptions(server="https://elsewhere.example.com")).token == ""
    assert find_target(ConnectionOptions(server="127.0.0.1:8000")).token == "fum_local"


def test_what_is_named_goes_before_what_is_current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    local_installation(tmp_path)
    write_contexts(
        Contexts(
            "lab", {"lab": Context("http://lab:1", "t1"), "home": Context("http://home:2", "t2")}
        )
    )

    assert find_target(ConnectionOptions()).server == "http://lab:1"
    monkeypatch.setenv("VCCTL_SERVER", "http://env:3")
    assert find_target(ConnectionOptions()).server == "http://env:3"
    assert find_target(ConnectionOptions(context="home")).token == "t2"
    assert (
        find_target(ConnectionOptions(context="home", server="http://said:4")).server
        == "http://said:4"
    )


def test_a_token_of_the_user_goes_before_a_kept_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_contexts(Contexts("lab", {"lab": Context("http://lab:1", "kept")}))
    (tmp_path / "token").write_text("from a file\n")

    monkeypatch.setenv("VCCTL_TOKEN", "from the environment")
    assert find_target(ConnectionOptions()).token == "from the environment"
    assert find_target(ConnectionOptions(token_file=str(tmp_path / "token"))).token == "from a file"


def test_no_server_is_exit_code_5():
    with pytest.raises(Problem, match="make run") as refused:
        find_target(ConnectionOptions())

    assert refused.value.code == 5


def test_the_file_of_contexts_is_for_its_owner_only():
    write_contexts(Contexts("lab", {"lab": Context("http://lab:1", "secret")}))

    assert stat.S_IMODE(contexts_file().stat().st_mode) == 0o600
    assert read_contexts().known["lab"].token == "secret"
    assert "secret" not in typed("vcctl contexts list -o json").out


@pytest.mark.parametrize("content", ["{", "[]", '{"contexts": {"lab": {"colour": "red"}}}'])
def test_a_broken_file_of_contexts_is_named(content: str):
    contexts_file().write_text(content)

    done = typed("vcctl queue list")

    assert done.code == 1
    assert str(contexts_file()) in done.err


def test_sign_in_with_a_token_and_go_from_server_to_server(
    vcctl: Type,
    server: str,
    monkeypatch: pytest.MonkeyPatch,
):
    import os

    token = os.environ["VCCTL_TOKEN"]
    monkeypatch.delenv("VCCTL_TOKEN")
    monkeypatch.delenv("VCCTL_SERVER")

    assert vcctl(f"vcctl login {server} --with-token --name lab", stdin=f"{token}\n").code == 0
    assert vcctl("vcctl whoami").out.startswith(f"boss at {server} (context lab)\n")
    assert "lab" in vcctl("vcctl contexts").out
    assert vcctl("vcctl contexts use local").code == 0
    assert vcctl("vcctl whoami").code == 5
    assert vcctl("vcctl contexts use nowhere").code == 2
    assert vcctl("vcctl contexts use lab").code == 0
    assert vcctl("vcctl queue list").code == 0
    assert vcctl("vcctl contexts remove lab").code == 0
    assert json.loads(contexts_file().read_text()) == {"current": "", "contexts": {}}


def test_a_wrong_token_is_exit_code_4_and_makes_no_context(vcctl: Type, server: str):
    done = vcctl(f"vcctl login {server} --with-token", stdin="fum_wrong\n")

    assert done.code == 4
    assert not contexts_file().exists()


def test_a_server_may_be_named_before_or_behind_the_command(
    vcctl: Type,
    server: str,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.delenv("VCCTL_SERVER")

    assert vcctl(f"vcctl --server {server} queue list").code == 0
    assert vcctl(f"vcctl queue list -s {server}").code == 0
    assert vcctl(f"vcctl queue list --master {server}").code == 0
    assert vcctl("vcctl queue list --server ftp://x").code == 2
