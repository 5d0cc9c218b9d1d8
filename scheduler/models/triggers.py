"""Triggers that note which rows changed (see models/change.py), in the words of either database.

They are put in place after every migration, not by one: SQLite rebuilds a table to alter it, and
loses its triggers on the way.
"""

from __future__ import annotations

from typing import Final

from django.db.backends.base.base import BaseDatabaseWrapper

from scheduler.domain.queue_fields import SCHEDULED_FIELDS
from scheduler.models import usage_triggers

# Only what a session looks at: a new reason text or an age on a page is no reason to read the row
# again.
WATCHED: Final = {
    "queue": " ".join(
        (
            "name parent_id",
            *(field.name for field in SCHEDULED_FIELDS),
            "wish state closed_by suspended_by held_by deleted_at",
        )
    ),
    "podgroup": (
        "namespace name queue_id min_member min_task_member min_resources priority phase stopping "
        "sla_waiting_seconds starving_since evictions expected_seconds created_at"
    ),
    "podclass": (
        "requests node_selector affinity tolerations spread labels unsupported priority "
        "preemption_policy preemptable critical"
    ),
    # What changes most often comes first: the comparison ends at the first difference.
    "pod": (
        "phase node_id borrowed reserved_node_id reserved_until podgroup_id pod_class_id task "
        "namespace name created_at started_at"
    ),
    "node": "name labels allocatable taken foreign_pods taints unschedulable ready",
}

POSTGRES_NOTE = """
CREATE OR REPLACE FUNCTION scheduler_note_{kind}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO scheduler_change ("transaction", kind, row_id)
      SELECT pg_current_xact_id()::text::bigint, '{kind}', id FROM new_rows;
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO scheduler_change ("transaction", kind, row_id)
      SELECT pg_current_xact_id()::text::bigint, '{kind}', id FROM old_rows;
  ELSE
    INSERT INTO scheduler_change ("transaction", kind, row_id)
      SELECT pg_current_xact_id()::text::bigint, '{kind}', n.id FROM new_rows n JOIN old_rows o USING (id)
      WHERE ({new}) IS DISTINCT FROM ({old});
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER scheduler_{kind}_inserted AFTER INSERT ON scheduler_{kind}
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION scheduler_note_{kind}();
CREATE OR REPLACE TRIGGER scheduler_{kind}_updated AFTER UPDATE ON scheduler_{kind}
  REFERENCING NEW TABLE AS new_rows OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION scheduler_note_{kind}();
CREATE OR REPLACE TRIGGER scheduler_{kind}_deleted AFTER DELETE ON scheduler_{kind}
  REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION scheduler_note_{kind}();
"""

# Half of each page of the pods is left free: a pod that changes stays on its page, so that no index
# has to be written.
ROOM_FOR_CHANGES = (
    "ALTER TABLE scheduler_pod SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05)"
)

SQLITE_NOTES = (
    "CREATE TRIGGER IF NOT EXISTS scheduler_{kind}_inserted AFTER INSERT ON scheduler_{kind} BEGIN "
    "INSERT INTO scheduler_change (\"transaction\", kind, row_id) VALUES (0, '{kind}', NEW.id); "
    "END",
    "CREATE TRIGGER IF NOT EXISTS scheduler_{kind}_updated AFTER UPDATE OF {columns} ON "
    "scheduler_{kind} WHEN {differs} BEGIN "
    "INSERT INTO scheduler_change (\"transaction\", kind, row_id) VALUES (0, '{kind}', NEW.id); "
    "END",
    "CREATE TRIGGER IF NOT EXISTS scheduler_{kind}_deleted AFTER DELETE ON scheduler_{kind} BEGIN "
    "INSERT INTO scheduler_change (\"transaction\", kind, row_id) VALUES (0, '{kind}', OLD.id); "
    "END",
)


# The audit log only ever grows: whoever tries to change or delete a row of it, the database
# refuses.
AUDIT_TRIGGERS: Final = (
    "scheduler_audit_no_update",
    "scheduler_audit_no_delete",
    "scheduler_audit_no_replace",
)

POSTGRES_AUDIT = (
    "CREATE OR REPLACE FUNCTION scheduler_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ "
    "BEGIN RAISE EXCEPTION 'the audit log cannot be changed'; END $$",
    "CREATE OR REPLACE TRIGGER scheduler_audit_no_update BEFORE UPDATE ON scheduler_auditentry "
    "FOR EACH ROW EXECUTE FUNCTION scheduler_audit_refuse()",
    "CREATE OR REPLACE TRIGGER scheduler_audit_no_delete BEFORE DELETE ON scheduler_auditentry "
    "FOR EACH ROW EXECUTE FUNCTION scheduler_audit_refuse()",
    "CREATE OR REPLACE TRIGGER scheduler_audit_no_replace BEFORE TRUNCATE ON scheduler_auditentry "
    "FOR EACH STATEMENT EXECUTE FUNCTION scheduler_audit_refuse()",
)
SQLITE_AUDIT = (
    "CREATE TRIGGER IF NOT EXISTS scheduler_audit_no_update BEFORE UPDATE ON scheduler_auditentry "
    "BEGIN SELECT RAISE(ABORT, 'the audit log cannot be changed'); END",
    "CREATE TRIGGER IF NOT EXISTS scheduler_audit_no_delete BEFORE DELETE ON scheduler_auditentry "
    "BEGIN SELECT RAISE(ABORT, 'the audit log cannot be changed'); END",
    "CREATE TRIGGER IF NOT EXISTS scheduler_audit_no_replace BEFORE INSERT ON scheduler_auditentry "
    "WHEN EXISTS (SELECT 1 FROM scheduler_auditentry WHERE id = NEW.id) "
    "BEGIN SELECT RAISE(ABORT, 'the audit log cannot be changed'); END",
)

_NAMES: Final = frozenset(
    f"scheduler_{kind}_{happening}"
    for kind in WATCHED
    for happening in ("inserted", "updated", "deleted")
) | {*AUDIT_TRIGGERS, *usage_triggers.TRIGGERS}


def ensure_triggers(connection: BaseDatabaseWrapper) -> None:
    """Put every trigger in place that is not there."""
    if _present_triggers(connection) >= _NAMES:
        return
    with connection.cursor() as cursor:
        for statement in _create_statements(connection.vendor):
            cursor.execute(statement)
        if connection.vendor == "postgresql":
            cursor.execute(ROOM_FOR_CHANGES)


def _present_triggers(connection: BaseDatabaseWrapper) -> frozenset[str]:
    asks = {
        "postgresql": "SELECT tgname FROM pg_trigger WHERE tgname LIKE 'scheduler%%'",
        "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
    }
    with connection.cursor() as cursor:
        cursor.execute(asks[connection.vendor])
        return frozenset(name for (name,) in cursor.fetchall())


def _create_statements(vendor: str) -> list[str]:
    statements: list[str] = list(SQLITE_AUDIT)
    if vendor == "postgresql":
        statements = list(POSTGRES_AUDIT)
    statements += usage_triggers.STATEMENTS[vendor]
    for kind, watched in WATCHED.items():
        names = [f'"{name}"' for name in watched.split()]
        if vendor == "postgresql":
            new = ", ".join(f"n.{name}" for name in names)
            old = ", ".join(f"o.{name}" for name in names)
            statements.append(POSTGRES_NOTE.format(kind=kind, new=new, old=old))
        else:
            differs = " OR ".join(f"NEW.{name} IS NOT OLD.{name}" for name in names)
            statements += [
                note.format(kind=kind, columns=", ".join(names), differs=differs)
                for note in SQLITE_NOTES
            ]
    return statements
