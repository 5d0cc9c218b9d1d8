"""A backup of a running installation's database, restored into another PostgreSQL cluster.

The scheduler goes on there. The commands are those of docs/how-to/backup.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests import postgres
from tests.running import BASE, Running

pytestmark = pytest.mark.processes
LONG = {"annotations": {"fumarole.io/run-seconds": "3600"}}
TEMPLATE = {"metadata": LONG, "spec": {"containers": []}}
TASKS = [{"name": "worker", "replicas": 2, "template": TEMPLATE}]
ENDED_SESSIONS = """
SELECT number, state, counts FROM scheduler_schedulingsession
WHERE number > %s AND state != 'Running' ORDER BY number
"""
USE_UP_NUMBERS = """
DO $$ BEGIN FOR i IN 1..50000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$
"""


@pytest.fixture
def other_cluster() -> Iterator[str]:
    with postgres.another_cluster() as address:
        yield address


def api_of(site: Running) -> httpx.Client:
    token = (site.var / "cli-token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=f"{site.address}/api/v1/", headers=headers, timeout=60)


def submit(site: Running, name: str) -> None:
    body = {"metadata": {"name": name}, "spec": {"tasks": TASKS}}
    with api_of(site) as api:
        api.post("jobs/", json=body).raise_for_status()


def wait_until_running(site: Running, name: str) -> None:
    site.wait(lambda: phase_of(site, name) == "Running", f"{name} to run")


def phase_of(site: Running, name: str) -> str:
    with api_of(site) as api:
        answer = api.get(f"jobs/default/{name}/").raise_for_status()
    return str(answer.json()["status"]["state"]["phase"])


def ended_sessions(database: str, after: int) -> list[tuple[int, str, dict[str, Any]]]:
    """Number, state and counts, the oldest first."""
    with psycopg.connect(database) as connection:
        return connection.execute(ENDED_SESSIONS, [after]).fetchall()


def newest_session(database: str) -> int:
    with psycopg.connect(database) as connection:
        found = connection.execute("SELECT max(number) FROM scheduler_schedulingsession")
        return found.fetchone()[0]


def use_up_transaction_numbers(database: str) -> None:
    """A cluster that has run for long is far ahead of a new one."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(USE_UP_NUMBERS)


def manage(database: str, *words: str) -> str:
    """`manage.py` with that database, and what it says."""
    environment = {**os.environ, "DATABASE_URL": database}
    command = [sys.executable, "manage.py", *words]
    done = subprocess.run(
        command, cwd=BASE, env=environment, text=True, capture_output=True, check=False
    )
    return done.stdout + done.stderr


def back_up_and_restore(source: str, target: str, file: Path) -> None:
    manage(source, "backup", str(file))
    assert "is whole and can be restored" in manage(source, "restore", "--check", str(file))
    assert "is restored into" in manage(target, "restore", str(file))


def newest_pod(database: str) -> int:
    with psycopg.connect(database) as connection:
        return connection.execute("SELECT max(id) FROM scheduler_pod").fetchone()[0]


def test_sessions_go_on_after_a_restore_into_another_cluster(
    tmp_path: Path,
    postgres_database: str,
    other_cluster: str,
):
    use_up_transaction_numbers(postgres_database)
    with Running(tmp_path / "var", demo=True, DATABASE_URL=postgres_database) as site:
        submit(site, "early")
        wait_until_running(site, "early")
        back_up_and_restore(postgres_database, other_cluster, tmp_path / "fumarole.backup")
        last_pod = newest_pod(other_cluster)
    restored_at = newest_session(other_cluster)

    with Running(tmp_path / "var", DATABASE_URL=other_cluster) as site:
        submit(site, "late")
        wait_until_running(site, "late")
        site.wait(lambda: len(ended_sessions(other_cluster, restored_at)) >= 5, "five sessions")
        assert phase_of(site, "early") == "Running"
    assert newest_pod(other_cluster) > last_pod
    assert "is not empty" in manage(other_cluster, "restore", str(tmp_path / "fumarole.backup"))

    found = ended_sessions(other_cluster, restored_at)
    assert {state for _, state, _ in found} == {"Done"}
    reloaded = [counts["reloaded"] for _, _, counts in found]
    assert reloaded == [True] + [False] * (len(found) - 1)
