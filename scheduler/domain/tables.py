"""The tables of a snapshot: one numpy column per attribute, alike pods interned as classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from operator import attrgetter
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from scheduler.domain.codes import StatusCode
from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.pod_rules import PodSelector, PodTerm
from scheduler.domain.workloads import ANYWHERE, Constraint, PodClass, PodStatus

Ints = npt.NDArray[np.int32]
Codes = npt.NDArray[np.int8]
Floats = npt.NDArray[np.float64]
Times = Floats  # moments and durations, in seconds
Scores = Floats  # how well each node suits a pod; higher is better
Rows = npt.NDArray[np.intp]

NO_NODE: Final = -1
LOST_NODE: Final = -2
"""The pod sits on a node that the snapshot does not know: it counts for its queue, but uses no
node.
"""
NO_QUEUE: Final = -1
MAX_REQUEST: Final = 2**46
"""A pod's request is cut here, so that the sum over any cluster stays a 64-bit number: 64 TiB, far
past any node.
"""
MAX_MINIMUM: Final = 2**54
"""The same for a podgroup's minResources."""

STATUSES: Final = len(PodStatus)
# Members of an enum are slow to look up, and these are looked up for every pod that changes.
_PENDING = int(PodStatus.PENDING)
_RELEASING = int(PodStatus.RELEASING)


class ClassTable:
    """Every distinct `PodClass`, interned: a pod only carries its number.

    Classes are added and never taken away.
    """

    def __init__(self, resources: Sequence[str]) -> None:
        self.resources = tuple(resources)
        self.values: list[PodClass] = []
        self.constraints: list[Constraint] = []
        self.roles: list[str] = []
        self._numbers: dict[PodClass, int] = {}
        self._constraint_numbers: dict[Constraint, int] = {}
        self._role_numbers: dict[str, int] = {}
        self._columns: dict[str, Any] = {}
        self._matching: dict[PodSelector, Mask] = {}
        self._role_number("")
        self._constraint_number(ANYWHERE)

    def __len__(self) -> int:
        return len(self.values)

    def copy(self) -> ClassTable:
        """With the same numbers; what is added to one is not in the other."""
        other = ClassTable(self.resources)
        for name in (
            "values",
            "constraints",
            "roles",
            "_numbers",
            "_constraint_numbers",
            "_role_numbers",
            "_columns",
            "_matching",
        ):
            setattr(other, name, getattr(self, name).copy())
        return other

    def number(self, pod_class: PodClass) -> int:
        """The number of this class, given on first sight."""
        found = self._numbers.get(pod_class)
        if found is None:
            found = self._numbers[pod_class] = len(self.values)
            self.values.append(pod_class)
            self._columns.clear()
        return found

    def _constraint_number(self, constraint: Constraint) -> int:
        if constraint not in self._constraint_numbers:
            self._constraint_numbers[constraint] = len(self.constraints)
            self.constraints.append(constraint)
        return self._constraint_numbers[constraint]

    def _role_number(self, role: str) -> int:
        if role not in self._role_numbers:
            self._role_numbers[role] = len(self.roles)
            self.roles.append(role)
        return self._role_numbers[role]

    def role_number(self, role: str) -> int:
        """The number of a role, -1 if no class has it."""
        return self._role_numbers.get(role, -1)

    def _column(self, name: str, values: Iterable[Any], dtype: Any) -> Any:
        if name not in self._columns:
            self._columns[name] = np.array(list(values), dtype=dtype)
        return self._columns[name]

    def _column_of(self, attribute: str, dtype: Any) -> Any:
        """This attribute of every class."""
        return self._column(attribute, map(attrgetter(attribute), self.values), dtype)

    def _request_row(self, pod_class: PodClass) -> list[int]:
        amounts = map(pod_class.request.amount, self.resources)
        return [min(amount, MAX_REQUEST) for amount in amounts]

    @property
    def request(self) -> Amounts:
        """Classes by resources."""
        rows = map(self._request_row, self.values)
        column: Amounts = self._column("request", rows, np.int64)
        return column.reshape(len(self.values), len(self.resources))

    @property
    def priority(self) -> Amounts:
        return self._column_of("priority", np.int64)  # type: ignore[no-any-return]

    @property
    def role(self) -> Ints:
        numbers = (self._role_number(value.role) for value in self.values)
        return self._column("role", numbers, np.int32)  # type: ignore[no-any-return]

    @property
    def constraint(self) -> Ints:
        """Number of the constraint in `constraints`."""
        numbers = (self._constraint_number(value.constraint) for value in self.values)
        return self._column("constraint", numbers, np.int32)  # type: ignore[no-any-return]

    @property
    def preemptable(self) -> Mask:
        return self._column_of("preemptable", np.bool_)  # type: ignore[no-any-return]

    @property
    def preempts(self) -> Mask:
        return self._column_of("preempts", np.bool_)  # type: ignore[no-any-return]

    @property
    def critical(self) -> Mask:
        return self._column_of("critical", np.bool_)  # type: ignore[no-any-return]

    # Rules between pods

    @property
    def has_rules(self) -> bool:
        """Whether pods of any class have rules about other pods."""
        return bool(self._rule_flags.any())

    @property
    def _rule_flags(self) -> Mask:
        flags = (bool(value.constraint.rules) for value in self.values)
        return self._column("rules", flags, np.bool_)  # type: ignore[no-any-return]

    @property
    def anti_terms(self) -> dict[PodTerm, Mask]:
        """Every anti-affinity, and which classes have it."""
        if "anti_terms" not in self._columns:
            self._columns["anti_terms"] = self._find_anti_terms()
        return self._columns["anti_terms"]  # type: ignore[no-any-return]

    def _find_anti_terms(self) -> dict[PodTerm, Mask]:
        found: dict[PodTerm, Mask] = {}
        for number in np.flatnonzero(self._rule_flags).tolist():
            value = self.values[number]
            for term in value.constraint.rules.anti_affinity:
                own = PodTerm(term.selector.of(value.namespace), term.topology_key)
                holders = found.setdefault(own, np.zeros(len(self.values), dtype=np.bool_))
                holders[number] = True
        return found

    def matching(self, selector: PodSelector) -> Mask:
        """The classes whose pods this selector matches. Only new classes are looked at."""
        known = self._matching.get(selector)
        start = 0
        if known is not None:
            start = len(known)
        if known is None or start < len(self.values):
            new = [
                selector.matches(value.namespace, dict(value.labels))
                for value in self.values[start:]
            ]
            found = np.array(new, dtype=np.bool_)
            if known is not None:
                found = np.concatenate([known, found])
            known = self._matching[selector] = found
        return known

    @property
    def best_effort(self) -> Mask:
        """Classes that ask for nothing but a place (`pods`)."""
        column: Mask = self._column("asks", map(_asks_for_more_than_a_place, self.values), np.bool_)
        return ~column


def _asks_for_more_than_a_place(pod_class: PodClass) -> bool:
    amounts = pod_class.request.items()
    return any(amount > 0 for name, amount in amounts if name != "pods")


class Columns:
    """Equally long columns, numpy arrays or lists; `set` writes rows, `grow` appends them."""

    def __len__(self) -> int:
        first = next(iter(self.__dataclass_fields__))  # type: ignore[attr-defined]
        return len(getattr(self, first))

    def copy(self) -> Self:
        return type(self)(**{name: column.copy() for name, column in self._columns()})

    def take(self, rows: Rows) -> dict[str, Any]:
        """A copy of these rows, column by column."""
        return {name: _take(column, rows) for name, column in self._columns()}

    def set(self, rows: Rows, values: Mapping[str, Any]) -> None:
        """Writes the named columns of these rows; a single value goes to all of them."""
        for name, value in values.items():
            column = getattr(self, name)
            if isinstance(column, np.ndarray):
                column[rows] = value
            else:
                _set_list(column, rows, value)

    def grow(self, values: Mapping[str, Any]) -> None:
        """Appends rows; every column must be named."""
        for name, column in self._columns():
            addition = values[name]
            if isinstance(column, np.ndarray):
                setattr(
                    self,
                    name,
                    np.concatenate([column, np.asarray(addition, dtype=column.dtype)]),
                )
            else:
                column.extend(addition)

    def _columns(self) -> list[tuple[str, Any]]:
        return [(item.name, getattr(self, item.name)) for item in fields(self)]  # type: ignore[arg-type]


def _take(column: Any, rows: Rows) -> Any:
    if isinstance(column, np.ndarray):
        return column[rows]
    return [column[row] for row in rows]


def _set_list(column: list[Any], rows: Rows, value: Any) -> None:
    if isinstance(value, (list, tuple)):
        values = value
    else:
        values = [value] * len(rows)
    for row, item in zip(rows, values, strict=True):
        column[row] = item


@dataclass(eq=False)
class PodTable(Columns):
    """All pods in any order; a row with status GONE is free.

    `node` is a row of the node table, NO_NODE or LOST_NODE; `group` a row of the podgroup table;
    `pod_class` a number of the class table.
    """

    key: list[str]  # namespace/name
    group: Ints
    pod_class: Ints
    status: Codes
    node: Ints
    created: Times
    borrowed: Mask
    reserved_node: Ints
    reserved_until: Ints
    started: Times  # when it began to run; NaN before that, and where nobody knows

    @classmethod
    def of(cls, **columns: Any) -> PodTable:
        """From columns; `created`, `borrowed`, `started` and the reservation may be left out."""
        rows = len(columns["key"])
        filled = {**_pod_defaults(rows), **columns}
        return cls(
            list(filled.pop("key")), **{name: _typed(name, value) for name, value in filled.items()}
        )


_POD_DTYPES: Final[dict[str, Any]] = {
    "group": np.int32,
    "pod_class": np.int32,
    "status": np.int8,
    "node": np.int32,
    "created": np.float64,
    "borrowed": np.bool_,
    "reserved_node": np.int32,
    "reserved_until": np.int32,
    "started": np.float64,
}


def _typed(name: str, value: Any) -> Any:
    return np.array(value, dtype=_POD_DTYPES[name])  # a copy: the table is changed in place


def _pod_defaults(rows: int) -> dict[str, Any]:
    return {
        "created": np.zeros(rows),
        "borrowed": np.zeros(rows, dtype=np.bool_),
        "reserved_node": np.full(rows, NO_NODE, dtype=np.int32),
        "reserved_until": np.full(rows, -1, dtype=np.int32),
        "started": np.full(rows, np.nan),
    }


@dataclass(eq=False)
class GroupTable(Columns):
    """All podgroups in any order; a row that is not `alive` is free.

    `queue` is a row of the snapshot's queues or NO_QUEUE. `said` is the fingerprint of what the
    last session said about the group.
    """

    key: list[str]  # namespace/name
    queue: Ints
    min_member: Ints
    priority: Amounts
    phase: Codes
    created: Times
    min_resources: Amounts
    has_min_resources: Mask
    role_minimums: list[tuple[tuple[str, int], ...]]
    starving_since: Ints
    sla_waiting_time: Times  # NaN where not set
    on_hold: list[str]
    not_permitted: list[str]
    evictions: Ints  # how often sessions have evicted pods of it
    expected_seconds: Times  # how long its pods are said to run; NaN where nobody knows
    said: Amounts
    alive: Mask

    @cached_property
    def rows(self) -> dict[str, int]:
        """Row number by key."""
        return {key: row for row, key in enumerate(self.key) if self.alive[row]}

    def set(self, rows: Rows, values: Mapping[str, Any]) -> None:
        super().set(rows, values)
        if "alive" in values or "key" in values:
            self.__dict__.pop("rows", None)

    def grow(self, values: Mapping[str, Any]) -> None:
        super().grow(values)
        self.__dict__.pop("rows", None)


@dataclass(eq=False)
class Aggregates:
    """Sums over the pods, kept up to date with them.

    A session starts from them without looking at each pod.
    """

    node_used: Amounts  # nodes x resources, releasing pods included
    node_releasing: Amounts
    group_counts: Ints  # podgroups x statuses
    group_allocated: Amounts  # podgroups x resources
    group_pending: Amounts

    @classmethod
    def empty(cls, nodes: int, groups: int, resources: int) -> Aggregates:
        return cls(
            node_used=np.zeros((nodes, resources), dtype=np.int64),
            node_releasing=np.zeros((nodes, resources), dtype=np.int64),
            group_counts=np.zeros((groups, STATUSES), dtype=np.int32),
            group_allocated=np.zeros((groups, resources), dtype=np.int64),
            group_pending=np.zeros((groups, resources), dtype=np.int64),
        )

    def count(self, pods: Mapping[str, Any], request: Amounts, sign: int) -> None:
        """Add (sign 1) or take away (-1) pods.

        They are given as the columns `group`, `status`, `node` and their requests.
        """
        status = pods["status"]
        node = pods["node"]
        group = pods["group"]
        if len(status) == 1:
            self._count_one(int(group[0]), int(status[0]), int(node[0]), request[0] * sign, sign)
            return
        np.add.at(self.group_counts, (group, status), sign)
        _add(self.group_allocated, group, request, IS_ALLOCATED[status], sign)
        _add(self.group_pending, group, request, status == StatusCode.PENDING, sign)
        on_node = node >= 0
        _add(self.node_used, node, request, on_node & OCCUPIES_NODE[status], sign)
        _add(self.node_releasing, node, request, on_node & (status == StatusCode.RELEASING), sign)

    def _count_one(self, group: int, status: int, node: int, amount: Amounts, sign: int) -> None:
        """The same for one pod, which is what happens most often."""
        self.group_counts[group, status] += sign
        if IS_ALLOCATED[status]:
            self.group_allocated[group] += amount
        if status == _PENDING:
            self.group_pending[group] += amount
        if node < 0:
            return
        if OCCUPIES_NODE[status]:
            self.node_used[node] += amount
        if status == _RELEASING:
            self.node_releasing[node] += amount

    def copy(self) -> Aggregates:
        return Aggregates(**{item.name: getattr(self, item.name).copy() for item in fields(self)})

    def grow_groups(self, rows: int) -> None:
        self.group_counts = _longer(self.group_counts, rows)
        self.group_allocated = _longer(self.group_allocated, rows)
        self.group_pending = _longer(self.group_pending, rows)


def _longer(column: Any, rows: int) -> Any:
    return np.concatenate([column, np.zeros((rows, column.shape[1]), dtype=column.dtype)])


def _add(sums: Amounts, row: Ints, request: Amounts, mask: Mask, sign: int) -> None:
    chosen = np.flatnonzero(mask)
    if len(chosen) <= 1:
        for only in chosen.tolist():
            sums[row[only]] += sign * request[only]
        return
    for resource in range(sums.shape[1]):
        np.add.at(sums[:, resource], row[chosen], sign * request[chosen, resource])


def sums_by(keys: Ints | Rows, amounts: Amounts, length: int) -> Amounts:
    """The lines of `amounts` added up by their key, one line for each key below `length`."""
    sums = np.zeros((amounts.shape[1], length), dtype=np.int64)
    if len(keys):
        places = np.asarray(keys, dtype=np.intp)
        for column, total in zip(amounts.T, sums, strict=True):
            # A run of memory at a time: many times as fast as all columns at once, or as sorting.
            np.add.at(total, places, np.ascontiguousarray(column))
    return np.ascontiguousarray(sums.T)


def length_before(mask: Mask) -> int:
    """How many entries stand before the first that is marked; all, if none is."""
    if not mask.any():
        return len(mask)
    return int(mask.argmax())


def status_mask(*statuses: PodStatus) -> Mask:
    """By status, whether it is one of these: `mask[status]` asks many pods at once."""
    mask = np.zeros(STATUSES, dtype=np.bool_)
    mask[list(statuses)] = True
    return mask


IS_ALLOCATED: Final = status_mask(
    PodStatus.ALLOCATED,
    PodStatus.BINDING,
    PodStatus.BOUND,
    PodStatus.RUNNING,
)
IS_READY: Final = status_mask(
    PodStatus.ALLOCATED,
    PodStatus.BINDING,
    PodStatus.BOUND,
    PodStatus.RUNNING,
    PodStatus.SUCCEEDED,
)
IS_SCHEDULED: Final = status_mask(
    PodStatus.BOUND,
    PodStatus.RUNNING,
    PodStatus.SUCCEEDED,
    PodStatus.FAILED,
)
OCCUPIES_NODE: Final = status_mask(
    PodStatus.ALLOCATED,
    PodStatus.BINDING,
    PodStatus.BOUND,
    PodStatus.RUNNING,
    PodStatus.RELEASING,
    PodStatus.UNKNOWN,
)
