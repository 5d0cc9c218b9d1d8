"""What pages offer for a terminal exists: each command is read by the program's own parser, each
address by the site's own table.
"""

from __future__ import annotations

import html
import re
import shlex
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.urls import resolve
from typer.exceptions import TyperException

from dashboard.cli.main import program, ready
from scheduler.models import BulkRun
from tests.dashboard.routes import NO_PAGES, PAGES, paths, route_names
from tests.dashboard.work import signed_in, small_cluster

pytestmark = pytest.mark.django_db

_SHOWN = re.compile(r"<(pre|code)\b[^>]*>(.*?)</\1>", re.DOTALL)
_DOCUMENT = re.compile(r" <<'(\w+)'\n.*?\n\1$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def admin() -> Client:
    small_cluster()
    return signed_in("admin")


def source(answer: Any) -> str:
    """The page as it came: the lines of a document are lines of their own."""
    return str(answer.content.decode())


def commands(page: str, names: tuple[str, ...] = ("vcctl ", "curl ")) -> list[str]:
    """Every line of a terminal on a page, without the documents that some are given."""
    shown = [html.unescape(re.sub(r"<[^>]+>", "", body)) for _, body in _SHOWN.findall(page)]
    lines = [line for part in shown for line in _DOCUMENT.sub("", part).splitlines()]
    return [line for line in lines if line.startswith(names)]


def parse(words: list[str]) -> Any:
    """As `vcctl` reads them, down to the command that would run.

    Raises `TyperException` for what it does not know.
    """
    context = ready(program(words)).make_context("vcctl", list(words))
    while hasattr(context.command, "resolve_command"):
        name, command, rest = context.command.resolve_command(
            context, [*context._protected_args, *context.args]
        )
        context = command.make_context(name, rest, parent=context)
    return context


def problem(line: str) -> str:
    """Why a line would not do; "" where it would."""
    words = shlex.split(line)
    if words[0] == "curl":
        return _bad_address(urlsplit(words[-1]).path)
    try:
        found = parse(words[1:])
    except TyperException as refusal:
        return refusal.format_message()
    return _bad_address(f"/api/v1/{found.params['address']}") if found.info_name == "api" else ""


def _bad_address(path: str) -> str:
    return "no such address" if resolve(path).url_name in ("nothing", "api-elsewhere") else ""


def test_every_route_is_walked():
    assert route_names() == {*PAGES, *NO_PAGES}
    assert PAGES.keys() & NO_PAGES == set()


def test_every_copied_command_exists(admin: Client):
    pages = {path: source(admin.get(path)) for path in paths()}
    checked = admin.post("/policy/", {"do": "check", "text": 'actions: "allocate"'})
    pages["a policy that was checked"] = source(checked)
    found = [(path, line) for path, page in pages.items() for line in commands(page)]

    assert {path: (line, why) for path, line in found if (why := problem(line))} == {}
    offered = {line.split()[1] for _, line in found if line.startswith("vcctl")}
    assert offered >= {"queue", "job", "node", "policy", "pause", "apply", "api"}


def test_the_commands_for_many_jobs_exist(admin: Client):
    admin.post("/jobs/-/bulk/", {"action": "cancel", "job": ["default/train-1"]})
    page = source(admin.get(f"/jobs/-/bulk/{BulkRun.objects.get().uid}/"))

    assert [why for line in commands(page) if (why := problem(line))] == []


def test_an_empty_queue_offers_to_submit_to_itself(admin: Client):
    page = source(admin.get("/queues/default/jobs/"))

    assert commands(page, ("vcctl ",)) == ["vcctl job run -f job.yaml --queue default"]


@pytest.mark.parametrize(
    "line",
    [
        "vcctl job submit -f x",
        "vcctl queues",
        "vcctl queue open a --quickly",
        "vcctl api post nothing/",
    ],
)
def test_the_parser_is_not_blind(line: str):
    assert problem(line)


def test_an_address_that_is_not_there_is_found():
    assert problem("curl -X POST http://h/api/v1/cluster/stop/") == "no such address"
