from django.db import migrations, models

from scheduler.models.quiet_migrations import FillRows, TogetherOnce, portions

DECLARED_BY_ALL_PODS = """
UPDATE scheduler_podgroup SET expected_seconds = (
  SELECT CASE WHEN count(*) = count(p.run_seconds) THEN max(p.run_seconds) END
  FROM scheduler_pod p WHERE p.podgroup_id = scheduler_podgroup.id
) WHERE phase <> 'Completed' AND id >= %s AND id < %s
"""


def drop_old_triggers(apps, schema_editor):
    """They do not watch the new columns. The right ones are made after the migrations (models/triggers.py)."""
    for kind in ("podgroup", "pod"):
        place = f" ON scheduler_{kind}" if schema_editor.connection.vendor == "postgresql" else ""
        schema_editor.execute(f"DROP TRIGGER IF EXISTS scheduler_{kind}_updated{place}")


def store_expected_seconds(apps, schema_editor):
    connection = schema_editor.connection
    for portion in portions(connection, "scheduler_podgroup"):
        with connection.cursor() as cursor:
            cursor.execute(DECLARED_BY_ALL_PODS, portion)


class Migration(migrations.Migration):
    atomic = False  # the rows are filled without the lock of the new columns

    dependencies = [("scheduler", "0027_queue_description")]

    operations = [
        TogetherOnce(
            [
                migrations.RunPython(drop_old_triggers, migrations.RunPython.noop),
                migrations.AddField("podgroup", "evictions", models.PositiveIntegerField(default=0)),
                migrations.AddField("podgroup", "expected_seconds", models.FloatField(blank=True, null=True)),
            ],
            table="scheduler_podgroup",
            column="expected_seconds",
        ),
        FillRows(store_expected_seconds),
    ]
