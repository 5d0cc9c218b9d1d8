"""So many requests a minute, counted for all web processes together, and told in headers."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from django.test import Client

from dashboard.api.framework import shared_redis, throttling
from tests.dashboard.api.conftest import Caller
from tests.dashboard.conftest import RedisServer

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def redis_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttling, "_away_until", 0.0)


def test_too_many_requests_are_told_when_to_come_back(admin: Caller, settings: Any):
    settings.API_RATE_PER_MINUTE = 3
    admin.get("queues/")
    assert (admin.last["RateLimit-Limit"], admin.last["RateLimit-Remaining"]) == ("3", "2")
    admin.get("queues/")
    admin.get("queues/")

    answer = admin.get("queues/", expect=429)
    assert 1 <= int(admin.last["Retry-After"]) <= 61
    assert answer["title"] == "Too many requests"


_ANOTHER_PROCESS = (
    "import django; django.setup(); from dashboard.api.framework.throttling import "
    "count_request; print(count_request('user-1:7'))"
)


def test_processes_count_together(redis_server: RedisServer, settings: Any, tmp_path: Any):
    assert throttling.count_request("user-1:7") == 1

    environment = {
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
        "REDIS_URL": redis_server.url,
        "SECRET_KEY": settings.SECRET_KEY,
        "FUMAROLE_VAR": str(tmp_path),
    }
    other = subprocess.run(
        [sys.executable, "-c", _ANOTHER_PROCESS],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert other.stdout.strip() == "2"
    assert throttling.count_request("user-1:7") == 3


def test_counts_are_forgotten_after_their_minute(redis_server: RedisServer):
    throttling.count_request("user-2:7")

    connection = shared_redis.redis_client(redis_server.url)
    (name,) = connection.keys("fumarole:*:rate:user-2:7")
    assert 60 < connection.ttl(name) <= 120


def test_without_redis_a_process_counts_for_itself_and_nobody_waits(admin: Caller, settings: Any):
    settings.API_RATE_PER_MINUTE = 2
    admin.get("queues/")
    admin.get("queues/")
    admin.get("queues/", expect=429)

    assert throttling._away_until > 0


def test_an_address_that_a_caller_makes_up_is_not_believed(settings: Any, client: Client):
    settings.API_ANONYMOUS_RATE_PER_MINUTE = 2

    codes = [
        client.get("/api/v1/queues/", headers={"X-Forwarded-For": f"10.0.0.{number}"}).status_code
        for number in range(4)
    ]

    assert codes == [401, 401, 429, 429]


def test_wrong_tokens_are_counted(settings: Any, client: Client):
    settings.API_ANONYMOUS_RATE_PER_MINUTE = 2

    codes = [
        client.get("/api/v1/queues/", headers={"Authorization": f"Bearer fum_{number}"}).status_code
        for number in range(4)
    ]

    assert codes == [401, 401, 429, 429]
