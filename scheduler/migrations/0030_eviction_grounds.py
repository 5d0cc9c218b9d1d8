from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0029_queue_min_run_seconds")]

    operations = [
        migrations.AddField(
            "eviction", "rule", models.CharField(blank=True, default="", max_length=32)
        ),
        migrations.AddField("eviction", "grounds", models.JSONField(blank=True, default=dict)),
        migrations.AddField("eviction", "ran_seconds", models.FloatField(default=0.0)),
        migrations.AddField("eviction", "accelerator_seconds", models.FloatField(default=0.0)),
        migrations.AddField("eviction", "core_seconds", models.FloatField(default=0.0)),
        migrations.AlterField("eviction", "created_at", models.DateTimeField()),
        migrations.AddIndex(
            "eviction",
            models.Index(
                fields=[
                    "created_at",
                    "podgroup_name",
                    "session_number",
                    "queue_name",
                    "accelerator_seconds",
                    "core_seconds",
                ],
                name="eviction_lately",
            ),
        ),
    ]
