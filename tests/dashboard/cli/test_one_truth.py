"""Page, list, timeline, API and CLI say the same of a job, on clusters drawn at random."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.test import Client

from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import Job, Node, Pod, PodGroup, QueueFigures
from scheduler.services.jobs.submit import command_job, submit_job
from scheduler.services.queues.commands import command_queue
from scheduler.services.sessions.runner import SessionRunner
from tests.dashboard.cli.conftest import Done
from tests.worlds import manifest, node, pass_time, queue, run_session

pytestmark = pytest.mark.django_db

Type = Callable[..., Done]
NEVER = {"ExceedsCapability", "ExceedsCluster", "NoNodeFits", "QueueClosed"}
ON_NODES = {
    "NoNodeFits",
    "OverDeservedNotReclaimable",
    "GangIncomplete",
    "Fragmented",
    "ClusterBusy",
    "ReclaimInProgress",
    "ExceedsCluster",
}
ENDED = {"Completed", "Failed", "Aborted", "Terminated"}
LEAVES = ("tight", "wide", "default", "still")


def random_world(seed: int) -> None:
    """Nodes of different sizes.

    A queue with a small limit, one that borrows, one that is suspended; jobs of all sizes, some
    absurd.
    """
    dice = random.Random(seed)
    for number in range(dice.randint(2, 4)):
        node(f"n{number}", cpu=str(dice.choice([4, 8, 16])), memory="64Gi")
    queue("team", deserved={"cpu": "12"})
    queue("tight", "team", capability={"cpu": "6"}, deserved={"cpu": "4"})
    queue("wide", "team", deserved={"cpu": "8"})
    queue("still")
    runner = SessionRunner("test")
    for number in range(14):
        replicas = dice.randint(1, 6)
        shape = {
            "replicas": replicas,
            "least": dice.randint(1, replicas),
            "cpu": dice.choice(["1", "2", "4", "30"]),
            "seconds": dice.choice([3, 100_000, 100_000]),
            "exit_code": dice.choice([0, 0, 1]),
        }
        submit_job(manifest(f"j{number}", dice.choice(LEAVES), **shape))
        if number % 3 == 2:
            run_session(runner)
            pass_time(dice.choice([1, 5]))
    command_queue("still", QueueCommand.SUSPEND)
    for name in dice.sample(range(14), 3):
        with contextlib.suppress(NotPossible):
            command_job("default", f"j{name}", dice.choice(["Cancel", "Suspend"]))
    for _ in range(3):
        run_session(runner)
        pass_time(5)
    runner.run()


class Browser(Client):
    """One that leaves the connection of the test alone, as the server of these tests does: Django's
    own turns the signals on again.
    """

    def request(self, **request: Any) -> Any:
        answer = super().request(**request)
        for signal in (request_started, request_finished):
            signal.disconnect(close_old_connections)
        return answer


class Told:
    """All that is said of one job, by everybody."""

    def __init__(self, name: str, browser: Client, vcctl: Type, lists: dict[str, Any]) -> None:
        self.name = name
        self.gang = PodGroup.objects.select_related("job").get(namespace="default", name=name)
        self.page = browser.get(f"/jobs/default/{name}/").context
        self.timeline = browser.get(f"/jobs/default/{name}/timeline/").context
        self.row = lists["page"][name]
        self.by_api = vcctl(f"vcctl job view {name} -o json").json
        self.explained = vcctl(f"vcctl job explain {name} -o json").json
        self.explained_to_people = vcctl(f"vcctl job explain {name}").out
        self.in_list = lists["cli"][name]


def everything_told(vcctl: Type) -> list[Told]:
    browser = Browser()
    browser.force_login(get_user_model().objects.get(username="boss"))
    rows = browser.get("/jobs/").context["rows"]
    table = [
        re.split(r"\s{2,}", line.strip())
        for line in vcctl("vcctl job list -o wide").out.splitlines()
    ]
    head = table[0]
    lists = {
        "page": {row["name"]: row for row in rows},
        "cli": {cells[0]: dict(zip(head, cells, strict=False)) for cells in table[1:]},
    }
    return [
        Told(name, browser, vcctl, lists)
        for name in Job.objects.order_by("id").values_list("name", flat=True)
    ]


def check_state(told: Told) -> None:
    """One word for how it stands; Volcano's own two tables say Pending where the gang is in the
    line.
    """
    state = told.page["row"]["state"]
    assert told.row["state"] == told.explained["phase"] == state
    assert f"({state})" in told.explained_to_people
    phase = told.by_api["status"]["state"]["phase"]
    assert told.in_list["Phase"] == phase
    if phase in ENDED or state in ENDED:
        assert phase == state
        title = [
            entry["step"].title
            for entry in told.timeline["steps"]
            if entry["step"].at == told.gang.job.finished_at
        ]
        assert phase == "Aborted" or phase in title


def check_reason(told: Told) -> None:
    """One reason, by code and in words."""
    card = told.page["reason"]
    if card is None:
        return
    code = card["code"]
    message = card["message"]
    assert (told.row["reason_code"], told.row["reason"]) == (code, message)
    assert (told.explained["reason"], told.explained["message"]) == (code, message)
    said = told.by_api["status"]["podgroup"]["reason"]
    assert (said["code"], said["message"]) == (code, message)
    assert told.timeline["now"].what == code
    assert told.in_list["Waits for"] == code
    assert f"{code}: {message}" in told.explained_to_people


def check_gang_line(told: Told) -> None:
    """It adds up, and promises no place to a gang that can never start."""
    line = told.page["gang_sentence"]
    card = told.page["reason"]
    if card is None:
        return
    if card["code"] in NEVER:
        assert line.endswith("it cannot start as it is")
        assert card["stays"]
        return
    counts = re.fullmatch(
        r"(\d+) of (\d+) needed have a place(?:, (\d+) fits? now(?:, (\d+) blocked by (.+))?)?",
        line,
    )
    assert counts, line
    placed, needed, fitting, blocked = (int(number or 0) for number in counts.groups()[:4])
    if counts[3]:
        assert placed + fitting + blocked == needed, line
        assert counts[5] in (None, told.gang.reason_figures["resource"])


def check_pods(told: Told) -> None:
    """Nodes are counted only where nodes are the cause."""
    if told.page["reason"] is None or told.page["reason"]["code"] in ON_NODES:
        return
    code = told.page["reason"]["code"]
    message = told.page["reason"]["message"]
    for pod in told.page["pods"]:
        assert "nodes are unavailable" not in pod["message"], code
        assert pod["message"] == message or "can possibly be scheduled" in pod["message"]


def check_figures(told: Told) -> None:
    """What a sentence says is in use is what pods hold on nodes."""
    figures = told.gang.reason_figures
    if (
        "used" in figures
        and "level" in figures
        and figures.get("limit")
        and told.gang.reason_code != "ClusterBusy"
    ):
        stored = QueueFigures.objects.get(queue__name=figures["level"])
        assert figures["used"] == stored.allocated.amount(figures["resource"])
    if told.gang.reason_code == "NoNodeFits":
        most = max(
            row.allocatable["cpu"] for row in Node.objects.filter(ready=True, unschedulable=False)
        )
        assert f"with {most // 1000} cpu" in told.gang.reason_message


def check_estimate(told: Told) -> None:
    """Only from jobs that are about as large."""
    card = told.page["reason"]
    if card is None:
        return
    size = told.gang.min_resources["cpu"]
    started = PodGroup.objects.filter(queue=told.gang.queue, started_at__isnull=False)
    alike = sum(1 for gang in started if 2 * gang.min_resources["cpu"] >= size)
    assert card["usual"].startswith("no estimate") == (alike < 5)


@pytest.mark.parametrize("seed", range(3))
def test_nobody_contradicts_anybody(seed: int, vcctl: Type):
    random_world(seed)

    for told in everything_told(vcctl):
        for check in (
            check_state,
            check_reason,
            check_gang_line,
            check_pods,
            check_figures,
            check_estimate,
        ):
            check(told)


def test_the_worlds_have_all_that_is_to_be_told_of():
    """Or the test above would prove little."""
    random_world(0)

    assert {"NoNodeFits", "ExceedsCapability"} & set(
        PodGroup.objects.values_list("reason_code", flat=True)
    )
    assert {"Terminated", "Aborted"} & set(Job.objects.values_list("phase", flat=True))
    assert Pod.objects.filter(phase="Running").exists()
