from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0028_evictions_and_run_times")]

    operations = [
        migrations.AddField(
            "queue",
            "min_run_seconds",
            models.PositiveIntegerField(blank=True, default=None, null=True),
        ),
    ]
