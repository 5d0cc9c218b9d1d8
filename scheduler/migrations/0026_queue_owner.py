from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0025_stop_pods_in_steps")]

    operations = [
        migrations.AddField(
            "queue", "owner", models.CharField(blank=True, default="", max_length=253)
        ),
    ]
