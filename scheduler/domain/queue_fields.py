"""Every field of a queue's `spec`, in one table.

From it follow how a manifest is read and written, what is stored, what a session reads, who may
change it, the API's shape, the form, the search box of the tree and what a change is told as.
`docs/how-to/add-a-queue-field.md` says what else a new field needs. The table of `vcctl` is in
`dashboard/cli/queues/fields.py`; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from scheduler.domain.queues import DequeueStrategy, QueueSpec, QueueState
from scheduler.domain.resources import NOTHING

MOST_WEIGHT: Final = 65535
_MOST_PRIORITY: Final = 2**31 - 1
_MOST_SECONDS: Final = 365 * 24 * 3600
_MOST_WORK: Final = 10_000_000


class FieldKind(StrEnum):
    NUMBER = "number"
    SECONDS = "seconds"  # whole seconds; None where the queue takes them from above
    LIMIT = "limit"  # the most of something; None where the queue has no limit of its own
    TRUTH = "truth"
    CHOICE = "choice"
    AMOUNTS = "amounts"  # quantities by resource
    QUEUE = "queue"  # the name of another queue
    WORD = "word"  # any text
    LINE = "line"  # plain text without control characters
    PARAGRAPH = "paragraph"  # the same, but line breaks are allowed
    NAMES = "names"  # a list in manifests; kept as one text with commas


class ChangedBy(StrEnum):
    """Who may change a field.

    Whoever owns a queue must not be able to take the share of its siblings.
    """

    PARENT_ADMIN = "an admin of the parent"
    OWN_ADMIN = "an admin of the queue"
    OPERATOR = "an operator of the queue"


@dataclass(frozen=True)
class QueueField:
    """`name` is the attribute of `QueueSpec`.

    `most` is the largest number, or the most characters of a text.
    """

    name: str
    kind: FieldKind
    label: str
    default: Any
    changed_by: ChangedBy = ChangedBy.OWN_ADMIN
    help: str = ""
    column: str = ""  # where it is not the name
    nested: str = ""  # the key inside of the field that holds its value, as in guarantee.resource
    choices: type[StrEnum] | None = None
    least: int = 0
    most: int = 253
    rule_id: str = "invalid_value"  # of a value that is refused
    is_scheduled: bool = False  # a session reads it
    is_in_tree: bool = False  # shown in each row of the tree, which can be searched for it

    @cached_property
    def key(self) -> str:
        """Its key in a manifest's `spec`."""
        first, *others = self.name.split("_")
        return first + "".join(word.capitalize() for word in others)

    @cached_property
    def path(self) -> str:
        """Where its value stands in a manifest."""
        return ".".join(filter(None, ("spec", self.key, self.nested)))


QUEUE_FIELDS: Final = (
    QueueField(
        "weight",
        FieldKind.NUMBER,
        "Weight",
        1,
        ChangedBy.PARENT_ADMIN,
        least=1,
        most=MOST_WEIGHT,
        rule_id="weight_out_of_range",
        is_scheduled=True,
    ),
    QueueField(
        "capability",
        FieldKind.AMOUNTS,
        "Capability",
        NOTHING,
        ChangedBy.PARENT_ADMIN,
        is_scheduled=True,
    ),
    QueueField(
        "deserved",
        FieldKind.AMOUNTS,
        "Deserved",
        NOTHING,
        ChangedBy.PARENT_ADMIN,
        is_scheduled=True,
    ),
    QueueField(
        "guarantee",
        FieldKind.AMOUNTS,
        "Guarantee",
        NOTHING,
        ChangedBy.PARENT_ADMIN,
        nested="resource",
        is_scheduled=True,
    ),
    QueueField(
        "reclaimable",
        FieldKind.TRUTH,
        "Reclaimable",
        True,
        ChangedBy.PARENT_ADMIN,
        is_scheduled=True,
    ),
    QueueField(
        "parent",
        FieldKind.QUEUE,
        "Parent",
        "root",
        ChangedBy.PARENT_ADMIN,
        is_scheduled=True,
    ),
    QueueField(
        "priority",
        FieldKind.NUMBER,
        "Priority",
        0,
        ChangedBy.PARENT_ADMIN,
        most=_MOST_PRIORITY,
        rule_id="priority_out_of_range",
        is_scheduled=True,
    ),
    QueueField(
        "dequeue_strategy",
        FieldKind.CHOICE,
        "When the first job does not fit",
        DequeueStrategy.TRAVERSE,
        choices=DequeueStrategy,
        rule_id="invalid_dequeue_strategy",
        is_scheduled=True,
    ),
    QueueField(
        "min_run_seconds",
        FieldKind.SECONDS,
        "Minimum running time",
        None,
        ChangedBy.PARENT_ADMIN,  # it keeps siblings from taking back what is theirs
        help="Seconds that a pod runs before reclaim and preempt may evict it. "
        "Empty: as the queue above it. 0: none. "
        "Policies without wholeGangs ignore it.",
        most=_MOST_SECONDS,
        rule_id="min_run_seconds_out_of_range",
        is_scheduled=True,
    ),
    QueueField(
        "max_waiting_jobs",
        FieldKind.LIMIT,
        "Waiting jobs",
        None,
        ChangedBy.PARENT_ADMIN,
        help="Jobs that may wait here and below, all users together.",
        least=1,
        most=_MOST_WORK,
        rule_id="limit_out_of_range",
    ),
    QueueField(
        "max_waiting_pods",
        FieldKind.LIMIT,
        "Waiting pods",
        None,
        ChangedBy.PARENT_ADMIN,
        help="Pods that may wait here and below, all users together.",
        least=1,
        most=_MOST_WORK,
        rule_id="limit_out_of_range",
    ),
    QueueField(
        "max_waiting_jobs_per_user",
        FieldKind.LIMIT,
        "Waiting jobs of each user",
        None,
        ChangedBy.PARENT_ADMIN,
        help="Jobs of one user that may wait here and below.",
        least=1,
        most=_MOST_WORK,
        rule_id="limit_out_of_range",
    ),
    QueueField(
        "max_waiting_pods_per_user",
        FieldKind.LIMIT,
        "Waiting pods of each user",
        None,
        ChangedBy.PARENT_ADMIN,
        help="Pods of one user that may wait here and below.",
        least=1,
        most=_MOST_WORK,
        rule_id="limit_out_of_range",
    ),
    QueueField(
        "max_pods_per_job",
        FieldKind.LIMIT,
        "Pods of one job",
        None,
        ChangedBy.PARENT_ADMIN,
        help="Pods that one job here or below may have, all its tasks together.",
        least=1,
        most=_MOST_WORK,
        rule_id="limit_out_of_range",
    ),
    QueueField(
        "max_run_seconds",
        FieldKind.LIMIT,
        "Longest running time",
        None,
        ChangedBy.PARENT_ADMIN,
        help="Seconds that a job may run here or below. Then it is ended.",
        least=1,
        most=_MOST_SECONDS,
        rule_id="limit_out_of_range",
    ),
    QueueField(
        "state",
        FieldKind.CHOICE,
        "Begins as",
        QueueState.OPEN,
        ChangedBy.OPERATOR,
        column="wish",
        choices=QueueState,
        rule_id="invalid_state",
        is_scheduled=True,
    ),
    QueueField(
        "type",
        FieldKind.WORD,
        "Type",
        "",
        help="A word of your own, shown with the queue.",
    ),
    QueueField(
        "owner",
        FieldKind.LINE,
        "Owner",
        "",
        help="The team or person to ask about this queue.",
        is_in_tree=True,
    ),
    QueueField(
        "description",
        FieldKind.PARAGRAPH,
        "Description",
        "",
        help="What this queue is for, shown on its page.",
        most=2000,
    ),
    QueueField(
        "namespaces",
        FieldKind.NAMES,
        "Takes work from",
        "",
        help="Namespaces whose work may come here and below, with commas between them. "
        "Empty here and above: all.",
        most=4000,
    ),
)
"""In the order in which a manifest has them."""

METADATA_FIELDS: Final = ("labels", "annotations")
"""What an admin of the queue may change of its metadata; stored as JSON."""

_TEXT_KINDS: Final = (FieldKind.WORD, FieldKind.LINE, FieldKind.PARAGRAPH, FieldKind.NAMES)
_OF_THE_TREE: Final = ("parent", "state")

PLAIN_FIELDS: Final = tuple(field for field in QUEUE_FIELDS if field.name not in _OF_THE_TREE)
"""Those that are stored as they are.

The parent is stored as a key; the state is changed by commands alone.
"""

AMOUNT_FIELDS: Final = tuple(field for field in QUEUE_FIELDS if field.kind is FieldKind.AMOUNTS)
TEXT_FIELDS: Final = tuple(field for field in QUEUE_FIELDS if field.kind in _TEXT_KINDS)
SECONDS_FIELDS: Final = tuple(field for field in QUEUE_FIELDS if field.kind is FieldKind.SECONDS)
LIMIT_FIELDS: Final = tuple(field for field in QUEUE_FIELDS if field.kind is FieldKind.LIMIT)
OPTIONAL_NUMBERS: Final = (*SECONDS_FIELDS, *LIMIT_FIELDS)
TREE_FIELDS: Final = tuple(field for field in QUEUE_FIELDS if field.is_in_tree)
SCHEDULED_FIELDS: Final = tuple(field for field in PLAIN_FIELDS if field.is_scheduled)


def names_in(text: str) -> list[str]:
    """The names of a field of the kind NAMES."""
    return [name for name in text.split(",") if name]


def names_of(fields: Iterable[QueueField]) -> tuple[str, ...]:
    return tuple(field.name for field in fields)


def field_names(changed_by: ChangedBy) -> tuple[str, ...]:
    names: list[str] = []
    for field in QUEUE_FIELDS:
        if field.changed_by is changed_by:
            names.append(field.name)
    return tuple(names)


def stored_values(spec: QueueSpec) -> dict[str, Any]:
    """The plain fields and the metadata of a queue as the columns of its row take them."""
    values = {}
    for field in PLAIN_FIELDS:
        values[field.name] = getattr(spec, field.name)
    for field in PLAIN_FIELDS:
        if field.choices is not None:
            values[field.name] = values[field.name].value
    for name in METADATA_FIELDS:
        values[name] = getattr(spec, name)
    return values


_MEMBERS: Final[dict[str, dict[str, Any]]] = {}
"""By field and text, what a field with choices may be."""

for _field in PLAIN_FIELDS:
    if _field.choices is not None:
        _MEMBERS[_field.name] = {member.value: member for member in _field.choices}


def with_choices(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of plain fields as they were stored, each choice as a member of its enumeration."""
    chosen = dict(values)
    for name, members in _MEMBERS.items():
        chosen[name] = members[chosen[name]]
    return chosen
