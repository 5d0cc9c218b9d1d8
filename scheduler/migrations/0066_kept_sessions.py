from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0065_pins")]

    operations = [
        migrations.AddField(
            model_name="savedscenario",
            name="stays",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
