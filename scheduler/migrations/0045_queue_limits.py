from django.db import migrations, models

_LIMITS = (
    "max_waiting_jobs",
    "max_waiting_pods",
    "max_waiting_jobs_per_user",
    "max_waiting_pods_per_user",
    "max_pods_per_job",
    "max_run_seconds",
)


def _new_limit(name):
    column = models.PositiveIntegerField(blank=True, default=None, null=True)
    return migrations.AddField("queue", name, column)


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0044_notices")]

    operations = [
        *(_new_limit(name) for name in _LIMITS),
        migrations.AddField("job", "overran_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField(
            "job",
            "overran",
            models.CharField(blank=True, db_default="", default="", max_length=512),
        ),
        migrations.AddIndex(
            "job",
            models.Index(
                condition=models.Q(("overran_at__isnull", False)),
                fields=["id"],
                name="job_overran",
            ),
        ),
    ]
