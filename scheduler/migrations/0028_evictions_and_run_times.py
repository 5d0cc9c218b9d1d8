from django.db import migrations, models

DECLARED_BY_ALL_PODS = """
UPDATE scheduler_podgroup SET expected_seconds = (
  SELECT CASE WHEN count(*) = count(p.run_seconds) THEN max(p.run_seconds) END
  FROM scheduler_pod p WHERE p.podgroup_id = scheduler_podgroup.id
) WHERE phase <> 'Completed'
"""


def drop_old_triggers(apps, schema_editor):
    """They do not watch the new columns. The right ones are made after the migrations (models/triggers.py)."""
    for kind in ("podgroup", "pod"):
        place = f" ON scheduler_{kind}" if schema_editor.connection.vendor == "postgresql" else ""
        schema_editor.execute(f"DROP TRIGGER IF EXISTS scheduler_{kind}_updated{place}")


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0027_queue_description")]

    operations = [
        migrations.RunPython(drop_old_triggers, migrations.RunPython.noop),
        migrations.AddField("podgroup", "evictions", models.PositiveIntegerField(default=0)),
        migrations.AddField("podgroup", "expected_seconds", models.FloatField(blank=True, null=True)),
        migrations.RunSQL(DECLARED_BY_ALL_PODS, migrations.RunSQL.noop),
    ]
