from django.db import migrations, models
from django.db.models import Q


def drop_old_trigger(apps, schema_editor):
    """It does not watch the new column. The right one is made after the migrations (models/triggers.py)."""
    place = " ON scheduler_podgroup" if schema_editor.connection.vendor == "postgresql" else ""
    schema_editor.execute(f"DROP TRIGGER IF EXISTS scheduler_podgroup_updated{place}")


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0024_commands_are_carried_out")]

    operations = [
        migrations.RunPython(drop_old_trigger, migrations.RunPython.noop),
        migrations.AddField("podgroup", "stopping", models.BooleanField(default=False)),
        migrations.AddIndex(
            "podgroup",
            models.Index(fields=["id"], condition=Q(stopping=True), name="podgroup_stopping"),
        ),
    ]
