from django.db import migrations, models
from django.db.models import Q

import scheduler.domain.resources
import scheduler.models.fields


def drop_old_trigger(apps, schema_editor):
    """It does not watch the new column. The right one is made after the migrations (models/triggers.py)."""
    place = " ON scheduler_node" if schema_editor.connection.vendor == "postgresql" else ""
    schema_editor.execute(f"DROP TRIGGER IF EXISTS scheduler_node_updated{place}")


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0030_eviction_grounds")]

    operations = [
        migrations.RunPython(drop_old_trigger, migrations.RunPython.noop),
        migrations.AddField(
            "node",
            "taken",
            scheduler.models.fields.ResourcesField(blank=True, default=scheduler.domain.resources.Resources),
        ),
        migrations.CreateModel(
            name="Mirror",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("cluster_uid", models.CharField(blank=True, default="", max_length=64)),
                ("server", models.CharField(blank=True, default="", max_length=255)),
                ("version", models.CharField(blank=True, default="", max_length=64)),
                ("positions", models.JSONField(blank=True, default=dict)),
                ("heard_at", models.DateTimeField(blank=True, null=True)),
                ("synced_at", models.DateTimeField(blank=True, null=True)),
                ("problem", models.CharField(blank=True, default="", max_length=512)),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=Q(id=1), name="one_mirror")],
            },
        ),
    ]
