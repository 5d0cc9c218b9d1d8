from django.db import migrations, models


def drop_old_triggers(apps, schema_editor):
    """They do not watch the new columns. The right ones are made after the migrations (models/triggers.py)."""
    for table in ("node", "podclass"):
        place = f" ON scheduler_{table}" if schema_editor.connection.vendor == "postgresql" else ""
        schema_editor.execute(f"DROP TRIGGER IF EXISTS scheduler_{table}_updated{place}")


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0035_dispatch_to_a_cluster")]

    operations = [
        migrations.RunPython(drop_old_triggers, migrations.RunPython.noop),
        migrations.AddField("podclass", "spread", models.JSONField(blank=True, default=list)),
        migrations.AddField("podclass", "labels", models.JSONField(blank=True, default=dict)),
        migrations.AddField("podclass", "unsupported", models.JSONField(blank=True, default=list)),
        migrations.AddField("node", "foreign_pods", models.JSONField(blank=True, default=list)),
    ]
