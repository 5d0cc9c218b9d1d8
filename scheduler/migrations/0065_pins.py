from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0064_counts_of_gangs")]

    operations = [
        migrations.AddField(
            model_name="preference",
            name="pinned_queues",
            field=models.JSONField(blank=True, default=list),
        ),
        migrations.AddField(
            model_name="preference",
            name="pinned_views",
            field=models.JSONField(blank=True, default=list),
        ),
    ]
