from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0033_who_changes_queues")]

    operations = [
        migrations.AddField(
            "pod", "budgets", models.TextField(blank=True, db_default="", default="")
        ),
        migrations.CreateModel(
            name="DisruptionBudget",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uid", models.UUIDField(editable=False, unique=True)),
                ("namespace", models.CharField(max_length=63)),
                ("name", models.CharField(max_length=253)),
                ("selector", models.JSONField(blank=True, null=True)),
                ("min_available", models.CharField(blank=True, default="", max_length=16)),
                ("max_unavailable", models.CharField(blank=True, default="", max_length=16)),
                ("disruptions_allowed", models.IntegerField(default=0)),
                ("healthy_pods", models.IntegerField(default=0)),
                ("needed_pods", models.IntegerField(default=0)),
            ],
            options={
                "ordering": ("namespace", "name"),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("namespace", "name"), name="budget_name_is_unique_in_its_namespace"
                    )
                ],
            },
        ),
    ]
