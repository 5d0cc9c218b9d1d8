from django.db import migrations, models
from django.db.models import Q

NOT_CARRIED_OUT = (
    "This command was written down by an earlier version, which did not carry it out. Give it again."
)


def close_open_commands(apps, schema_editor):
    """A command is carried out in the transaction that writes it down: none waits for a worker any more."""
    commands = apps.get_model("scheduler", "Command").objects.filter(result="Pending")
    commands.update(result="Failed", message=NOT_CARRIED_OUT, executed_at=models.F("created_at"))


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0023_node_ready_since")]

    operations = [
        migrations.RunPython(close_open_commands, migrations.RunPython.noop),
        migrations.RemoveConstraint("command", "command_result_is_known"),
        migrations.RemoveIndex("command", "command_pending"),
        migrations.AlterField(
            "command",
            "result",
            models.CharField(
                choices=[(result, result) for result in ("Done", "NoOp", "Refused", "Failed")],
                max_length=8,
            ),
        ),
        migrations.AddConstraint(
            "command",
            models.CheckConstraint(
                condition=Q(result__in=("Done", "NoOp", "Refused", "Failed")),
                name="command_result_is_known",
            ),
        ),
    ]
