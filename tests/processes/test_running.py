"""The real processes, started, killed and stopped."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running import BASE, Running, is_running

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("site") / "var") as running:
        running.wait_until_sessions_run()
        yield running


def test_the_first_page_asks_to_sign_in(site: Running):
    page = site.get("/queues/")

    assert page.status_code == 200
    assert page.url.path == "/accounts/login/"
    assert "csrfmiddlewaretoken" in page.text


def test_the_password_is_kept_for_its_owner_only_and_stays_out_of_captured_output(site: Running):
    file = site.var / "admin-password"

    assert file.read_text().strip() not in site.output()
    assert f"Sign in as admin; the password is in {file}" in site.output()
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_address_of_its_redis_is_readable_by_its_owner_only(site: Running):
    assert (site.var / "redis-url").stat().st_mode & 0o777 == 0o600
    assert (site.var / "redis" / "redis.conf").stat().st_mode & 0o777 == 0o600


def test_the_database_is_readable_by_its_owner_only(site: Running):
    databases = list(site.var.glob("fumarole.sqlite3*"))

    assert databases
    assert {file.stat().st_mode & 0o777 for file in databases} == {0o600}


@pytest.mark.parametrize("name", ["redis", "scheduler", "web", "beat", "worker"])
def test_what_is_killed_comes_back_and_sessions_go_on(site: Running, name: str):
    site.kill(name)

    site.wait_until_sessions_run()
    assert f"{name} ended (killed by SIGKILL); starting it again" in site.output()


def test_a_pool_process_that_is_killed_on_a_busy_machine_comes_back(site: Running):
    """The next one gets no time at all for a while: longer than Celery usually waits before it
    replaces it by another.
    """
    before = site.pool_of("scheduler")
    os.kill(before[0], signal.SIGKILL)
    site.wait(
        lambda: len(site.pool_of("scheduler")) == 1 and site.pool_of("scheduler") != before,
        "another pool process",
    )
    late = site.pool_of("scheduler")

    os.kill(late[0], signal.SIGSTOP)
    time.sleep(6)
    os.kill(late[0], signal.SIGCONT)

    site.wait_until_sessions_run()
    assert site.pool_of("scheduler") == late


def test_a_worker_that_hangs_is_ended_and_sessions_go_on(site: Running):
    os.kill(site.pool_of("scheduler")[0], signal.SIGSTOP)

    site.wait_for_line("scheduler does nothing although work waits for it; ending it")
    site.wait_until_sessions_run()


def test_beat_keeps_nothing_between_its_lives(site: Running):
    assert not list(site.var.glob("*beat*"))


def test_a_second_supervisor_refuses_and_names_the_first(site: Running):
    second = Running(site.var)
    second.start()

    assert second.wait_for_end() == 1
    assert len(second.lines) == 1
    assert f"process {site.process.pid}, at {site.address}/" in second.output()
    assert site.is_ready()


def test_a_stop_during_the_start_is_in_good_order_too(tmp_path: Path):
    site = Running(tmp_path / "var")
    site.start()
    site.wait_for_line("preparing the database")
    processes = site.processes()

    site.process.send_signal(signal.SIGTERM)

    assert site.wait_for_end() == 0
    assert not [pid for pid in processes if is_running(pid)]


def test_it_runs_on_postgresql_and_a_redis_it_is_pointed_at(
    tmp_path: Path,
    postgres_database: str,
    external_redis: str,
):
    with Running(
        tmp_path / "var", DATABASE_URL=postgres_database, REDIS_URL=external_redis
    ) as site:
        site.wait_until_sessions_run()

        assert "redis" not in site.children()
        assert not (site.var / "fumarole.sqlite3").exists()
        site.process.send_signal(signal.SIGINT)
        assert site.wait_for_end() == 0


def test_a_killed_supervisor_leaves_no_orphan_and_make_starts_and_stops_the_next(
    site: Running, tmp_path: Path
):
    """The last test of this file: it ends the site of the others."""
    processes = site.processes()
    assert len(processes) >= 8  # five, and three in the pools of the workers
    os.kill(site.process.pid, signal.SIGKILL)
    site.wait_for_end()
    wait_until_gone(processes)

    with Running(site.var, command=make_run(tmp_path), port=site.port) as next_one:
        processes = next_one.processes()
        next_one.process.send_signal(signal.SIGTERM)  # to make, as a service manager would
        next_one.wait_for_end()

    assert not [pid for pid in processes if is_running(pid)]
    assert "fumarole  | stopping" in next_one.lines
    assert "the password is in" in next_one.output()
    assert (site.var / "admin-password").read_text().strip() not in next_one.output()
    assert not (site.var / "redis-url").exists()
    assert not (site.var / "address").exists()


def wait_until_gone(processes: set[int]) -> None:
    deadline = time.monotonic() + 30
    while left := [pid for pid in processes if is_running(pid)]:
        assert time.monotonic() < deadline, f"still running: {left}"
        time.sleep(0.05)


def make_run(folder: Path) -> tuple[str, ...]:
    """`make run` with its recipe as it is, in this Python: the installation is not what is tested
    here.
    """
    lines = (BASE / "Makefile").read_text().splitlines()
    recipe = lines[next(number for number, line in enumerate(lines) if line.startswith("run:")) + 1]
    makefile = folder / "Makefile"
    makefile.write_text(f"PY := {sys.executable}\nrun:\n{recipe}\n")
    return ("make", "-f", str(makefile), "run")
