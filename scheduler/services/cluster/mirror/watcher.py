"""The process that mirrors a cluster: it listens, collects for a moment, and writes.

One at a time, by a lease. It can be killed at any moment: it keeps nothing that the cluster or the
database does not have, and reads the cluster anew when it starts.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Protocol

from django.db import DatabaseError, connection

from scheduler.clusters.kubernetes.errors import Forbidden
from scheduler.clusters.kubernetes.resources import COMMANDS, QUEUES, Resource
from scheduler.clusters.kubernetes.watch_events import Lost, Unreadable
from scheduler.conf import conf, schedules_cluster
from scheduler.outages import Outage, in_a_line
from scheduler.services.cluster.jobs.controller import JobController
from scheduler.services.cluster.mirror import state
from scheduler.services.cluster.mirror.flush import WATCHER, flush
from scheduler.services.cluster.mirror.queue_controller import QueueController
from scheduler.services.cluster.mirror.reporter import Reporter
from scheduler.services.cluster.mirror.store import Event, Store
from scheduler.services.cluster.mirror.writer import MirrorWriter
from scheduler.services.sessions import lease

logger = logging.getLogger(__name__)

COLLECT_SECONDS = 0.15
STEP_SECONDS = 0.5
HEARD_EVERY_SECONDS = 2.0
SILENT_SECONDS = 8.0  # a little before pages say that nothing is heard
RETRY_SECONDS = 2.0
_MOST_EVENTS = 20_000  # in one transaction


class Feed(Protocol):
    """What is followed of a cluster. Its threads put events into a queue until it is closed."""

    resources: frozenset[Resource]

    @property
    def neighbours(self) -> state.Neighbours:
        """What is ours beside another scheduler, as it was last asked for."""

    @property
    def follows_status(self) -> bool:
        """Whether the requested state of a queue follows its status."""

    def queue_controller(self) -> QueueController | None:
        """Who looks after queues, where nobody else does."""

    def job_controller(self) -> JobController | None:
        """Who makes the pods of jobs, where nobody else does."""

    def reporter(self) -> Reporter | None:
        """Who tells pods why they wait, where they are placed here."""

    def heard_seconds_ago(self) -> float: ...

    def must_begin_anew(self) -> bool:
        """The API server offers other resources than before."""

    def close(self) -> None: ...


Connect = Callable[["queue.Queue[Event]"], Feed]
"""Reaches the cluster and begins to follow it."""


class Watcher:
    def __init__(self, connect: Connect, holder: str | None = None) -> None:
        self._connect = connect
        self._holder = holder or lease.name_of_this_process()
        self._is_stopped = threading.Event()
        self._cluster_away = Outage(logger, "The cluster is heard again.")
        self._database_away = Outage(logger, "The mirror is written again.")

    def stop(self) -> None:
        self._is_stopped.set()

    def run(self) -> None:
        """Until it is stopped. Stands by while another watcher has the lease."""
        while not self._is_stopped.is_set():
            try:
                held = lease.acquire(self._holder, conf().lease_seconds, WATCHER)
                if held is not None:
                    self._watch_while_held(held)
                    continue
            except lease.LeaseLost:
                logger.warning("Another watcher has taken over.")
            except DatabaseError as problem:
                self._database_fails(problem)
            self._is_stopped.wait(RETRY_SECONDS)

    def _watch_while_held(self, held: lease.Held) -> None:
        with lease.Keeper(held, conf().lease_seconds, WATCHER) as keeper:
            while not self._is_stopped.is_set():
                keeper.check()
                self._follow_once(held, keeper)
        lease.release(held, WATCHER)

    def _follow_once(self, held: lease.Held, keeper: lease.Keeper) -> None:
        """From a connection to its end."""
        events: queue.Queue[Event] = queue.Queue()
        try:
            feed = self._connect(events)
        except DatabaseError:
            raise
        except Exception as problem:
            self._cluster_fails(problem)
            self._is_stopped.wait(RETRY_SECONDS)
            return
        following = _Following(self, feed, events, held)
        try:
            following.run(keeper)
        finally:
            following.close()
            feed.close()

    def is_stopped(self) -> bool:
        return self._is_stopped.is_set()

    def cluster_answers(self) -> None:
        self._cluster_away.over()

    def _cluster_fails(self, problem: Exception) -> None:
        words = in_a_line(problem)
        self._cluster_away.noticed("The cluster cannot be heard: %s", words)
        state.note_problem(words)

    def _database_fails(self, problem: Exception) -> None:
        words = in_a_line(problem)
        self._database_away.noticed("The mirror cannot be written: %s", words)
        connection.close()
        with suppress(DatabaseError):  # it may be this transaction alone that fails
            state.note_problem(f"The mirror cannot be written: {words}")


class _Following:
    """One connection: what was heard through it, and what of it was written."""

    def __init__(
        self, watcher: Watcher, feed: Feed, events: queue.Queue[Event], held: lease.Held
    ) -> None:
        self._watcher = watcher
        self._feed = feed
        self._events = events
        self._held = held
        self._store = Store()
        self._writer = MirrorWriter(
            self._store,
            conf().kubernetes.scheduler_names,
            follows_status=feed.follows_status,
            schedules=schedules_cluster(),
        )
        self._controller = feed.queue_controller()
        self._job_controller = feed.job_controller()
        self._reporter = feed.reporter()
        self._is_loaded = False
        self._heard_noted = time.monotonic()
        self._is_silent = False  # and somebody was told so
        self._neighbours: state.Neighbours | None = None  # as they were noted
        self._refused: dict[Resource, str] = {}  # the API server's words

    def run(self, keeper: lease.Keeper) -> None:
        while not self._watcher.is_stopped() and not self._feed.must_begin_anew():
            keeper.check()
            for event in collect(self._events):
                self._take(event)
            self._note_neighbours()
            if self._store.listed >= self._feed.resources:
                self._write()
                self._report()
                self._look_after_jobs()
            self._note_heard()

    def close(self) -> None:
        if self._controller is not None:
            self._controller.close()
        if self._job_controller is not None:
            self._job_controller.close()
        if self._reporter is not None:
            self._reporter.close()

    def _take(self, event: Event) -> None:
        match event:
            case Lost():
                self._note_lost(event)
            case Unreadable():
                logger.warning(
                    "%s %s cannot be read: %s", event.resource.kind, event.key, event.problem
                )
            case _:
                self._store.take(event)

    def _note_lost(self, event: Lost) -> None:
        words = in_a_line(event.error)
        logger.info("%s is not heard: %s", event.resource.name, words)
        if isinstance(event.error, Forbidden):
            self._refused[event.resource] = words

    def _missing_rights(self) -> str:
        """Why the mirror is not complete, for people. Nothing is written until all is listed."""
        for resource, words in self._refused.items():
            if resource not in self._store.listed:
                return (
                    f"The account may not read {resource.plural}: {words} "
                    "Grant it the right: manage.py kubernetes install"
                )
        return ""

    def _write(self) -> None:
        """A failure leaves the tables as they were, and memory in doubt: it is read again."""
        if not self._is_loaded:
            self._writer.load()
            self._is_loaded = True
        elif not self._store.has_pending:
            return
        if self._job_controller is not None:
            self._job_controller.hear(self._store)
        try:
            flush(self._store, self._writer, self._held)
        except Exception:
            self._is_loaded = False
            raise
        self._tell_controller()

    def _tell_controller(self) -> None:
        if self._controller is None:
            return
        self._controller.tell(self._store.objects(QUEUES), self._store.objects(COMMANDS))
        self._controller.start()

    def _report(self) -> None:
        if self._reporter is not None:
            self._reporter.look(self._store, self._writer.pod_id)

    def _note_neighbours(self) -> None:
        found = self._feed.neighbours
        if found != self._neighbours:
            state.note_neighbours(found)
            self._neighbours = found

    def _look_after_jobs(self) -> None:
        if self._job_controller is not None:
            self._job_controller.look(self._store)

    def _note_heard(self) -> None:
        now = time.monotonic()
        silent = self._feed.heard_seconds_ago()
        if now - self._heard_noted < HEARD_EVERY_SECONDS:
            return
        if silent > SILENT_SECONDS and not self._is_silent:
            self._is_silent = True
            state.note_problem("The API server does not answer.")
        if silent > HEARD_EVERY_SECONDS * 2:
            return
        self._is_silent = False
        self._heard_noted = now
        self._watcher.cluster_answers()
        state.note_heard(silent, self._missing_rights())


def collect(events: queue.Queue[Event]) -> Iterator[Event]:
    """What comes within a moment after the first event, or nothing after a while."""
    try:
        yield events.get(timeout=STEP_SECONDS)
    except queue.Empty:
        return
    until = time.monotonic() + COLLECT_SECONDS
    for _ in range(_MOST_EVENTS):
        left = until - time.monotonic()
        try:
            yield events.get(timeout=max(0.0, left))
        except queue.Empty:
            return
