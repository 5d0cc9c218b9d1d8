"""/metrics: what Prometheus reads, and who may."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from dashboard.http import metrics
from dashboard.http.session_figures import SessionFigures
from scheduler.models import PriorityClass
from scheduler.services.sessions.runner import SessionRunner
from tests.dashboard.sample import load_tree
from tests.needed import debian_program
from tests.worlds import job, let_age, node, pass_time, run_session

pytestmark = pytest.mark.django_db


def read() -> dict[str, dict[tuple[str, ...], float]]:
    answer = Client().get("/metrics")
    assert answer.status_code == 200
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(answer.content.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_queues_are_told_with_volcanos_names():
    load_tree()

    found = read()
    assert found["volcano_queue_allocated_milli_cpu"][("language",)] == 300_000
    assert found["volcano_queue_deserved_memory_bytes"][("vision",)] == 2**40
    assert found["volcano_queue_allocated_scalar_resources"][("language", "nvidia.com/gpu")] == 30
    assert found["fumarole_queue_guarantee_scalar_resources"][("language", "nvidia.com/gpu")] == 8
    assert found["volcano_queue_capacity_milli_cpu"][("vision",)] == 400_000
    assert found["volcano_queue_pod_group_running_count"][("language",)] == 3
    assert found["volcano_queue_weight"][("research",)] == 3
    assert found["fumarole_pending_jobs"][("language", "AwaitingEvaluation")] == 1
    assert ("language",) in found["volcano_queue_share"]


def test_requests_are_counted_by_route_not_by_name():
    client = Client()
    for number in range(3):
        client.get(f"/api/v1/queues/q{number}/", headers={"Accept": "application/json"})

    found = read()[
        "fumarole_http_requests_total"
    ]  # labels come in the order of their names: code, method, route
    assert sum(number for (_, _, route), number in found.items() if "queues" in route) >= 3
    assert not any("q1" in route for _, _, route in found)


@pytest.fixture(autouse=True)
def _as_after_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions are counted since the process started, which for each test is now."""
    monkeypatch.setattr(metrics, "SESSIONS", SessionFigures())


def test_sessions_and_their_actions_are_timed_in_histograms():
    node("n1", cpu="4")
    job("train")
    runner = SessionRunner("test")
    for _ in range(2):
        run_session(runner)
        pass_time(5)
    run_session(runner)

    found = read()
    assert found["fumarole_session_number"][()] == 3
    for name in ("e2e_scheduling_latency", "open_session_duration"):
        assert found[f"volcano_{name}_milliseconds_count"][()] == 3
        assert found[f"volcano_{name}_milliseconds_sum"][()] > 0
        assert found[f"volcano_{name}_milliseconds_bucket"][("+Inf",)] == 3
        assert ("5.0",) in found[f"volcano_{name}_milliseconds_bucket"]
    assert {("enqueue",), ("allocate",)} <= set(
        found["volcano_action_scheduling_latency_milliseconds_count"]
    )
    assert found["volcano_action_scheduling_latency_milliseconds_bucket"][("allocate", "+Inf")] >= 1
    assert {("claim",), ("read",), ("think",), ("write",)} == set(
        found["fumarole_session_part_seconds_count"]
    )
    assert found["volcano_task_scheduling_latency_milliseconds_count"][()] == 1
    assert found["volcano_e2e_job_scheduling_latency_milliseconds_count"][()] == 1


def test_what_was_counted_is_not_counted_again():
    node("n1", cpu="4")
    job("train")
    run_session()

    assert [read()["volcano_e2e_scheduling_latency_milliseconds_count"][()] for _ in range(3)] == [
        1,
        1,
        1,
    ]
    assert read()["volcano_task_scheduling_latency_milliseconds_count"][()] == 1
    run_session()
    assert read()["volcano_e2e_scheduling_latency_milliseconds_count"][()] == 2


def test_sessions_of_before_this_process_are_not_counted(monkeypatch: pytest.MonkeyPatch):
    """Or a restart would look like a burst."""
    run_session()
    monkeypatch.setattr(metrics, "SESSIONS", SessionFigures())

    assert read()["volcano_e2e_scheduling_latency_milliseconds_count"][()] == 0
    run_session()
    assert read()["volcano_e2e_scheduling_latency_milliseconds_count"][()] == 1


def preempt() -> None:
    """Two pods of low priority make room for one of high priority."""
    node("n1", cpu="4")
    PriorityClass.objects.create(name="urgent", value=1000)
    job("low", replicas=4, least=1, seconds=500)
    runner = SessionRunner("test")
    run_session(runner)
    pass_time(5)
    let_age()
    job("high", cpu="2", priorityClassName="urgent")
    for _ in range(3):
        run_session(runner)
        pass_time(5)


def test_preemption_is_told_with_its_attempts_and_victims():
    preempt()

    found = read()
    assert re.search(r"^volcano_total_preemption_attempts [1-9]", text_of_metrics(), re.MULTILINE)
    assert found["volcano_pod_preemption_victims"][()] == 2
    assert found["volcano_eviction_transactions_total"][("preempt",)] == 1
    assert found["fumarole_evictions_total"] == {
        ("preempt", "default", "preempt"): 2
    }  # by action, queue and reason
    assert "# TYPE volcano_total_preemption_attempts counter" in text_of_metrics()


def test_the_evictions_of_the_last_hour_are_told_with_what_they_cost():
    assert "fumarole_evictions_per_placement" not in read()  # nothing to compare with
    preempt()

    found = read()
    placements = 4 + 1  # those of low, then the one of high
    assert found["fumarole_evictions_per_placement"][()] == pytest.approx(2 / placements)
    assert found["fumarole_work_lost_seconds"][("cores",)] >= 2 * 24 * 3600
    assert found["fumarole_work_lost_ratio"][()] > 1  # let_age() says they had run for a day


def test_promtool_finds_fault_with_nothing_but_volcanos_own_names():
    promtool = debian_program("promtool", "prometheus")
    load_tree()
    preempt()

    said = subprocess.run(
        [promtool, "check", "metrics"],
        input=text_of_metrics(),
        capture_output=True,
        text=True,
        check=False,
    )

    told = [line for line in (said.stdout + said.stderr).splitlines() if line.strip()]
    assert [line for line in told if not line.startswith("volcano_")] == []
    assert said.returncode in (0, 3)  # 3: it could be read, and has faults of style


def test_only_this_machine_reads_them_unless_said_otherwise(settings: Any):
    far = Client(REMOTE_ADDR="203.0.113.9")
    assert far.get("/metrics").status_code == 403
    settings.METRICS_PUBLIC = True
    assert far.get("/metrics").status_code == 200
    settings.METRICS_TOKEN = "secret"
    assert far.get("/metrics").status_code == 403
    assert Client().get("/metrics").status_code == 403
    assert far.get("/metrics", headers={"Authorization": "Bearer secret"}).status_code == 200


def test_methods_that_a_client_makes_up_make_no_series():
    Client().generic("BREW", "/healthz")

    told = text_of_metrics()
    assert "BREW" not in told
    assert 'method="other"' in told


def test_what_a_proxy_on_this_machine_passes_on_is_not_from_here():
    assert Client().get("/metrics", headers={"X-Forwarded-For": "203.0.113.7"}).status_code == 403


def text_of_metrics() -> str:
    return Client().get("/metrics").content.decode()
