"""The events of a session, each seen once."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.domain.pod_conditions import general
from scheduler.engine.decisions import (
    Event,
    Outcome,
)
from scheduler.selectors.sessions.snapshots import ResidentSnapshot
from scheduler.services.records.events import EventNote
from scheduler.services.sessions.written import Written

_EVENT_KINDS = {"podgroup": "PodGroup", "pod": "Pod", "queue": "Queue"}


def event_notes(resident: ResidentSnapshot, outcome: Outcome, written: Written) -> list[EventNote]:
    queues = _queues_of_events(resident, outcome)
    notes = []
    for event in _once_for_each_gang(resident, outcome):
        if event.name in written.broken:
            continue
        namespace, _, name = event.name.rpartition("/")
        notes.append(
            EventNote(
                kind=_EVENT_KINDS.get(event.object, event.object),
                name=name,
                namespace=namespace,
                reason=event.reason,
                message=event.message,
                queue=queues.get(event.name, event.name if event.object == "queue" else ""),
                warning=event.type == "Warning",
                code=event.code,
            )
        )
    return notes


def _queues_of_events(resident: ResidentSnapshot, outcome: Outcome) -> dict[str, str]:
    """The queues of the podgroups and pods that have events.

    Whoever may see the queue may see the event.
    """
    group_of = resident.snapshot.pods.group
    rows = {said.podgroup: said.row for said in outcome.said}
    rows |= {condition.podgroup: condition.row for condition in outcome.conditions}
    rows |= {item.pod: int(group_of[item.row]) for item in outcome.pod_conditions}
    queues = {name: _queue_name(resident, row) for name, row in rows.items()}
    for evict in outcome.evictions:
        queues[evict.pod] = evict.queue
        queues[evict.podgroup] = evict.queue
    return queues


def _once_for_each_gang(resident: ResidentSnapshot, outcome: Outcome) -> Iterator[Event]:
    """All events, but of the same event of many waiting pods of a gang only the first.

    Thousands may wait.
    """
    group_of = resident.snapshot.pods.group
    gangs = {item.pod: int(group_of[item.row]) for item in outcome.pod_conditions}
    seen: set[tuple[int | None, str, str]] = set()
    for event in outcome.events:
        if event.object == "pod" and event.reason == "FailedScheduling":
            gang = gangs.get(event.name)
        else:
            gang = None
        words = (gang, event.reason, general(event.message, event.name))
        if gang is None or words not in seen:
            yield event
        seen.add(words)


def _queue_name(resident: ResidentSnapshot, group_row: int) -> str:
    row = int(resident.snapshot.groups.queue[group_row])
    if row >= 0:
        return resident.snapshot.queues[row].name
    return ""
