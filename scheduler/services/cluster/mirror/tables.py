"""All tables of the mirror, and what new rows hold that is not mirrored."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.models import DisruptionBudget, Job, Namespace, Node, Pod, PodGroup, PriorityClass
from scheduler.services.cluster.mirror import object_rows, own_columns
from scheduler.services.cluster.mirror.queues import queue_table
from scheduler.services.cluster.mirror.table import Row, Table

_BY_GROUP = "podgroup"
_BY_BUDGET = "budget"
_BY_OBJECT = "object"


class MirrorTables:
    """What is in them is remembered. `load` reads it, after a start or a failure."""

    def __init__(self, *, schedules: bool = False) -> None:
        """With `schedules` sessions and dispatch write to podgroups and pods, too."""
        shared_by_podgroups = None
        shared_by_pods = None
        if schedules:
            shared_by_podgroups = own_columns.PODGROUP_COLUMNS
            shared_by_pods = own_columns.POD_COLUMNS
        self.namespaces = Table(Namespace, "name", object_rows.NAMESPACE_COLUMNS)
        self.priority_classes = Table(PriorityClass, "name", object_rows.PRIORITY_CLASS_COLUMNS)
        self.queues = queue_table()
        self.nodes = Table(Node, "name", object_rows.NODE_COLUMNS, fixed={"kind": ""})
        self.budgets = Table(DisruptionBudget, "uid", object_rows.BUDGET_COLUMNS)
        self.jobs = Table(Job, "uid", object_rows.JOB_COLUMNS, fixed=_NEW_JOB)
        self.podgroups = Table(
            PodGroup,
            "uid",
            object_rows.PODGROUP_COLUMNS,
            fixed=_NEW_PODGROUP,
            shared=shared_by_podgroups,
            indexed={_BY_OBJECT: lambda row: (object_key(row),)},
        )
        self.pods = Table(
            Pod,
            "uid",
            object_rows.POD_COLUMNS,
            fixed=_NEW_POD,
            shared=shared_by_pods,
            indexed={_BY_GROUP: lambda row: (row["podgroup_id"],), _BY_BUDGET: _budget_keys},
        )

    def load(self) -> None:
        for table in (
            self.namespaces,
            self.priority_classes,
            self.queues,
            self.nodes,
            self.budgets,
            self.jobs,
            self.podgroups,
            self.pods,
        ):
            table.load()

    def uid_of_group(self, key: str) -> str | None:
        """The stored uid of the podgroup that the cluster calls so; None if it has no row."""
        for uid in self.podgroups.keys_with(_BY_OBJECT, key):
            return uid
        return None

    def pods_in_group(self, group_uid: str) -> set[str]:
        """The stored uids of the pods that have rows."""
        return self.pods.keys_with(_BY_GROUP, self.podgroups.ids[group_uid])

    def groups_with_ids(self, ids: Iterable[int]) -> set[str]:
        """As pages name them."""
        found = set()
        for pk in set(ids):
            uid = self.podgroups.key_of(pk)
            if uid is not None:
                found.add(shown_key(self.podgroups.row(uid)))
        return found

    def groups_with_budget(self, key: str) -> set[str]:
        """Those with pods that this budget protects, as pages name them."""
        pods = self.pods.keys_with(_BY_BUDGET, key)
        return self.groups_with_ids(self.pods.row(uid)["podgroup_id"] for uid in pods)


def shown_key(row: Row) -> str:
    """namespace/name, as pages name it."""
    return f"{row['namespace']}/{row['name']}"


def object_key(row: Row) -> str:
    """namespace/name of a podgroup, as the cluster names it."""
    return f"{row['namespace']}/{row['object_name']}"


def _budget_keys(pod: Row) -> tuple[str, ...]:
    return tuple(f"{pod['namespace']}/{name}" for name in pod["budgets"].split(",") if name)


_NEW_JOB: Row = {
    "owner_user_id": None,
    "task_retries": {},
    "started_at": None,
    "overran_at": None,
}
_NEW_PODGROUP: Row = {
    "sla_waiting_seconds": None,
    "stopping": False,
    "conditions": [],
    "pod_conditions": [],
    "reason_code": "",
    "reason_message": "",
    "reason_figures": {},
    "reason_checks": [],
    "reason_session": None,
    "starving_since": None,
    "evictions": 0,
    "half_bound_since": None,
    "expected_seconds": None,
    "enqueued_at": None,
    "started_at": None,
    "finished_at": None,
}
_NEW_POD: Row = {
    "borrowed": False,
    "reserved_node_id": None,
    "reserved_until": None,
    "run_seconds": None,
    "planned_exit_code": 0,
    "unwanted": False,
}
