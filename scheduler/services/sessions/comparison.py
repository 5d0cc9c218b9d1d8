"""What the other scheduler did, and what sessions in the shadow would have done, gang by gang.

Every shadow session looks at the cluster once. What changed since the look before is what the
other scheduler did; what the session decided, and is not done, is what ours would have done. Only
what is new is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any, Final

import numpy as np

from scheduler.domain.comparison import EVICTED_MESSAGE
from scheduler.domain.snapshot import Snapshot
from scheduler.domain.workloads import Phase, PodStatus
from scheduler.engine.decisions import Evict, Outcome
from scheduler.models import Comparison, Pod, PodGroup, SchedulingSession
from scheduler.models.bulk import as_parameter, execute, values_table
from scheduler.selectors.cluster.mirror import mirror_facts
from scheduler.selectors.sessions.snapshots import ResidentSnapshot

LONGEST_GAP: Final = timedelta(seconds=30)
"""Between two looks. What happened in a longer one is not compared: nobody knows when it was."""


class GangState(IntEnum):
    """How far the other scheduler has come with a gang."""

    INCOMPLETE = 0  # not all pods that it needs are there: nobody could start it
    WAITING = 1
    HALF_STARTED = 2
    STARTED = 3


_HAS_PLACES: Final = (GangState.HALF_STARTED, GangState.STARTED)
_IS_OPEN: Final = (GangState.WAITING, GangState.HALF_STARTED)


@dataclass(frozen=True, slots=True)
class Look:
    """The session that looks, and whether the look before it was not too long ago."""

    resident: ResidentSnapshot
    outcome: Outcome
    session: SchedulingSession
    is_in_time: bool

    @property
    def at(self) -> datetime:
        return self.session.started_at

    @property
    def snapshot(self) -> Snapshot:
        return self.resident.snapshot


class ShadowComparison:
    """Lives as long as its worker, and remembers the last look."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """The next look begins with what the table holds."""
        self._states: dict[int, GangState] | None = None
        self._looked_at: datetime | None = None
        self._starts: dict[int, Comparison] = {}  # open ones, by the number of the podgroup
        self._evictions: dict[int, Comparison] = {}
        self._leaving: dict[int, int] = {}  # pods that leave, by podgroup, as asked about last
        self._new: dict[int, Comparison] = {}  # by the identity of the object: no number yet
        self._changed: dict[int, Comparison] = {}

    def nothing_changed(self, session: SchedulingSession) -> None:
        """A session that found everything as it was has looked, too."""
        if self._states is not None and _is_cluster_heard():
            self._looked_at = session.started_at

    def look(
        self, resident: ResidentSnapshot, outcome: Outcome, session: SchedulingSession
    ) -> None:
        """Note what is new. `write` stores it, in the transaction of the session."""
        if resident.snapshot.paused or not _is_cluster_heard():
            return
        if self._states is None:
            self._begin(resident, session)
        look = Look(resident, outcome, session, self._is_in_time(session.started_at))
        states = gang_states(resident)
        self._note_gone(look, states)
        self._note_changed_states(look, states)
        self._note_our_starts(look)
        self._note_their_evictions(look)
        self._note_our_evictions(look)
        self._end_evictions(look, states)
        self._states = states
        self._looked_at = session.started_at

    def _begin(self, resident: ResidentSnapshot, session: SchedulingSession) -> None:
        """What is there already is no news; questions that are open stay open."""
        self._states = gang_states(resident)
        for row in Comparison.objects.filter(ended_at=None):
            if row.about == Comparison.EVICTION:
                self._evictions[row.podgroup_number] = row
            else:
                self._starts[row.podgroup_number] = row
                self._states[row.podgroup_number] = _state_of_row(row)
        for number, state in self._states.items():
            if state in _IS_OPEN and number not in self._starts:
                self._states[number] = GangState.INCOMPLETE  # so that it counts from now on
        before = SchedulingSession.objects.filter(
            state=SchedulingSession.DONE, number__lt=session.number
        )
        last = before.order_by("-number").values_list("started_at", flat=True).first()
        self._looked_at = last

    def _is_in_time(self, now: datetime) -> bool:
        return self._looked_at is not None and now - self._looked_at <= LONGEST_GAP

    # What the other scheduler did

    def _note_gone(self, look: Look, states: Mapping[int, GangState]) -> None:
        """Completed or deleted. What has completed was started, however short it ran."""
        assert self._states is not None
        gone = [number for number in self._states.keys() - states.keys() if number in self._starts]
        if not gone:
            return
        completed = set(PodGroup.objects.filter(pk__in=gone).values_list("pk", flat=True))
        self._note_starts(look, completed)
        for number in gone:
            if number not in completed:
                self._note_incomplete(look, number)

    def _note_changed_states(self, look: Look, states: Mapping[int, GangState]) -> None:
        assert self._states is not None
        started = []
        for number, state in states.items() - self._states.items():
            before = self._states.get(number)
            if state is GangState.STARTED:
                if before is not None or look.is_in_time:
                    started.append(number)
            elif state in _IS_OPEN:
                self._note_waiting(look, number, state)
            else:
                self._note_incomplete(look, number)
        self._note_starts(look, started)

    def _note_waiting(self, look: Look, number: int, state: GangState) -> None:
        row = self._starts.get(number)
        if row is None:
            row = self._new_row(look, number, Comparison.START)
            # one that is first seen with places was begun before a session could say anything
            row.was_seen = state is GangState.WAITING
            self._starts[number] = row
        if state is GangState.HALF_STARTED:
            row.half_since = look.at
        else:
            self._leave_half(row, look.at)
        self._keep(row)

    def _note_incomplete(self, look: Look, number: int) -> None:
        """It was deleted, or pods that it needs: nobody could start it any more."""
        if row := self._starts.pop(number, None):
            self._leave_half(row, look.at)
            row.ended_at = look.at
            self._keep(row)

    def _note_starts(self, look: Look, numbers: Iterable[int]) -> None:
        not_ours = []
        for number in numbers:
            row = self._starts.pop(number, None)
            if row is None:
                row = self._new_row(look, number, Comparison.START)
                row.was_seen = False
            self._leave_half(row, look.at)
            row.theirs_at = look.at
            row.ended_at = look.at
            if not look.is_in_time:
                row.was_seen = False
            if row.was_seen and row.ours_at is None:
                not_ours.append(row)
            self._keep(row)
        _add_reasons(not_ours)

    def _leave_half(self, row: Comparison, now: datetime) -> None:
        if row.half_since is None:
            return
        lasted = (now - row.half_since).total_seconds()
        row.half_seconds = max(row.half_seconds, lasted)
        row.half_since = None

    def _note_their_evictions(self, look: Look) -> None:
        """Pods that leave, and of which the cluster says that they were evicted."""
        counts = look.snapshot.aggregates.group_counts[:, PodStatus.RELEASING]
        leaving: dict[int, int] = {}
        for group in np.flatnonzero(counts).tolist():
            leaving[look.resident.group_ids[group]] = int(counts[group])
        new = [number for number, pods in leaving.items() if self._leaving.get(number) != pods]
        self._leaving = leaving
        for number, message in _eviction_messages(new).items():
            row = self._evictions.get(number)
            if row is None:
                row = self._new_row(look, number, Comparison.EVICTION)
                self._evictions[number] = row
            if row.theirs_at is None:
                row.theirs_at = look.at
                row.message = message
                row.was_seen = row.was_seen and look.is_in_time
                self._keep(row)

    def _end_evictions(self, look: Look, states: Mapping[int, GangState]) -> None:
        """Of gangs that have lost what they had, or have ended. Later ones are other questions."""
        for number, row in list(self._evictions.items()):
            has_places = states.get(number) in _HAS_PLACES
            if number in self._leaving or (has_places and row.theirs_at is None):
                continue
            del self._evictions[number]
            row.ended_at = look.at
            self._keep(row)

    # What ours would have done

    def _note_our_starts(self, look: Look) -> None:
        """The first session that would place the gang whole.

        A gang that the other scheduler has begun with is no longer ours to start.
        """
        for number, pods in _binds_by_gang(look).items():
            row = self._starts.get(number)
            if row is None or row.ours_at is not None or row.half_since is not None:
                continue
            if row.was_seen and pods >= row.min_member:
                row.ours_at = look.at
                row.ours_session = look.session.number
                self._keep(row)

    def _note_our_evictions(self, look: Look) -> None:
        for number, evict in _evictions_by_gang(look).items():
            row = self._evictions.get(number)
            if row is None:
                row = self._new_row(look, number, Comparison.EVICTION)
                self._evictions[number] = row
            if row.ours_at is None:
                row.ours_at = look.at
                row.ours_session = look.session.number
                row.beneficiary = evict.beneficiary
                row.beneficiary_queue = evict.beneficiary_queue
                self._keep(row)

    # Rows

    def _new_row(self, look: Look, number: int, about: str) -> Comparison:
        groups = look.snapshot.groups
        row = look.resident.group_rows[number]
        return Comparison(
            about=about,
            podgroup_number=number,
            podgroup_name=groups.key[row],
            queue_name=look.snapshot.queues[groups.queue[row]].name,
            min_member=max(1, int(groups.min_member[row])),
            since=look.at,
        )

    def _keep(self, row: Comparison) -> None:
        """To be written."""
        if row.pk is not None:
            self._changed[row.pk] = row
        else:
            self._new[id(row)] = row

    def write(self) -> None:
        """Two statements at most, and none where nothing is new."""
        if self._new:
            Comparison.objects.bulk_create(self._new.values())
        _update_rows(self._changed.values())
        self._new = {}
        self._changed = {}


def _is_cluster_heard() -> bool:
    facts = mirror_facts()
    return facts is not None and facts.is_heard


def _state_of_row(row: Comparison) -> GangState:
    if row.half_since is not None:
        return GangState.HALF_STARTED
    return GangState.WAITING


def gang_states(resident: ResidentSnapshot) -> dict[int, GangState]:
    """Of each podgroup that is not completed, by its number."""
    groups = resident.snapshot.groups
    counts = resident.snapshot.aggregates.group_counts
    rows = np.flatnonzero(groups.alive & (groups.phase != Phase.COMPLETED) & (groups.queue >= 0))
    of_rows = counts[rows]
    needed = np.maximum(groups.min_member[rows], 1)
    placed = of_rows[:, (PodStatus.BINDING, PodStatus.BOUND, PodStatus.RUNNING)].sum(axis=1)
    ready = placed + of_rows[:, PodStatus.SUCCEEDED]
    there = ready + of_rows[:, PodStatus.PENDING]
    codes = np.select(
        [ready >= needed, there < needed, placed > 0],
        [GangState.STARTED, GangState.INCOMPLETE, GangState.HALF_STARTED],
        default=GangState.WAITING,
    )
    states: dict[int, GangState] = {}
    for row, code in zip(rows.tolist(), codes.tolist(), strict=True):
        states[resident.group_ids[row]] = _STATES[code]
    return states


_STATES: Final = tuple(GangState)


def _binds_by_gang(look: Look) -> dict[int, int]:
    """How many pods each gang would get places for."""
    found: dict[int, int] = {}
    group_of = look.snapshot.pods.group
    for bind in look.outcome.binds:
        number = look.resident.group_ids[group_of[bind.row]]
        found[number] = found.get(number, 0) + 1
    return found


def _evictions_by_gang(look: Look) -> dict[int, Evict]:
    found: dict[int, Evict] = {}
    group_of = look.snapshot.pods.group
    for evict in look.outcome.evictions:
        found.setdefault(look.resident.group_ids[group_of[evict.row]], evict)
    return found


def _eviction_messages(numbers: Iterable[int]) -> dict[int, str]:
    """Of these podgroups, what the cluster says of a pod that was evicted."""
    wanted = list(numbers)
    if not wanted:
        return {}
    pods = Pod.objects.filter(
        podgroup__in=wanted, phase="Releasing", message__startswith=EVICTED_MESSAGE
    ).order_by("-pk")
    found: dict[int, str] = {}
    for number, message in pods.values_list("podgroup", "message"):
        found[number] = message.removeprefix(EVICTED_MESSAGE)
    return found


def _add_reasons(rows: Iterable[Comparison]) -> None:
    """Why they would have waited here, as the last session said."""
    by_number = {row.podgroup_number: row for row in rows}
    if not by_number:
        return
    told = PodGroup.objects.filter(pk__in=list(by_number)).values_list(
        "pk", "reason_code", "reason_message"
    )
    for number, code, message in told:
        by_number[number].reason_code = code
        by_number[number].message = message


_COLUMNS: Final = {
    "id": "bigint",
    "ours_at": "timestamptz",
    "ours_session": "bigint",
    "theirs_at": "timestamptz",
    "half_since": "timestamptz",
    "half_seconds": "float8",
    "ended_at": "timestamptz",
    "was_seen": "boolean",
    "reason_code": "text",
    "message": "text",
    "beneficiary": "text",
    "beneficiary_queue": "text",
}


def _update_rows(changed: Iterable[Comparison]) -> None:
    rows: list[dict[str, Any]] = []
    for row in changed:
        rows.append({column: getattr(row, column) for column in _COLUMNS})
    if not rows:
        return
    columns = ", ".join(f"{column} = d.{column}" for column in _COLUMNS if column != "id")
    execute(
        f"UPDATE scheduler_comparison SET {columns} FROM {values_table('d', _COLUMNS)} "
        "WHERE scheduler_comparison.id = d.id",
        [as_parameter(rows)],
    )
