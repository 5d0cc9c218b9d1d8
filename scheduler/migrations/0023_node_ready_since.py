from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0022_promised_figures")]

    operations = [
        migrations.AddField("node", "ready_since", models.DateTimeField(blank=True, editable=False, null=True)),
    ]
