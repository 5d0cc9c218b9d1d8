from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0056_single_sign_on")]

    operations = [
        migrations.AddField(
            model_name="job",
            name="run_begun_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="job",
            name="run_paused_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
