from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0050_queue_namespaces")]

    operations = [
        migrations.AddField(
            model_name="happening",
            name="by_default",
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
        migrations.AddField(
            model_name="preference",
            name="calendar_notices",
            field=models.BooleanField(db_default=True, default=True),
        ),
    ]
