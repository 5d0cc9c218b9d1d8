"""What a controller does for queues, where Volcano's does not run: commands, and the status.

A thread of the watcher. It is told what the cluster has, and asks the API server for the rest.
Commands are carried out once for each uid, in the order of their creation, and then deleted. The
status is written only where it differs.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from django.db import DatabaseError, connection
from django.db.models import Count

from scheduler.admission.violations import Rejected
from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.errors import ApiError, Conflict, Denied, Forbidden, NotFound
from scheduler.clusters.kubernetes.queue_definition import ANNOTATIONS, STATE
from scheduler.clusters.kubernetes.reports import set_queue_status
from scheduler.clusters.kubernetes.resources import COMMANDS, QUEUES
from scheduler.clusters.kubernetes.values import CommandObject, QueueObject
from scheduler.domain.lifecycle import NotAllowed, command_named
from scheduler.domain.queues import QueueState
from scheduler.models import Command, PodGroup, Queue, QueueFigures
from scheduler.outages import Outage, in_a_line
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.cluster.mirror.object_rows import version_number
from scheduler.services.cluster.queue_writes import ClusterAway
from scheduler.services.queues.commands import command_queue

logger = logging.getLogger(__name__)

STEP_SECONDS: Final = 1.0
_FORBIDDEN_SECONDS: Final = 60.0
_COUNTED: Final = {
    "Pending": "pending",
    "Inqueue": "inqueue",
    "Running": "running",
    "Unknown": "unknown",
    "Completed": "completed",
}
"""The fields of a status that count podgroups, by their phase."""


class QueueController:
    """`is_alone` says whether Volcano's controllers still do not run."""

    def __init__(
        self, client: Client, known_fields: frozenset[str], is_alone: Callable[[], bool]
    ) -> None:
        self._client = client
        self._knows_state = STATE in known_fields
        self._is_alone = is_alone
        self._queues: Mapping[str, QueueObject] = {}
        self._commands: tuple[CommandObject, ...] = ()
        self._is_told = threading.Event()
        self._is_closed = threading.Event()
        self._outage = Outage(logger, "Commands and the status of queues are looked after again.")
        self._thread = threading.Thread(target=self._run, name="queue-controller", daemon=True)

    def start(self) -> None:
        """Once is enough; more often does no harm."""
        if self._thread.ident is None:
            self._thread.start()

    def close(self) -> None:
        self._is_closed.set()
        self._is_told.set()
        if self._thread.is_alive():
            self._thread.join(STEP_SECONDS * 5)

    def tell(self, queues: Iterable[QueueObject], commands: Iterable[CommandObject]) -> None:
        """What the cluster has now. Called by the watcher, after the mirror was written."""
        self._queues = {queue.meta.name: queue for queue in queues}
        self._commands = tuple(commands)
        self._is_told.set()

    def _run(self) -> None:
        try:
            while not self._is_closed.is_set():
                self._is_told.wait(STEP_SECONDS)
                self._is_told.clear()
                self._step_or_tell()
        finally:
            connection.close()

    def _step_or_tell(self) -> None:
        try:
            self.step()
            self._outage.over()
        except (ApiError, DatabaseError, ClusterAway) as problem:
            self._outage.noticed("Queues cannot be looked after: %s", in_a_line(problem))
            pause = STEP_SECONDS
            if isinstance(problem, Forbidden):
                pause = _FORBIDDEN_SECONDS
            self._is_closed.wait(pause)
            if isinstance(problem, DatabaseError):
                connection.close()

    def step(self) -> None:
        """Everything that is to be done now. Raises what the API server or the database does."""
        if self._commands:
            carry_out_commands(self._client, self._commands, self._is_alone)
        self._write_statuses()

    # Status

    def _write_statuses(self) -> None:
        pending = list(self._changed_statuses())
        if not pending or not self._is_alone():
            return
        for queue, changes in pending:
            if self._is_closed.is_set():
                return
            self._write_status(queue, changes)

    def _changed_statuses(self) -> Iterator[tuple[QueueObject, dict[str, Any]]]:
        for name, status in wanted_statuses(with_suspended=self._knows_state).items():
            queue = self._queues.get(name)
            if queue is None:
                continue
            changes = changed_fields(queue.status, status)
            if changes:
                yield queue, changes

    def _write_status(self, queue: QueueObject, changes: Mapping[str, Any]) -> None:
        """One that has changed meanwhile, or is gone, is told anew in a moment.

        A webhook may refuse to name a state where the queue breaks a rule: others go on.
        """
        with suppress(Conflict, NotFound, Denied):
            if self._would_hold(queue, changes):
                self._name_state(queue)
                return
            set_queue_status(self._client, queue.meta, changes)

    def _would_hold(self, queue: QueueObject, changes: Mapping[str, Any]) -> bool:
        """A queue that names no state is as its status says: the parent's state is not its own."""
        is_open = queue.requested_state(follows_status=False) is QueueState.OPEN
        return queue.named_state is None and is_open and changes.get("state") in _HELD

    def _name_state(self, queue: QueueObject) -> None:
        """The mirror then tells of the queue again, and its status is written."""
        place: dict[str, Any] = {"metadata": {"annotations": {ANNOTATIONS[STATE]: "Open"}}}
        if self._knows_state:
            place = {"metadata": {}, "spec": {STATE: "Open"}}
        place["metadata"]["resourceVersion"] = queue.meta.resource_version
        self._client.patch(QUEUES, queue.meta.name, place)


_HELD = (QueueState.CLOSED.value, QueueState.CLOSING.value, QueueState.SUSPENDED.value)
"""States that a queue can have because one above it has them."""


def wanted_statuses(*, with_suspended: bool) -> dict[str, dict[str, Any]]:
    """By the name of each queue, as Volcano's controller writes it.

    Volcano's own definition does not know the state Suspended: such a queue is Open there.
    """
    counts: dict[int, dict[str, int]] = {}
    rows = PodGroup.objects.values_list("queue_id", "phase").annotate(number=Count("id"))
    for queue_id, phase, number in rows.order_by():
        if phase in _COUNTED:
            counts.setdefault(queue_id, {})[_COUNTED[phase]] = number
    allocated = dict(QueueFigures.objects.values_list("queue_id", "allocated"))
    none = dict.fromkeys(_COUNTED.values(), 0)
    found: dict[str, dict[str, Any]] = {}
    for queue_id, name, state in Queue.objects.values_list("id", "name", "state"):
        told = state
        if state == QueueState.SUSPENDED.value and not with_suspended:
            told = QueueState.OPEN.value
        status: dict[str, Any] = {"state": told, **none, **counts.get(queue_id, {})}
        if queue_id in allocated:
            status["allocated"] = allocated[queue_id].to_quantities()
        found[name] = status
    return found


def changed_fields(before: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What is to be sent, as a merge patch. A count that is not there counts as 0."""
    changes: dict[str, Any] = {}
    for key, value in wanted.items():
        if key == "allocated":
            amounts = _changed_amounts(before.get(key) or {}, value)
            if amounts:
                changes[key] = amounts
        elif before.get(key) != value and (value or before.get(key)):
            changes[key] = value
    return changes


def _changed_amounts(before: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str | None]:
    changes: dict[str, str | None] = {}
    for name in sorted({*before, *wanted}):
        if before.get(name) != wanted.get(name):
            changes[name] = wanted.get(name)
    return changes


# Commands


def carry_out_commands(
    client: Client, commands: Sequence[CommandObject], is_alone: Callable[[], bool]
) -> None:
    """Those to queues, oldest first. Others are left to whoever handles them."""
    orders = [command for command in commands if command.target_kind == QUEUES.kind]
    if not orders or not is_alone():
        return
    for order in sorted(orders, key=_order_of_creation):
        _carry_out_once(order)
        with suppress(NotFound, Conflict):  # somebody has deleted it already
            client.delete(COMMANDS, order.meta.name, order.meta.namespace, uid=order.meta.uid)


def _order_of_creation(command: CommandObject) -> tuple[float, int]:
    """Moments have whole seconds; within one the versions of new objects tell the order."""
    seconds = 0.0
    if command.meta.created is not None:
        seconds = command.meta.created.timestamp()
    return seconds, version_number(command.meta.resource_version)


def _carry_out_once(order: CommandObject) -> None:
    """What is refused is on record, and over. Raises `ClusterAway`: then it is tried again."""
    done = Command.objects.filter(request_id=order.meta.uid).exclude(result=Command.FAILED)
    action = command_named(order.action)
    if done.exists():
        return
    if action is None:
        logger.warning("%s is no command for a queue: %s", order.action, order.meta.key)
        return
    by = Actor("kubernetes", Door.SYSTEM, request_id=order.meta.uid)
    try:
        command_queue(
            order.target_name, action, by=by, reason=order.reason, target_uid=order.target_uid
        )
    except ClusterAway:
        raise
    except (Rejected, NotAllowed, Queue.DoesNotExist) as refusal:
        logger.info("%s %s was refused: %s", action.value, order.target_name, refusal)
