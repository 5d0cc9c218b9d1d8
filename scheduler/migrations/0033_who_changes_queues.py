from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0032_podgroup_object")]

    operations = [
        migrations.AddField("mirror", "queue_fields", models.JSONField(blank=True, default=list)),
        migrations.AddField(
            "mirror",
            "queue_controller",
            models.CharField(blank=True, default="fumarole", max_length=16),
        ),
    ]
