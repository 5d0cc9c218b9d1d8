"""Keep the row of a deleted queue, so that the records of its jobs keep their queue."""

from django.db import migrations, models
from django.db.models import Q


def drop_old_trigger(apps, schema_editor):
    """It does not watch the new column; the right one is put in place after the migrations (models/triggers.py)."""
    place = " ON scheduler_queue" if schema_editor.connection.vendor == "postgresql" else ""
    schema_editor.execute(f"DROP TRIGGER IF EXISTS scheduler_queue_updated{place}")


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0015_held_figures")]

    operations = [
        migrations.RunPython(drop_old_trigger, migrations.RunPython.noop),
        migrations.AddField("queue", "deleted_at", models.DateTimeField(blank=True, editable=False, null=True)),
        migrations.AlterField("queue", "name", models.CharField(max_length=253)),
        migrations.AddIndex("queue", models.Index(fields=["name"], name="scheduler_q_name_231f90_idx")),
        migrations.AddConstraint(
            "queue",
            models.UniqueConstraint(fields=["name"], condition=Q(deleted_at=None), name="queue_name_is_unique"),
        ),
    ]
