"""Triggers that write down the life of each pod that is over (see models/usage.py), in the words
of either database.

A life is over when the pod has succeeded or failed, when another pod takes its row (it comes back
as a new one), and when the row is deleted before. A pod that is refused by its node and waits again
goes on living.
"""

from __future__ import annotations

from typing import Final

TRIGGERS: Final = (
    "scheduler_pod_life_told",
    "scheduler_pod_life_over",
    "scheduler_pod_life_gone",
)
_ENDED = "('Succeeded', 'Failed')"
_COLUMNS = (
    "pod_uid, pod_name, queue_name, namespace, job, owner, requests, created_at, began_at, "
    "ended_at, booked"
)
_OVER = (
    f"{{old}}.phase NOT IN {_ENDED} AND ({{new}}.phase IN {_ENDED} OR {{new}}.uid <> {{old}}.uid)"
)
_ENDED_AT = (
    "CASE WHEN {new}.uid <> {old}.uid THEN {new}.created_at "
    "ELSE COALESCE({new}.finished_at, {now}) END"
)
_NEW_TO_US = (
    f"{{new}}.phase IN {_ENDED} AND {{new}}.finished_at > {{lately}} "
    "AND NOT EXISTS (SELECT 1 FROM scheduler_podstretch s WHERE s.pod_uid = {new}.uid)"
)
"""A pod that was heard of when it was over already. What is older has been told before."""
_BEGAN = (
    "CASE WHEN {old}.phase = 'Pending' THEN NULL "
    "ELSE COALESCE({old}.bound_at, {old}.started_at, {old}.created_at) END"
)
_BEGAN_AND_OVER = (
    f"CASE WHEN {{new}}.uid <> {{old}}.uid THEN {_BEGAN} "
    "WHEN {new}.bound_at IS NOT NULL THEN {new}.bound_at "
    f"WHEN {{new}}.started_at IS NOT NULL THEN {{new}}.started_at ELSE {_BEGAN} END"
)


def _insert(row: str, began: str, ended: str, source: str, where: str) -> str:
    """`row` names the pod that is over, `source` is where the statement finds its podgroup."""
    return (
        f"INSERT INTO scheduler_podstretch ({_COLUMNS}) "
        f"SELECT {row}.uid, {row}.namespace || '/' || {row}.name, q.name, g.namespace, g.name, "
        f"g.owner, c.requests, {row}.created_at, {began}, {ended}, false FROM {source} "
        "JOIN scheduler_queue q ON q.id = g.queue_id "
        f"JOIN scheduler_podclass c ON c.id = {row}.pod_class_id WHERE {where};"
    )


def _postgres() -> str:
    words = {
        "old": "o",
        "new": "n",
        "now": "statement_timestamp()",
        "lately": "statement_timestamp() - interval '2 days'",
    }
    group = "JOIN scheduler_podgroup g ON g.id = {}.podgroup_id"
    told = _insert(
        "n",
        "COALESCE(n.bound_at, n.started_at)",
        "n.finished_at",
        f"new_rows n {group.format('n')}",
        _NEW_TO_US.format(**words),
    )
    over = _insert(
        "o",
        _BEGAN_AND_OVER.format(**words),
        _ENDED_AT.format(**words),
        f"old_rows o JOIN new_rows n USING (id) {group.format('o')}",
        _OVER.format(**words),
    )
    gone = _insert(
        "o",
        _BEGAN.format(**words),
        f"COALESCE(o.finished_at, {words['now']})",
        f"old_rows o {group.format('o')}",
        f"o.phase NOT IN {_ENDED}",
    )
    return f"""
CREATE OR REPLACE FUNCTION scheduler_tell_pod_life() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    {told}
  ELSIF TG_OP = 'DELETE' THEN
    {gone}
  ELSE
    {over}
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER scheduler_pod_life_told AFTER INSERT ON scheduler_pod
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION scheduler_tell_pod_life();
CREATE OR REPLACE TRIGGER scheduler_pod_life_over AFTER UPDATE ON scheduler_pod
  REFERENCING NEW TABLE AS new_rows OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION scheduler_tell_pod_life();
CREATE OR REPLACE TRIGGER scheduler_pod_life_gone AFTER DELETE ON scheduler_pod
  REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION scheduler_tell_pod_life();
"""


def _sqlite() -> tuple[str, ...]:
    words = {
        "old": "OLD",
        "new": "NEW",
        # as the models store moments: SQLite compares them as text
        "now": "strftime('%Y-%m-%d %H:%M:%f', 'now')",
        "lately": "strftime('%Y-%m-%d %H:%M:%f', 'now', '-2 days')",
    }
    source = "scheduler_podgroup g"
    told = _insert(
        "NEW",
        "COALESCE(NEW.bound_at, NEW.started_at)",
        "NEW.finished_at",
        source,
        "g.id = NEW.podgroup_id",
    )
    began, ended = _BEGAN_AND_OVER.format(**words), _ENDED_AT.format(**words)
    over = _insert("OLD", began, ended, source, "g.id = OLD.podgroup_id")
    gone = _insert(
        "OLD",
        _BEGAN.format(**words),
        f"COALESCE(OLD.finished_at, {words['now']})",
        source,
        "g.id = OLD.podgroup_id",
    )
    return (
        "CREATE TRIGGER IF NOT EXISTS scheduler_pod_life_told AFTER INSERT ON scheduler_pod "
        f"WHEN {_NEW_TO_US.format(**words)} BEGIN {told} END",
        "CREATE TRIGGER IF NOT EXISTS scheduler_pod_life_over AFTER UPDATE OF phase, uid ON "
        f"scheduler_pod WHEN {_OVER.format(**words)} BEGIN {over} END",
        "CREATE TRIGGER IF NOT EXISTS scheduler_pod_life_gone AFTER DELETE ON scheduler_pod "
        f"WHEN OLD.phase NOT IN {_ENDED} BEGIN {gone} END",
    )


STATEMENTS: Final = {"postgresql": (_postgres(),), "sqlite": _sqlite()}
