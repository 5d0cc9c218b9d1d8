from django.db import migrations, models


class Migration(migrations.Migration):
    """A podgroup of Kubernetes itself is kept with a prefix before its name."""

    dependencies = [("scheduler", "0041_start_times")]

    operations = [
        migrations.AlterField(
            "podgroup",
            "object_name",
            models.CharField(blank=True, db_index=True, default="", max_length=320),
        ),
    ]
