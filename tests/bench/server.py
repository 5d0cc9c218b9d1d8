"""One PostgreSQL for all parts of a run, with a database whose tables are made once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from tests import postgres

_TEMPLATE = "fumarole_bench_template"
_HAS_TEMPLATE = "FUMAROLE_BENCH_TEMPLATE"


@contextmanager
def one_server() -> Iterator[None]:
    """Processes that are started meanwhile use it, and copy its tables."""
    kept = dict(os.environ)
    os.environ["TEST_DATABASE_URL"] = postgres.server_url()
    _make_tables(postgres.new_database(_TEMPLATE))
    os.environ[_HAS_TEMPLATE] = "1"
    try:
        yield
    finally:
        _drop(_TEMPLATE)
        os.environ.clear()
        os.environ.update(kept)


def database_with_tables(name: str) -> str:
    """The address of a new database of that name."""
    if os.environ.get(_HAS_TEMPLATE):
        return postgres.new_database(name, template=_TEMPLATE)
    address = postgres.new_database(name)
    _make_tables(address)
    return address


def _make_tables(address: str) -> None:
    environment = {"SECRET_KEY": "bench", "LOG_LEVEL": "ERROR", **os.environ}
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity", "0"],
        env={**environment, "DATABASE_URL": address},
        check=True,
    )


def drop_databases() -> None:
    """Those of parts that have ended: the server would go on tidying them."""
    _drop("fumarole_bench", "fumarole_large", keep=_TEMPLATE)


def _drop(*beginnings: str, keep: str = "") -> None:
    """Nothing, where a part has ended the server itself."""
    with suppress(psycopg.OperationalError):
        for name in postgres.database_names():
            if name.startswith(beginnings) and name != keep:
                postgres.drop_database(name)
