"""/metrics: what Prometheus reads, and who may."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from tests.dashboard.sample import load_tree

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

    found = read()["fumarole_http_requests_total"]  # labels come in the order of their names: code, method, route
    assert sum(number for (_, _, route), number in found.items() if "queues" in route) >= 3
    assert not any("q1" in route for _, _, route in found)


def test_sessions_and_their_actions_are_timed():
    from tests.worlds import job, node, run_session

    node("n1", cpu="4")
    job("train")
    run_session()

    found = read()
    assert found["fumarole_session_number"][()] == 1
    assert found["volcano_e2e_scheduling_latency_milliseconds"][()] > 0
    assert {("enqueue",), ("allocate",)} <= set(found["volcano_action_scheduling_latency_milliseconds"])
    assert {("claim",), ("read",), ("think",), ("write",)} == set(found["fumarole_session_part_milliseconds"])


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
