from django.db import migrations, models

from scheduler.models.quiet_migrations import AddIndexQuietly, RemoveIndexQuietly


class Migration(migrations.Migration):
    atomic = False  # for indexes that are built beside the writers

    dependencies = [("scheduler", "0059_prices_and_fairness")]

    operations = [
        AddIndexQuietly(
            model_name="podgroup",
            index=models.Index(fields=["phase", "reason_code"], name="podgroup_waits_by_reason"),
        ),
        AddIndexQuietly(
            model_name="podgroup",
            index=models.Index(fields=["priority"], name="podgroup_by_priority"),
        ),
        RemoveIndexQuietly(model_name="podgroup", name="scheduler_p_phase_97bc14_idx"),
    ]
