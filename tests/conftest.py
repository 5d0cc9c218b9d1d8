"""The rules of the whole suite.

Which tests run where, in which order, and what happens when something they need is missing.

Markers. A test has at most one of `postgres`, `processes` and `browser`:

- none: runs on SQLite, on a real file with the settings of production (WAL, IMMEDIATE), so that
  threads may share it.
- `@pytest.mark.postgres`: runs on PostgreSQL, however pytest was called. Use `db` or
  `transactional_db` as always; nothing else is needed. The marked tests run in a second pytest
  process for each worker (tests/postgres.py), and are reported here. The server is
  TEST_DATABASE_URL, or comes from a wheel. To use a debugger, run everything on PostgreSQL:
  `DATABASE_URL=postgres://… python -m pytest tests/services/test_x.py --pdb`.
- `@pytest.mark.both_databases`: runs twice, as `test_x[sqlite]` and `test_x[postgresql]`. For a
  whole file write `pytestmark = [...]`.
- `@pytest.mark.processes`: starts the real processes. The fixture `postgres_database` is the
  address of an empty PostgreSQL database.
- `@pytest.mark.browser`: drives Chromium through pytest-playwright (`page`, `context`, `browser`).
  These tests run last, because Playwright keeps an event loop running that later asyncio tests
  would trip over.
- `@pytest.mark.kubernetes`: needs the programs of `make control-plane`. A test that uses the
  fixture `control_plane` gets this mark by itself, beside any other.
- `@pytest.mark.long`: runs only with `--long` (`make test-long`).

In parallel: `-n 2 --dist loadfile --no-loadscope-reorder`, as `make test` does. It keeps files
together, and their order. (`--dist loadgroup` would be the obvious choice, but groups nothing with
pytest 9.2: pytest-xdist issue 1386.)

A test with real processes or a browser that fails is tried once more, because a busy machine can
starve either. The summary lists it as RERUN. It fails if it fails twice, or if it hangs.

Without Chromium, PostgreSQL or a control plane their tests are skipped, and the summary says so. In
CI (`CI=true`) they fail.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import postgres
from tests.control_plane import fixtures as control_plane
from tests.needed import do_without

# A slow machine is no failure of a test.
settings.register_profile(
    "any_machine",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any_machine")

# By mark. Those of one stage take turns, because one half of them waits while the other computes.
# In CI the control plane is still being built during the first stage.
_STAGES = {"processes": 0, "": 0, "kubernetes": 1, "postgres": 1, "browser": 2}
_MOSTLY_WAITING = ("processes", "kubernetes")
_WAITING_ENDS_AT = 0.8  # of a stage, so that no worker is left alone with a long file at its end
_KINDS_BY_WEIGHT = ("processes", "postgres", "browser", "kubernetes")  # the first that it wears
# A swamped machine can starve these; in CI every test gets one more try. The summary names each.
_TRIED_TWICE = ("processes", "browser")
_HANGS = "Timeout"  # who hangs once hangs again, and takes as long
_CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str | None:
    """The installed browser; Playwright's own download is not used."""
    return next((path for name in _CHROMIUM_NAMES if (path := shutil.which(name))), None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the long forms of the tests too")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "both_databases: runs on SQLite and on PostgreSQL")
    reports = os.environ.get(postgres.REPORTS_FILE)
    if reports:
        config.pluginmanager.register(postgres.ReportWriter(config, Path(reports)))
    elif not postgres.is_this_session_on_postgres():
        config.pluginmanager.register(postgres.Delegate(config))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if any(metafunc.definition.iter_markers("both_databases")):
        metafunc.fixturenames.append("database_kind")
        metafunc.parametrize(
            "database_kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
        )


@pytest.hookimpl(trylast=True)  # after pytest-django, which sorts too
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--long"):
        _leave_out_long_forms(config, items)
    _sort_by_kind(items)
    for item in items:
        if os.environ.get("CI") or _kind(item) in _TRIED_TWICE:
            item.add_marker(pytest.mark.flaky(reruns=1, rerun_except=_HANGS))


def _sort_by_kind(items: list[pytest.Item]) -> None:
    """Files stay together, and in each stage those that wait are spread among those that compute.

    A file with any test on PostgreSQL counts as such: who comes to it starts a child. Of the
    browser's files, those with a whole installation come first, then those with many tests.
    """
    place_of = dict(_places_of_files(items))
    tests_of_file = Counter(item.path for item in items)

    def place(item: pytest.Item) -> tuple[float, ...]:
        if _kind(item) == "browser":
            without_installation = "site" not in getattr(item, "fixturenames", ())
            return (_STAGES["browser"], int(without_installation), -tests_of_file[item.path])
        return place_of[item.path]

    items.sort(key=place)


def _places_of_files(items: list[pytest.Item]) -> Iterator[tuple[Path, tuple[float, ...]]]:
    """Each file with its stage, and how far into the stage it begins."""
    for kind, paths in _files_by_kind(items).items():
        span = _WAITING_ENDS_AT if kind in _MOSTLY_WAITING else 1.0
        for rank, path in enumerate(paths):
            yield path, (_STAGES[kind], span * rank / len(paths))


def _files_by_kind(items: list[pytest.Item]) -> dict[str, list[Path]]:
    kinds_of_file: dict[Path, set[str]] = {}
    for item in items:
        marks = {mark for mark in _STAGES if mark and item.get_closest_marker(mark)}
        kinds_of_file.setdefault(item.path, set()).update(marks)
    files: dict[str, list[Path]] = {}
    for path, kinds in kinds_of_file.items():
        files.setdefault(_kind_of_file(kinds), []).append(path)
    return files


def _kind_of_file(kinds: set[str]) -> str:
    """What a file waits for longest: a control plane, then processes, then PostgreSQL."""
    return next((kind for kind in ("kubernetes", "processes", "postgres") if kind in kinds), "")


def _leave_out_long_forms(config: pytest.Config, items: list[pytest.Item]) -> None:
    long = [item for item in items if item.get_closest_marker("long")]
    items[:] = [item for item in items if item not in long]
    config.hook.pytest_deselected(items=long)


def _kind(item: pytest.Item) -> str:
    for kind in _KINDS_BY_WEIGHT:
        if item.get_closest_marker(kind):
            return kind
    return ""


def pytest_runtest_setup(item: pytest.Item) -> None:
    missing = _missing_for(item)
    if missing:
        do_without(missing)


def _missing_for(item: pytest.Item) -> str:
    """What the test needs and this machine has not, as a sentence; empty if it has all."""
    for mark, missing in _WHAT_IS_MISSING.items():
        if item.get_closest_marker(mark):
            sentence = missing()
            if sentence:
                return sentence
    return ""


def _missing_chromium() -> str:
    return (
        ""
        if chromium()
        else "no Chromium found: install the package “chromium” to run the browser tests"
    )


def _missing_postgres() -> str:
    try:
        return "" if postgres.is_this_session_on_postgres() else postgres.server_url() and ""
    except postgres.NoPostgresError as reason:
        return str(reason)


_WHAT_IS_MISSING: dict[str, Callable[[], str]] = {
    "browser": _missing_chromium,
    "kubernetes": control_plane.missing,
    "postgres": _missing_postgres,
}


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """SQLite tests use a file: an in-memory database locks whole tables as soon as a second thread
    looks.
    """
    from django.db import connection

    if connection.vendor == "sqlite":
        connection.settings_dict["TEST"]["NAME"] = str(
            tmp_path_factory.mktemp("database") / "test.sqlite3"
        )


@pytest.fixture(scope="session", autouse=True)
def quick_password_hashes() -> Iterator[None]:
    """Hashing a password costs half a second on purpose, at each wrong guess too.

    The way stays, the repeats do not.
    """
    from django.contrib.auth.hashers import PBKDF2PasswordHasher

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PBKDF2PasswordHasher, "iterations", 1)
        yield


@pytest.fixture(scope="session", autouse=True)
def audit_log_is_emptied_between_tests() -> Iterator[None]:
    """The database refuses to delete audit rows; emptying the tables after a transactional test is
    the one thing that may.

    The triggers are back at once: the flush ends with the signal that puts them in place.
    """
    from django.db import connection
    from django.test import TransactionTestCase

    from scheduler.models.triggers import AUDIT_TRIGGERS

    teardown = TransactionTestCase._fixture_teardown

    def flush(case: TransactionTestCase) -> None:
        on_table = " ON scheduler_auditentry" if connection.vendor == "postgresql" else ""
        with connection.cursor() as cursor:
            for name in AUDIT_TRIGGERS:
                cursor.execute(f"DROP TRIGGER IF EXISTS {name}{on_table}")
        teardown(case)

    TransactionTestCase._fixture_teardown = flush
    yield
    TransactionTestCase._fixture_teardown = teardown


@pytest.fixture
def postgres_database(request: pytest.FixtureRequest) -> str:
    """The address of an empty PostgreSQL database, for tests that start processes of their own."""
    missing = _missing_postgres()
    if missing:
        do_without(missing)
    worker = getattr(request.config, "workerinput", {}).get("workerid", "main")
    return postgres.new_database(f"fumarole_processes_{worker}")


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, object]) -> dict[str, object]:
    return {
        **browser_type_launch_args,
        "executable_path": chromium(),
        "args": ["--no-sandbox", "--disable-dev-shm-usage"],
    }


@pytest.fixture(autouse=True)
def _no_cluster_of_another_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forecasts keep what they read, and count, in the process; a test that is rolled back takes
    that away unseen.

    Also a count from before decides which forecast checks the sums, and so how often it asks the
    database.
    """
    from scheduler.selectors.sessions import trials

    monkeypatch.setattr(trials, "_of_this_process", trials.Trials())
