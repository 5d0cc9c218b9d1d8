"""Namespaces, priority classes, nodes and disruption budgets: an object is a row."""

from __future__ import annotations

from collections.abc import Collection

from scheduler.domain.queues import DEFAULT
from scheduler.services.cluster.mirror import object_rows
from scheduler.services.cluster.mirror.pod_rules import ForeignPodsOnNodes
from scheduler.services.cluster.mirror.store import Store
from scheduler.services.cluster.mirror.table import Row, stored_uid
from scheduler.services.cluster.mirror.tables import MirrorTables, shown_key
from scheduler.services.cluster.mirror.taken import TakenRoom
from scheduler.services.cluster.mirror.work import Work
from scheduler.services.cluster.mirror.written import WrittenRows

BUILT_IN_NAMESPACES = frozenset({DEFAULT})


class PlainObjects:
    def __init__(
        self,
        store: Store,
        tables: MirrorTables,
        taken: TakenRoom,
        foreign: ForeignPodsOnNodes,
    ) -> None:
        self._store = store
        self._tables = tables
        self._taken = taken
        self._foreign = foreign

    def remove(self, work: Work, written: WrittenRows) -> None:
        store = self._store
        tables = self._tables
        written.nodes |= tables.nodes.delete(name for name in work.nodes if not store.node(name))
        gone = [name for name in work.priority_classes if not store.priority_class(name)]
        written.others += len(tables.priority_classes.delete(gone))
        names = work.namespaces - BUILT_IN_NAMESPACES
        gone = [name for name in names if not store.namespace(name)]
        written.others += len(tables.namespaces.delete(gone))
        self._remove_budgets(work, written)

    def _remove_budgets(self, work: Work, written: WrittenRows) -> None:
        """Their pods are told apart from them when pods are written."""
        there = {stored_uid(uid) for uid in work.budget_uids if self._store.budget(uid)}
        looked_at = {stored_uid(uid) for uid in work.budget_uids} | work.stored_budgets
        gone = [uid for uid in looked_at - there if uid in self._tables.budgets]
        self._tell_groups_of_budgets(gone, written)
        written.others += len(self._tables.budgets.delete(gone))

    def write(self, work: Work, written: WrittenRows) -> None:
        written.others += len(self._tables.namespaces.write(self._namespace_rows(work)))
        written.others += len(self._write_priority_classes(work.priority_classes))
        written.nodes |= self._tables.nodes.write(self._node_rows(work))
        changed = self._tables.budgets.write(self._budget_rows(work))
        written.others += len(changed)
        self._tell_groups_of_budgets(changed, written)

    def _namespace_rows(self, work: Work) -> dict[str, Row]:
        rows = {}
        for name in work.namespaces:
            if namespace := self._store.namespace(name):
                rows[name] = object_rows.namespace_row(namespace)
        return rows

    def _node_rows(self, work: Work) -> dict[str, Row]:
        rows = {}
        for name in work.nodes:
            if node := self._store.node(name):
                rows[name] = object_rows.node_row(
                    node, self._taken.on(name), self._foreign.on(name)
                )
        return rows

    def _budget_rows(self, work: Work) -> dict[str, Row]:
        rows = {}
        for uid in work.budget_uids:
            if budget := self._store.budget(uid):
                rows[stored_uid(uid)] = object_rows.budget_row(budget)
        return rows

    def _tell_groups_of_budgets(self, uids: Collection[str], written: WrittenRows) -> None:
        for uid in uids:
            key = shown_key(self._tables.budgets.row(uid))
            written.podgroups |= self._tables.groups_with_budget(key)

    def _write_priority_classes(self, names: Collection[str]) -> set[str]:
        """The one that stops being the default goes first: there is at most one."""
        rows = {}
        for name in names:
            if value := self._store.priority_class(name):
                rows[name] = object_rows.priority_class_row(value)
        table = self._tables.priority_classes
        others = {name: row for name, row in rows.items() if not row["global_default"]}
        changed = table.write(others)
        default = sorted(name for name, row in rows.items() if row["global_default"])
        return changed | table.write({name: rows[name] for name in default[:1]})
