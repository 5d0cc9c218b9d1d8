"""Say of each audit entry whose business it is, and which deed it followed from."""

from django.db import migrations, models


def lift_the_guard(apps, schema_editor):
    """So that the rows there are can be told apart; the trigger is put back after the migrations (models/triggers.py)."""
    place = " ON scheduler_auditentry" if schema_editor.connection.vendor == "postgresql" else ""
    schema_editor.execute(f"DROP TRIGGER IF EXISTS scheduler_audit_no_update{place}")


def tell_apart(apps, schema_editor):
    entries = apps.get_model("scheduler", "AuditEntry").objects.using(schema_editor.connection.alias)
    entries.filter(kind__in=("Job", "PodGroup", "Pod")).update(deeds="work")
    entries.filter(action__in=("ChangePreferences", "ChangePassword", "SaveView", "DeleteView")).update(deeds="own")


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0018_answers_without_workers")]

    operations = [
        migrations.RunPython(lift_the_guard, migrations.RunPython.noop),
        migrations.AddField("auditentry", "follows", models.CharField(blank=True, default="", max_length=253)),
        migrations.AddField(
            "auditentry",
            "deeds",
            models.CharField(choices=[("admin", "admin"), ("work", "work"), ("own", "own")], default="admin", max_length=8),
        ),
        migrations.RunPython(tell_apart, migrations.RunPython.noop),
        migrations.AddIndex("auditentry", models.Index(fields=["deeds", "id"], name="scheduler_a_deeds_d13b51_idx")),
    ]
