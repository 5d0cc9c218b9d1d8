from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0026_queue_owner")]

    operations = [
        migrations.AddField(
            "queue", "description", models.CharField(blank=True, default="", max_length=2000)
        ),
    ]
