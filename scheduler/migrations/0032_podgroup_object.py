from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0031_mirror")]

    operations = [
        migrations.AddField(
            "podgroup",
            "object_name",
            models.CharField(blank=True, db_index=True, default="", max_length=253),
        ),
        migrations.AddField("podgroup", "object_uid", models.UUIDField(blank=True, null=True)),
    ]
