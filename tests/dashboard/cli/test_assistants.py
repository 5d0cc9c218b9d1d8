"""`vcctl mcp`, asked by the protocol's own client."""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dashboard.cli import assistants
from dashboard.cli.problems import Problem
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.tokens import create_token
from tests.dashboard import work
from tests.dashboard.cli.conftest import Type

READ_ONLY = {
    "explain_job",
    "get_queue",
    "job_timeline",
    "list_jobs",
    "list_queues",
    "node_fragmentation",
    "queue_tree",
    "start_times",
    "usage_report",
    "what_if",
}


def test_without_the_package_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)

    with pytest.raises(Problem) as refused:
        assistants.make_server()

    assert "pip install 'fumarole[mcp]'" in str(refused.value)


@pytest.mark.django_db
class TestTools:
    """What each answers, asked as functions."""

    @pytest.fixture(autouse=True)
    def _at_work(self, vcctl: Type) -> None:
        work.small_cluster()
        vcctl("vcctl whoami")  # sets up the connection

    def test_a_job_is_explained_in_the_words_of_the_command_line(self, vcctl: Type):
        told = vcctl("vcctl job explain train-2 -o json").json

        answer = assistants.explain_job("train-2")

        assert answer["waiting"]
        assert answer["message"] == told["message"]

    def test_jobs_queues_and_start_times_are_listed_short(self):
        jobs = assistants.list_jobs(queue="research", phase="Pending")["jobs"]
        queues = assistants.list_queues(parent="research")["queues"]
        waiting = assistants.start_times()["waiting"]

        assert [job["name"] for job in jobs] == ["train-2"]
        assert jobs[0]["waitsFor"]["message"]
        assert {queue["name"] for queue in queues} == {"vision", "language"}
        assert "train-2" in {gang["name"] for gang in waiting}

    def test_figures_of_reasons_have_their_units(self, vcctl: Type):
        told = vcctl("vcctl job explain train-2 -o json").json["figures"]

        explained = assistants.explain_job("train-2")
        figures = explained["figures"]
        (job,) = assistants.list_jobs(queue="research", phase="Pending")["jobs"]

        assert told["resource"] == figures["resource"] == "cpu"
        assert figures["need"] == f"{told['need'] // 1000} cpu"
        assert figures["level"] == told["level"]
        assert job["waitsFor"]["figures"]["need"] == figures["need"]
        assert explained["checks"]
        for check in explained["checks"]:
            assert not check["resource"] or check["need"].endswith(f" {check['resource']}")

    def test_a_long_list_says_how_many_there_are_and_goes_on_from_a_cursor(self):
        whole = assistants.list_jobs()

        first = assistants.list_jobs(limit=2)
        after = assistants.list_jobs(limit=200, cursor=first["next"])

        assert whole["total"] == first["total"] == len(whole["jobs"]) > 2
        assert whole["next"] is None
        assert first["jobs"] + after["jobs"] == whole["jobs"]
        assert "total" not in after

    def test_the_tree_is_cut_where_it_is_too_large(self, monkeypatch: pytest.MonkeyPatch):
        whole = assistants.queue_tree()
        monkeypatch.setattr(assistants, "_MOST_ROWS", 2)
        cut = assistants.queue_tree()

        assert {child["name"] for child in whole["children"]} >= {"research", "batch"}
        assert "leftOut" in cut

    def test_what_is_not_there_is_a_sentence(self):
        with pytest.raises(Problem, match=r"There is no podgroup default/nothing\."):
            assistants.explain_job("nothing")
        with pytest.raises(Problem, match="documents is longer"):
            assistants.what_if("x" * 300_000)


@pytest.fixture
def address(live_server: Any) -> dict[str, str]:
    """A server with a socket, and vera, who sees vision alone."""
    work.small_cluster()
    person = work.person("vera").user
    secret = create_token(person, "assistant", ("read",), by=SYSTEM).secret
    return {**os.environ, "VCCTL_SERVER": live_server.url, "VCCTL_TOKEN": secret}


@asynccontextmanager
async def asked(environment: dict[str, str]) -> Any:
    mcp = pytest.importorskip("mcp")
    from mcp.client.stdio import StdioServerParameters, stdio_client

    words = ["-m", "dashboard.cli", "mcp"]
    program = StdioServerParameters(command=sys.executable, args=words, env=environment)
    async with (
        stdio_client(program) as (read, write),
        mcp.ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


@pytest.mark.django_db(transaction=True)
async def test_the_client_of_the_protocol_is_answered_with_the_rights_of_the_token(
    address: dict[str, str],
):
    pytest.importorskip("mcp")
    async with asked(address) as session:
        tools = (await session.list_tools()).tools
        explained = await session.call_tool("explain_job", {"name": "train-2"})
        unseen = await session.call_tool("explain_job", {"name": "nightly"})
        queues = await session.call_tool("list_queues", {})

    assert {tool.name for tool in tools} == READ_ONLY
    assert all(tool.annotations.read_only_hint for tool in tools)
    assert not explained.is_error
    assert explained.structured_content["waiting"]
    assert unseen.is_error
    assert "There is no podgroup default/nightly." in unseen.content[0].text
    assert [queue["name"] for queue in queues.structured_content["queues"]] == ["vision"]
