"""Migrations let a large cluster go on: no long lock on a large table.

`tests/bench/migrations.py` measures those that were there before. New ones use the operations of
scheduler/models/quiet_migrations.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import OperationalError, connection, models
from django.db.migrations import AddField, AddIndex, RunPython
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ModelState, ProjectState

from scheduler.models.quiet_migrations import (
    AddCheckQuietly,
    AddIndexQuietly,
    CheckOldRows,
    RemoveIndexQuietly,
    TogetherOnce,
    portions,
)
from tests.models.migration_locks import locking

LAST_MEASURED = "0045_queue_limits"  # those up to it were there before this rule


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ('CREATE INDEX "a" ON "scheduler_pod" ("name")', "builds an index"),
        ('CREATE UNIQUE INDEX "a" ON "scheduler_pod" ("name")', "builds an index"),
        ('ALTER TABLE "scheduler_event" ALTER COLUMN "a" TYPE text USING "a"::text', "rewrites"),
        ('ALTER TABLE "scheduler_event" ALTER COLUMN "a" SET NOT NULL', "reads all rows"),
        ('ALTER TABLE "scheduler_job" ADD CONSTRAINT "a" CHECK ("b" > 1)', "checks all rows"),
    ],
)
def test_a_statement_that_stops_writers_is_named(statement: str, words: str):
    (found,) = locking([statement])

    assert words in found


@pytest.mark.parametrize(
    "statement",
    [
        'CREATE INDEX CONCURRENTLY "a" ON "scheduler_pod" ("name")',
        'CREATE INDEX "a" ON "scheduler_queue" ("name")',
        'ALTER TABLE "scheduler_pod" ADD COLUMN "a" integer DEFAULT 0 NOT NULL',
        'ALTER TABLE "scheduler_job" ADD CONSTRAINT "a" CHECK ("b" > 1) NOT VALID',
        'ALTER TABLE "scheduler_job" VALIDATE CONSTRAINT "a"',
    ],
)
def test_others_are_not(statement: str):
    assert locking([statement]) == []


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)  # quiet operations refuse to run inside of one
def test_no_new_migration_locks_a_large_table_for_long():
    loader = MigrationLoader(connection)
    new = sorted(
        key for key in loader.disk_migrations if key[0] == "scheduler" and key[1] > LAST_MEASURED
    )

    for app, name in new:
        statements = loader.collect_sql([(loader.graph.nodes[app, name], False)])
        assert locking(statements) == [], f"{name}: see scheduler/models/quiet_migrations.py"


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_quiet_operations_make_and_remove_what_the_usual_ones_do(tried: ProjectState):
    index = models.Index(fields=["number"], name="tried_number")
    positive = models.CheckConstraint(condition=models.Q(number__gt=0), name="tried_positive")

    made = _carried_out(tried, AddIndexQuietly("tried", index))
    made = _carried_out(made, AddCheckQuietly("tried", positive))
    made = _carried_out(made, CheckOldRows("tried", "tried_positive"))
    there = set(_constraints())
    _carried_out(made, RemoveIndexQuietly("tried", "tried_number"))
    left = set(_constraints())

    assert {"tried_number", "tried_positive"} <= there
    assert there - left == {"tried_number"}


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_a_change_that_is_filled_later_is_made_whole_and_once(tried: ProjectState):
    """So a migration that was stopped while it filled rows can be started again."""
    index = models.Index(fields=["size"], name="tried_size")
    change = [AddField("tried", "size", models.IntegerField(default=0)), AddIndex("tried", index)]
    broken = TogetherOnce([*change, RunPython(_fails)], "scheduler_tried", "size")

    with pytest.raises(OperationalError, match="stopped"):
        _carried_out(tried, broken)
    left = _columns()
    once = TogetherOnce(change, "scheduler_tried", "size")
    _carried_out(tried, once)
    _carried_out(tried, once)

    assert left == {"id", "number"}
    assert _columns() == {"id", "number", "size"}
    assert "tried_size" in _constraints()


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_rows_are_filled_in_portions_that_leave_none_out(tried: ProjectState):
    rows = tried.apps.get_model("scheduler", "Tried").objects
    rows.bulk_create(rows.model(pk=number, number=0) for number in (1, 2000, 2001, 4001))

    found = list(portions(connection, "scheduler_tried"))

    assert found == [(1, 2001), (2001, 4001), (4001, 6001)]


@pytest.mark.parametrize("name", ["0017_pods_in_steps", "0028_evictions_and_run_times"])
def test_rows_are_not_filled_under_the_lock_of_a_new_column(name: str):
    migration = MigrationLoader(None).disk_migrations["scheduler", name]
    change, fill = migration.operations

    assert not migration.atomic
    assert isinstance(change, TogetherOnce)
    assert isinstance(fill, RunPython)
    assert not fill.atomic


def _fails(*_: object) -> None:
    raise OperationalError("stopped")


@pytest.fixture
def tried(transactional_db: None) -> Iterator[ProjectState]:
    """A table of two columns."""
    state = ProjectState()
    columns = [("id", models.AutoField(primary_key=True)), ("number", models.IntegerField())]
    state.add_model(ModelState("scheduler", "Tried", columns))
    model = state.apps.get_model("scheduler", "Tried")
    with connection.schema_editor() as editor:
        editor.create_model(model)
    yield state
    with connection.schema_editor() as editor:
        editor.delete_model(model)


def _columns() -> set[str]:
    with connection.cursor() as cursor:
        found = connection.introspection.get_table_description(cursor, "scheduler_tried")
    return {column.name for column in found}


def _carried_out(state: ProjectState, operation: object) -> ProjectState:
    after = state.clone()
    operation.state_forwards("scheduler", after)
    with connection.schema_editor(atomic=False) as editor:
        operation.database_forwards("scheduler", editor, state, after)
    return after


def _constraints() -> dict[str, object]:
    with connection.cursor() as cursor:
        return connection.introspection.get_constraints(cursor, "scheduler_tried")
