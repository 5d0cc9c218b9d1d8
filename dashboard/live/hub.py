"""What one process tells its open pages: it hears what changed, reads it once, and tells everybody.

However many sockets are open, there is one subscription, one reading and one encoding.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from django.contrib.auth import get_user_model
from django.db import connections

from dashboard.live.client import Client
from dashboard.live.identity import signed_in
from dashboard.live.news import hear_news, keep_going
from dashboard.live.readers import Reader, access_now
from dashboard.live.redis_log import ShortRedisErrors
from dashboard.live.redis_watch import RedisWatch, set_away
from dashboard.live.topics import VisibleQueues, may_follow, read_topics, topics_touched
from dashboard.live.updates import Rows, Topic, Update, encode_tail
from scheduler.selectors.accounts.access import sights_of

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 5.0
SWEEP_SECONDS = 5.0
"""Everything is read this often even if nobody reports a change: Redis may have been away."""
COALESCE_SECONDS = 0.05
"""Changes that come close together are read once."""
ACCESS_CHECK_SECONDS = 10.0
"""Who may see what is checked this often even if nobody reports a change."""
ACCESS_PAUSE_SECONDS = 0.5
"""It is checked at most this often."""
SIGNED_OUT = 4401
NOTHING: VisibleQueues = frozenset()
"""What an account may see that is gone."""

logging.getLogger("channels_redis.pubsub").addFilter(ShortRedisErrors(SWEEP_SECONDS))


class Hub:
    """All clients of one event loop. It works from the first client until the last one leaves."""

    _hubs: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, Hub]] = WeakKeyDictionary()

    def __init__(self) -> None:
        self.clients: set[Client] = set()
        self.topics: dict[str, Topic] = {}
        self._changed_topics: set[str] = set()
        self._wake = asyncio.Event()
        self._access_changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        # One thread: readings follow one another and keep one database connection.
        self._thread = ThreadPoolExecutor(1, "live")
        # Whether the last reading succeeded: only then is a heartbeat true.
        self._is_current = False

    @classmethod
    def of_this_loop(cls) -> Hub:
        loop = asyncio.get_running_loop()
        if loop not in cls._hubs:
            cls._hubs[loop] = cls()
        return cls._hubs[loop]

    def add_client(self, client: Client) -> None:
        self.clients.add(client)
        if not self._tasks:
            self._start_work()

    def remove_client(self, client: Client) -> None:
        self.clients.discard(client)
        for name in list(client.topics):
            self._unsubscribe(client, name)
        if not self.clients:
            self._stop_work()

    def _start_work(self) -> None:
        for work in (
            self._hear_changes,
            self._read_changes,
            self._send_heartbeats,
            self._check_access,
            self._watch_redis,
        ):
            self._tasks.append(asyncio.create_task(keep_going(work)))

    def _stop_work(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = []
        self._is_current = False
        set_away(None)  # nobody asks any more
        self._thread.submit(connections.close_all)

    async def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        call = database_sync_to_async(function, thread_sensitive=False, executor=self._thread)
        return await call(*arguments)

    # Which client follows what

    def subscribe(self, client: Client, name: str) -> None:
        topic = self.topics.setdefault(name, Topic(name))
        client.topics.setdefault(name, 0)
        topic.clients.add(client)
        self.send_snapshot(client, name)

    def send_snapshot(self, client: Client, name: str) -> None:
        """Send the whole topic: at once if it is known, else as soon as it has been read."""
        topic = self.topics.get(name)
        if topic is None or client not in topic.clients:
            client.refuse_topic(name, "Subscribe to this topic first.")
        elif topic.rows is None:
            self._mark_changed({name})
        else:
            client.queue_update(topic, Update(whole=True), None)

    def _unsubscribe(self, client: Client, name: str) -> None:
        client.topics.pop(name, None)
        topic = self.topics.get(name)
        if topic is not None:
            topic.clients.discard(client)
            if not topic.clients:
                del self.topics[name]

    # Hearing what changed

    async def _hear_changes(self) -> None:
        """Mark the topics that changed."""
        async for changed in hear_news("live"):
            if not changed:
                self._mark_changed(self.topics)  # what happened before we listened
            if "access" in changed:
                self._access_changed.set()
            self._mark_changed(topics_touched(changed, self.topics))

    def _mark_changed(self, names: Iterable[str]) -> None:
        self._changed_topics.update(names)
        if self._changed_topics:
            self._wake.set()

    # Reading it, and telling the clients

    async def _read_changes(self) -> None:
        """Read what is marked, and everything now and then, and tell the clients what changed."""
        while True:
            await self._wait_for_changes()
            names = self._changed_topics & self.topics.keys()
            self._changed_topics = set()
            try:
                fresh = await self._in_thread(read_topics, names)
            except Exception as problem:
                self._is_current = False
                self._changed_topics |= names
                logger.warning(
                    "The database could not be read for open pages: %s. Trying again.", problem
                )
                await asyncio.sleep(1)
            else:
                self._is_current = True
                for name, rows in fresh.items():
                    self._tell_clients(name, rows)
                await asyncio.sleep(COALESCE_SECONDS)

    async def _wait_for_changes(self) -> None:
        try:
            async with asyncio.timeout(SWEEP_SECONDS):
                await self._wake.wait()
        except TimeoutError:
            self._changed_topics.update(self.topics)
        self._wake.clear()

    def _tell_clients(self, name: str, rows: Rows) -> None:
        topic = self.topics.get(name)
        if topic is None:  # the last follower left while it was read
            return
        update = topic.take_rows(rows)
        if update is None:
            return
        tail = None
        if not update.whole:
            tail = encode_tail(update.rows.values(), update.gone)
        for client in topic.clients:
            client.queue_update(topic, update, tail)

    async def _send_heartbeats(self) -> None:
        """A heartbeat says that the rows are true, so none is sent while the database is away."""
        while True:
            if self._is_current:
                for client in self.clients:
                    client.queue_notice('{"type":"heartbeat"}')
            await asyncio.sleep(HEARTBEAT_SECONDS)

    async def _watch_redis(self) -> None:
        """While Redis is away, every page says so: changes come late, and no sessions run."""
        watch = RedisWatch()
        while True:
            if await watch.has_changed():
                self._mark_changed({"cluster"} & self.topics.keys())
            await watch.pause()

    # Who may still see what

    async def _check_access(self) -> None:
        """Close the sockets of users who signed out or were deactivated, and follow their roles."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ACCESS_CHECK_SECONDS):
                    await self._access_changed.wait()
            # Cleared before looking: what changes meanwhile is looked at again.
            self._access_changed.clear()
            await self._check_clients()
            await asyncio.sleep(ACCESS_PAUSE_SECONDS)

    async def _check_clients(self) -> None:
        clients = list(self.clients)
        try:
            now = await self._in_thread(_read_access, clients)
        except Exception as problem:
            logger.warning("Sessions of open pages could not be checked: %s", problem)
            return
        for client in clients:
            if client.token is not None:
                visible = now.by_token.get(client.token, NOTHING)
            else:
                visible = now.by_user.get(client.user.pk, NOTHING)
            if not now.is_valid(client):
                client.close(SIGNED_OUT)
            elif client.visible != visible:
                self._change_visible(client, visible)

    def _change_visible(self, client: Client, visible: VisibleQueues) -> None:
        client.visible = visible
        for name in list(client.topics):
            if may_follow(visible, name):
                self.send_snapshot(client, name)
            else:
                self._unsubscribe(client, name)
                client.refuse_topic(name, "You may no longer follow this topic.")


@dataclass(frozen=True, slots=True)
class _AccessNow:
    """Which sessions and tokens are still valid, and what each user and each token may see."""

    sessions: frozenset[str]
    by_user: dict[Any, VisibleQueues]
    by_token: dict[int, VisibleQueues]

    def is_valid(self, client: Client) -> bool:
        if client.token is not None:
            return client.token in self.by_token
        return not client.session_key or client.session_key in self.sessions


def _read_access(clients: list[Client]) -> _AccessNow:
    keys = {client.session_key for client in clients if client.session_key}
    # Accounts are read again: not only their roles may have changed.
    users = get_user_model().objects.in_bulk({client.user.pk for client in clients})
    programs = {Reader(client.user.pk, client.token) for client in clients if client.token}
    by_token: dict[int, VisibleQueues] = {}
    for reader, access in access_now(programs).items():
        if reader.token is not None:
            by_token[reader.token] = access.visible
    return _AccessNow(frozenset(signed_in(keys)), sights_of(users.values()), by_token)
