"""Alerts and the board: Prometheus understands them, and every metric they name exists."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from django.test import Client
from django.utils import timezone

from scheduler.models import ClusterState, Mirror, SchedulingSession
from tests.dashboard.sample import load_tree
from tests.mirrored import kubernetes_mode
from tests.needed import debian_program

ALERTS = Path("deploy/prometheus/alerts.yml")
BOARD = Path("deploy/grafana/fumarole.json")
_METRIC = re.compile(r"\b(?:fumarole|volcano)_\w+|\bup\b")


def promtool(*arguments: str) -> None:
    program = debian_program("promtool", "prometheus")
    said = subprocess.run(
        [program, *arguments], capture_output=True, text=True, check=False, cwd=ALERTS.parent
    )
    assert said.returncode == 0, said.stdout + said.stderr


def alert_queries() -> Iterator[str]:
    for group in yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]:
        for rule in group["rules"]:
            yield rule["expr"]


def board_queries() -> Iterator[str]:
    board = json.loads(BOARD.read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]


def test_the_alerts_fire_when_they_should_and_only_then():
    promtool("check", "rules", ALERTS.name)
    promtool("test", "rules", "alerts_test.yml")


def test_every_alert_is_tried_in_both_ways():
    """By name: silent while everything is well, and firing in another of the tests."""
    rules = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"][0]["rules"]
    names = {rule["alert"] for rule in rules}
    tests = yaml.safe_load((ALERTS.parent / "alerts_test.yml").read_text(encoding="utf-8"))["tests"]
    well, *others = tests

    assert {case["alertname"] for case in well["alert_rule_test"]} == names
    assert {name for name in names if name in str(others)} == names


def test_prometheus_understands_every_query_of_the_board(tmp_path: Path):
    rules = []
    for number, query in enumerate(board_queries()):
        if query.startswith("label_values"):
            continue
        plain = query.replace("$queue", ".*").replace("$resource", "nvidia.com/gpu")
        rules.append({"record": f"board:query{number}", "expr": plain})
    file = tmp_path / "board.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": rules}]}))

    assert len(rules) > 15
    promtool("check", "rules", str(file))


@pytest.mark.django_db
def test_every_metric_that_alerts_and_board_name_exists():
    load_tree()
    now = timezone.now()
    SchedulingSession.objects.create(
        number=1_000_000, state="Done", started_at=now, finished_at=now, counts={"binds": 3}
    )
    ClusterState.objects.filter(pk=1).update(last_session_at=now)
    Mirror.objects.create(pk=1, heard_at=now)
    with kubernetes_mode():
        told = Client().get("/metrics").content.decode()
    existing = {"up", *re.findall(r"^# TYPE (\S+)", told, re.MULTILINE)}
    existing |= set(re.findall(r"^([a-z_]+)[ {]", told, re.MULTILINE))

    named = set()
    for query in (*alert_queries(), *board_queries()):
        named |= set(_METRIC.findall(query))

    assert len(named) > 20
    assert {re.sub("_(bucket|sum|count)$", "", name) for name in named - existing} <= existing
