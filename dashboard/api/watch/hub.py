"""What one process tells those that follow its lists: it hears what changed, reads each list once,
and tells all who follow it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar, Final
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from django.db import connections

from dashboard.api.watch import handover
from dashboard.api.watch.streams import AWAY, RIGHTS, TOO_MANY, Stream, allowed_question
from dashboard.api.watch.views import KEPT_SECONDS, TooMany, View
from dashboard.live.news import hear_news, keep_going
from dashboard.live.readers import access_now
from dashboard.live.stopping import at_stop

logger = logging.getLogger(__name__)

SWEEP_SECONDS: Final = 5.0
"""Every list is read this often even if nobody reports a change."""
COALESCE_SECONDS: Final = 0.1
"""Changes that come close together are read once."""
IDLE_FACTOR: Final = 3
"""After a reading it rests this many times as long: at most a quarter of a core is used."""
ACCESS_SECONDS: Final = 10.0
ACCESS_PAUSE_SECONDS: Final = 0.5

# A change of the one shows in lists of the others: a pod that starts fills its node.
_TOUCHES: Final = {
    "queues": {"queue"},
    "jobs": {"job", "podgroup", "pod", "queue", "node"},
    "nodes": {"node", "pod"},
}


class WatchHub:
    """All streams of one event loop. It works from the first one until the last one leaves."""

    _hubs: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, WatchHub]] = WeakKeyDictionary()

    def __init__(self) -> None:
        self.views: dict[tuple[Any, ...], View] = {}
        self._streams: dict[Stream, View] = {}
        self._changed: set[View] = set()
        self._wake = asyncio.Event()
        self._access_changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        # One thread: readings follow one another and keep one database connection.
        self._thread = ThreadPoolExecutor(1, "watch")

    @classmethod
    def of_this_loop(cls) -> WatchHub:
        loop = asyncio.get_running_loop()
        if loop not in cls._hubs:
            hub = cls._hubs[loop] = cls()
            at_stop(partial(loop.call_soon_threadsafe, hub.hand_over))
        return cls._hubs[loop]

    # Who follows what

    def join(self, stream: Stream) -> None:
        """It begins as soon as its list has been read."""
        view = self._view_for(stream)
        self._streams[stream] = view
        view.left_at = None
        self._mark([view])
        if not self._tasks:
            for work in (self._hear, self._read_changes, self._check_access):
                self._tasks.append(asyncio.create_task(keep_going(work)))

    def _view_for(self, stream: Stream) -> View:
        key = stream.question.key
        if key not in self.views:
            self.views[key] = View(stream.question)
        return self.views[key]

    def leave(self, stream: Stream) -> None:
        view = self._streams.pop(stream, None)
        if view is None:
            return
        if view.is_read:
            self._thread.submit(handover.keep, view)
        if view not in self._streams.values():
            view.left_at = time.monotonic()
        self._forget_old_views()
        if not self._streams:
            self._stop_work()

    def hand_over(self) -> None:
        """To other processes: this one stops. Streams end when what they know has been kept."""
        loop = asyncio.get_running_loop()
        for view in self._followed():
            if view.is_read:
                kept = self._thread.submit(handover.keep, view)
                end = partial(loop.call_soon_threadsafe, self._end_all, view, "")
                kept.add_done_callback(partial(_now, end))

    def _forget_old_views(self) -> None:
        now = time.monotonic()
        for key, view in list(self.views.items()):
            if view.left_at is not None and now - view.left_at > KEPT_SECONDS:
                del self.views[key]

    def _stop_work(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = []
        self._thread.submit(connections.close_all)

    # Hearing what changed

    async def _hear(self) -> None:
        async for changed in hear_news("watch"):
            if not changed:
                self._mark(self._followed())  # what happened before we listened
            if "access" in changed:
                self._access_changed.set()
            nouns: set[str] = set()
            for subject in changed:
                nouns |= _TOUCHES.get(subject, set())
            self._mark(view for view in self._followed() if view.noun in nouns)

    def _followed(self) -> set[View]:
        return set(self._streams.values())

    def _mark(self, views: Iterable[View]) -> None:
        self._changed.update(views)
        if self._changed:
            self._wake.set()

    # Reading it, and telling the streams

    async def _read_changes(self) -> None:
        while True:
            try:
                async with asyncio.timeout(SWEEP_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                self._changed.update(self._followed())
            self._wake.clear()
            began = time.monotonic()
            changed = self._changed & self._followed()
            self._changed = set()
            for view in changed:
                await self._read(view)
            for stream in self._streams:
                stream.cut_if_slow()
            await asyncio.sleep(COALESCE_SECONDS + IDLE_FACTOR * (time.monotonic() - began))

    async def _read(self, view: View) -> None:
        try:
            fresh = await self._in_thread(view.read)
        except TooMany:
            self._end_all(view, TOO_MANY)
            return
        except Exception as problem:
            logger.warning("A list that is followed could not be read: %s", problem)
            self._end_all(view, AWAY)
            return
        events = view.take(fresh)
        for stream, followed in list(self._streams.items()):
            if followed is not view:
                continue
            if stream.view is None:
                stream.begin(view)
            elif events:
                stream.tell(events)

    def _end_all(self, view: View, words: str) -> None:
        for stream, followed in list(self._streams.items()):
            if followed is view:
                stream.end(words)

    async def _in_thread(self, function: Any, *arguments: Any) -> Any:
        call = database_sync_to_async(function, thread_sensitive=False, executor=self._thread)
        return await call(*arguments)

    # Who may still see what

    async def _check_access(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ACCESS_SECONDS):
                    await self._access_changed.wait()
            # Cleared before looking: what changes meanwhile is looked at again.
            self._access_changed.clear()
            await self._check_streams()
            await asyncio.sleep(ACCESS_PAUSE_SECONDS)

    async def _check_streams(self) -> None:
        streams = list(self._streams)
        try:
            found = await self._in_thread(access_now, [stream.reader for stream in streams])
        except Exception as problem:
            logger.warning("Rights of those who follow lists could not be checked: %s", problem)
            return
        for stream in streams:
            if stream not in self._streams:
                continue
            allowed = allowed_question(stream.question, found.get(stream.reader))
            if allowed is None:
                stream.end(RIGHTS)
            elif allowed is not stream.question:
                self._move(stream, allowed)

    def _move(self, stream: Stream, question: Any) -> None:
        """To the list that they may see now. What they may no longer see is deleted for them."""
        before = self._streams[stream]
        stream.leave_view()
        stream.question = question
        self.join(stream)
        if before not in self._streams.values():
            before.left_at = time.monotonic()


def _now(deed: Callable[[], object], _: object) -> None:
    deed()
