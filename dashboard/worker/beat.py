"""The clock of beat: it remembers nothing across starts, and ignores changes of the time of day."""

from __future__ import annotations

import logging
import time
from typing import Any

from celery.beat import ScheduleEntry, Scheduler, SchedulingError

from scheduler.outages import Outage, in_a_line
from scheduler.supervisor.redis_server import tasks_waiting

logger = logging.getLogger(__name__)

MOST_WAITING = 20
"""A tick is not sent to a queue in which so many tasks wait: nobody takes them.

An expiry would do the same, but it compares the clocks of two machines: a worker whose clock is
ahead would never do anything.
"""


class SteadyScheduler(Scheduler):
    """Every entry at its own interval, from the moment that beat starts."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._due_at: dict[str, float] = {}
        self._broker_away = Outage(logger, "Redis answers again; ticks are sent.")
        super().__init__(*arguments, **options)

    def install_default_entries(self, _data: Any) -> None:
        """None: there are no stored results to clean up."""

    def tick(self, *_: Any, **__: Any) -> float:
        """Send what is due, and say for how many seconds nothing is."""
        for name, entry in self.schedule.items():
            self._send_if_due(name, entry)
        return max(0.0, min(self._due_at.values()) - time.monotonic())

    def _send_if_due(self, name: str, entry: ScheduleEntry) -> None:
        now = time.monotonic()
        due_at = self._due_at.get(name, now)
        if due_at > now:
            return
        interval = float(self.app.conf.beat_schedule[name]["schedule"])
        if self._tasks_before(entry) < MOST_WAITING:
            self.apply_entry(entry, producer=self.producer)
        # At a fixed interval. Missed ticks are not made up for.
        next_at = due_at + interval
        if next_at <= now:
            next_at = now + interval
        self._due_at[name] = next_at

    def _tasks_before(self, entry: ScheduleEntry) -> int:
        """Those that wait in the queue of this tick."""
        queue = self.app.amqp.router.route({}, str(entry.task))["queue"]
        return tasks_waiting(str(self.app.conf.broker_url), queue.name)

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except SchedulingError as problem:
            self._broker_away.noticed(
                "Ticks cannot be sent: %s. Each one is tried again when it is next due.",
                in_a_line(problem),
            )
        else:
            self._broker_away.over()
