"""What is said of queues: another state, another quota, a tree that breaks a rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from scheduler.domain.notices import Note, NoticeKind
from scheduler.domain.plans import Change
from scheduler.domain.queue_fields import AMOUNT_FIELDS, QUEUE_FIELDS, QueueField
from scheduler.domain.queues import QueueSpec
from scheduler.domain.resources import Resources
from scheduler.services.notices.publish import publish

_QUOTA: Final = (
    *AMOUNT_FIELDS,
    *(field for field in QUEUE_FIELDS if field.name in ("weight", "parent", "reclaimable")),
)


def say_states(changes: Iterable[Change], now: datetime) -> None:
    notes = []
    for change in changes:
        if change.changes_state:
            notes.append(
                Note(
                    NoticeKind.QUEUE_STATE,
                    f"state:{change.name[:120]}:{change.after.state}:{now.isoformat()}",
                    f"Queue {change.name} is {change.after.state} now",
                    change.sentence,
                    queue=change.name,
                )
            )
    publish(notes)


def say_quotas(
    before: Mapping[str, QueueSpec], after: Mapping[str, QueueSpec], now: datetime
) -> None:
    """Of queues that were there before and still are."""
    notes = []
    for name, old in before.items():
        if name in after:
            differences = list(_differences(old, after[name]))
            if differences:
                notes.append(
                    Note(
                        NoticeKind.QUEUE_QUOTA,
                        f"quota:{name[:120]}:{now.isoformat()}",
                        f"The quota of queue {name} was changed",
                        f"{'; '.join(differences)}.",
                        queue=name,
                    )
                )
    publish(notes)


def _differences(old: QueueSpec, new: QueueSpec) -> Iterator[str]:
    for field in _QUOTA:
        was = getattr(old, field.name)
        now = getattr(new, field.name)
        if was != now:
            yield f"{field.label}: {_in_words(field, was)}, now {_in_words(field, now)}"


def _in_words(field: QueueField, value: Any) -> str:
    if field not in AMOUNT_FIELDS:
        return str(value)
    if not value:
        return "none"
    quantities = Resources(value).to_quantities()
    return ", ".join(f"{amount} {name}" for name, amount in quantities.items())


def say_invalid(found: Mapping[str, Mapping[str, Any]]) -> None:
    """By queue: the condition that says which rule it breaks since when."""
    notes = []
    for name, condition in found.items():
        notes.append(
            Note(
                NoticeKind.TREE_INVALID,
                f"invalid:{name[:120]}:{condition['since']}",
                f"Queue {name} breaks a rule of the tree",
                condition["message"],
                queue=name,
            )
        )
    publish(notes)
