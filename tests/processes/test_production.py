"""docs/how-to/production.md, done as it is written: the processes one by one, on PostgreSQL and a
Redis of their own.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psycopg
import pytest

from dashboard.worker.life import STOPPED_WORKING
from tests.running import BASE, PATIENCE_SECONDS, children_of, clean_environment, random_port

pytestmark = pytest.mark.processes
SITE = "queues.example.com"


def commands_of(section: str) -> list[list[str]]:
    """The commands of the first shell block under that heading."""
    text = (BASE / "docs" / "how-to" / "production.md").read_text()
    block = re.search(rf"^## \d\. {section}$.*?^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert block is not None
    return [shlex.split(line) for line in block[1].splitlines()]


@pytest.fixture
def port() -> int:
    return random_port()


@pytest.fixture
def environment(
    tmp_path: Path,
    port: int,
    postgres_database: str,
    external_redis: str,
) -> dict[str, str]:
    settings = {
        "SECRET_KEY": "k" * 50,
        "ALLOWED_HOSTS": SITE,
        "CSRF_TRUSTED_ORIGINS": f"https://{SITE}",
        "TRUSTED_PROXIES": "127.0.0.1",
    }
    return clean_environment(
        tmp_path / "var",
        port,
        DATABASE_URL=postgres_database,
        REDIS_URL=external_redis,
        **settings,
    )


@pytest.fixture
def processes(port: int, environment: dict[str, str]) -> Iterator[list[subprocess.Popen[bytes]]]:
    here = {".venv/bin/python": sys.executable, "8000": str(port)}
    prepare, web, *others = (
        [here.get(word, word) for word in command]
        for command in commands_of("The database")[:1] + commands_of("The processes")
    )
    subprocess.run(prepare, cwd=BASE, env=environment, check=True)
    started = [subprocess.Popen(command, cwd=BASE, env=environment) for command in (web, *others)]
    yield started
    for process in reversed(started):
        process.kill()
        process.wait()


def get(port: int, path: str) -> httpx.Response | None:
    """As the proxy asks, for a visitor that came by HTTPS."""
    try:
        return httpx.get(
            f"http://127.0.0.1:{port}{path}",
            headers={"Host": SITE, "X-Forwarded-Proto": "https"},
            timeout=10,
        )
    except httpx.HTTPError:
        return None


def wait_until_ready(port: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (answer := get(port, "/readyz")) is None or answer.status_code != 200:
        assert time.monotonic() < deadline, answer and answer.text
        time.sleep(0.2)


def reaches_database(port: int) -> bool:
    """What /readyz says of it. How fast Redis answers is another matter on a machine with other
    work, and so is how long a request waits: one that waits too long is told to come again.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (answer := get(port, "/readyz")) is None or "checks" not in answer.json():
        assert time.monotonic() < deadline, answer and answer.text
        time.sleep(1)
    reached: bool = answer.json()["checks"]["database"]["ok"]
    return reached


def test_the_documented_processes_make_a_site_that_is_ready_and_stop_in_good_order(
    port: int, processes: list[subprocess.Popen[bytes]]
):
    wait_until_ready(port)
    page = get(port, "/accounts/login/")

    assert page is not None
    assert page.status_code == 200
    assert "Secure" in page.headers["set-cookie"]
    assert page.headers["strict-transport-security"] == "max-age=3600"
    for process in reversed(processes):
        process.terminate()
        assert process.wait(PATIENCE_SECONDS) in (0, -15)


def sessions_done(database: str) -> int:
    with psycopg.connect(database) as connection:
        (count,) = connection.execute(
            "SELECT count(*) FROM scheduler_schedulingsession WHERE state = 'Done'"
        ).fetchone()
    return count


def wait_for_sessions(database: str, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while sessions_done(database) < count:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_a_worker_that_hangs_ends_to_be_started_again(
    port: int,
    processes: list[subprocess.Popen[bytes]],
    postgres_database: str,
):
    wait_until_ready(port)
    wait_for_sessions(postgres_database, 4)  # a worker that has just started is waited for longer
    scheduler = processes[1]

    os.kill(children_of(scheduler.pid)[0], signal.SIGSTOP)

    assert scheduler.wait(PATIENCE_SECONDS) == STOPPED_WORKING


def connections_to(database: str) -> int:
    with psycopg.connect(database) as connection:
        return connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        ).fetchone()[0]


@pytest.mark.usefixtures("processes")
def test_many_requests_share_a_few_connections(port: int, postgres_database: str):
    wait_until_ready(port)
    with ThreadPoolExecutor(40) as visitors:
        reached = list(visitors.map(lambda _: reaches_database(port), range(200)))

    assert reached == [True] * len(reached)
    assert connections_to(postgres_database) < 35  # 20 of the web, some of the workers
