"""Migrations let a large cluster go on: no long lock on a large table.

`tests/bench/migrations.py` measures those that were there before. New ones use the operations of
scheduler/models/quiet_migrations.py.
"""

from __future__ import annotations

import pytest
from django.db import connection, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ModelState, ProjectState

from scheduler.models.quiet_migrations import (
    AddCheckQuietly,
    AddIndexQuietly,
    CheckOldRows,
    RemoveIndexQuietly,
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
@pytest.mark.django_db
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
def test_quiet_operations_make_and_remove_what_the_usual_ones_do():
    name_and_number = [
        ("id", models.AutoField(primary_key=True)),
        ("number", models.IntegerField()),
    ]
    state = ProjectState()
    state.add_model(ModelState("scheduler", "Tried", name_and_number))
    index = models.Index(fields=["number"], name="tried_number")
    positive = models.CheckConstraint(condition=models.Q(number__gt=0), name="tried_positive")
    with connection.schema_editor() as editor:
        editor.create_model(state.apps.get_model("scheduler", "Tried"))

    made = _carried_out(state, AddIndexQuietly("tried", index))
    made = _carried_out(made, AddCheckQuietly("tried", positive))
    made = _carried_out(made, CheckOldRows("tried", "tried_positive"))
    there = set(_constraints())
    made = _carried_out(made, RemoveIndexQuietly("tried", "tried_number"))
    left = set(_constraints())
    with connection.schema_editor() as editor:
        editor.delete_model(made.apps.get_model("scheduler", "Tried"))

    assert {"tried_number", "tried_positive"} <= there
    assert there - left == {"tried_number"}


def _carried_out(state: ProjectState, operation: object) -> ProjectState:
    after = state.clone()
    operation.state_forwards("scheduler", after)
    with connection.schema_editor(atomic=False) as editor:
        operation.database_forwards("scheduler", editor, state, after)
    return after


def _constraints() -> dict[str, object]:
    with connection.cursor() as cursor:
        return connection.introspection.get_constraints(cursor, "scheduler_tried")
