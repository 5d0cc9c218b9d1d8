"""Which rows changed: filled by triggers, whoever writes, and read by the resident snapshot.

A row of the log says "this row of that table was inserted, updated or deleted". On PostgreSQL it
carries the number of its transaction: a reader takes every entry at or past the oldest transaction
that was still running when it last looked, so that nothing that commits late is missed. On SQLite
writers come one after the other, and the log's own counter is enough.

Numbers of transactions mean something only in the PostgreSQL cluster, and in the table, that they
were written in. So the log has a name: what was restored elsewhere begins a new one.
"""

from __future__ import annotations

from django.db import models


class Change(models.Model):
    id = models.BigAutoField(primary_key=True)
    transaction = models.BigIntegerField(default=0, db_index=True)
    kind = models.CharField(max_length=12)
    row_id = models.BigIntegerField()

    class Meta:
        db_table = "scheduler_change"

    def __str__(self) -> str:
        return f"{self.kind} {self.row_id}"


class ChangeHorizon(models.Model):
    """One row: entries below this position were pruned.

    A reader that stopped before it must read everything anew.

    `log` names the log that the position and the entries belong to.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    position = models.BigIntegerField(default=0)
    log = models.CharField(max_length=64, default="")

    def __str__(self) -> str:
        return str(self.position)
