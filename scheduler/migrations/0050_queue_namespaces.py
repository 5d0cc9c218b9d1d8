from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0049_calendar")]

    operations = [
        migrations.AddField(
            "queue",
            "namespaces",
            models.CharField(blank=True, db_default="", default="", max_length=4000),
        ),
    ]
