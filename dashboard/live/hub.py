"""The news desk of one process: hears what changed, reads it once, and hands the same encoded rows to every open page.

However many sockets are open there is one subscription, one reading and one encoding. Each client has an outbox with at most one entry
per topic, so a slow one gets its news later and merged, never less of it, and never holds up the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.contrib.auth import get_user_model
from django.db import connections
from redis.exceptions import RedisError

from dashboard.live.identity import signed_in
from dashboard.live.redis_watch import RedisWatch, set_away
from dashboard.live.topics import Sight, as_seen, may_follow, read_topics, topics_touched
from scheduler.notify import NEWS_GROUP
from scheduler.selectors.accounts.access import sights_of

logger = logging.getLogger(__name__)


class InASentence(logging.Filter):
    """The channel layer logs a traceback each second while Redis is away; one sentence in a while says as much."""

    PAUSE_SECONDS = 15.0

    def __init__(self) -> None:
        super().__init__()
        self._said_at = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.exc_info or not isinstance(record.exc_info[1], RedisError | OSError):
            return True
        record.msg = f"Redis is away ({record.exc_info[1]}). Open pages look every {SWEEP_SECONDS:g} s until it is back."
        record.args, record.exc_info = (), None
        is_news = record.created - self._said_at > self.PAUSE_SECONDS
        self._said_at = record.created if is_news else self._said_at
        return is_news


logging.getLogger("channels_redis.pubsub").addFilter(InASentence())

Send = Callable[[dict[str, Any]], Awaitable[None]]
Rows = dict[str, str]  # key of the row -> the row as JSON text
NOTHING: Sight = frozenset()  # what an account sees that is gone

HEARTBEAT_SECONDS = 5.0
SWEEP_SECONDS = (
    5.0  # look again even without news: what was missed while Redis was away is found here
)
COALESCE_SECONDS = 0.05  # news that comes close together is read once
ACCESS_CHECK_SECONDS = 10.0  # look again who may see what even without news of it
ACCESS_PAUSE_SECONDS = 0.5  # a storm of such news is looked into this often
SIGNED_OUT, TOO_MUCH = 4401, 1008
MOST_NOTICES = (
    256  # more than these are waiting only for who asks and asks and does not read the answers
)


@dataclass(slots=True)
class Update:
    """What a client is still to be told about a topic. `gone` keeps the rows as they last were: who may not see them is not told.

    `whole` means everything as it is when the message is written.
    """

    rows: Rows = field(default_factory=dict)
    gone: Rows = field(default_factory=dict)
    whole: bool = False
    before: Rows = field(
        default_factory=dict
    )  # how the changed rows were: some eyes saw them then that may not now

    def absorb(self, later: Update) -> None:
        """Take in later news, row by row: the newest state of each row is what counts."""
        self.whole = self.whole or later.whole
        self.rows = {
            key: row for key, row in self.rows.items() if key not in later.gone
        } | later.rows
        self.gone = {
            key: row for key, row in self.gone.items() if key not in later.rows
        } | later.gone

    def copy(self) -> Update:
        return Update(dict(self.rows), dict(self.gone), self.whole)


def encode_tail(rows: Iterable[str], gone: Iterable[str]) -> str:
    """The part of a message that is the same for every client: all after its sequence number."""
    return f'"rows":[{",".join(rows)}],"gone":{json.dumps(sorted(gone))}}}'


@dataclass(slots=True)
class Topic:
    """The rows of one topic as last read, and who follows it. `rows` is None until the first reading."""

    name: str
    rows: Rows | None = None
    clients: set[Client] = field(default_factory=set)
    _snapshot_tail: str | None = None

    def take(self, rows: Rows) -> Update | None:
        """Remember the new rows and return what is different: everything after the first reading, None if nothing is."""
        known, self.rows = self.rows, rows
        if known is None:
            self._snapshot_tail = None
            return Update(whole=True)
        changed = {key: row for key, row in rows.items() if known.get(key) != row}
        gone = {key: row for key, row in known.items() if key not in rows}
        if not changed and not gone:
            return None
        self._snapshot_tail = None
        return Update(changed, gone, before={key: known[key] for key in changed if key in known})

    def snapshot_tail(self) -> str:
        if self._snapshot_tail is None:
            self._snapshot_tail = encode_tail((self.rows or {}).values(), ())
        return self._snapshot_tail


class Client:
    """One socket's outbox. Sequence numbers count the messages of a topic on this socket, so a merged message leaves no gap."""

    def __init__(self, user: Any, session_key: str | None, send: Send, sight: Sight = None) -> None:
        self.user, self.session_key, self.sight = user, session_key, sight
        self.topics: dict[str, int] = {}  # topic -> the last sequence number written
        self._send = send
        self._updates: dict[str, tuple[Topic, Update, str | None]] = {}
        self._notices: list[str] = []
        self._close_code: int | None = None
        self._wake = asyncio.Event()

    def tell(self, topic: Topic, update: Update, tail: str | None) -> None:
        """Queue an update. `tail` is its ready encoding, good as long as nothing has to be merged into it or kept from this client."""
        if self.sight is not None and not update.whole:
            update, tail = self._seen(topic, update), None
            if not update.rows and not update.gone:
                return
        waiting = self._updates.get(topic.name)
        if waiting is None:
            self._updates[topic.name] = (topic, update, tail)
        else:
            merged = waiting[1].copy()  # the first one is shared with the other clients
            merged.absorb(update)
            self._updates[topic.name] = (topic, merged, None)
        self._wake.set()

    def _seen(self, topic: Topic, update: Update) -> Update:
        rows = self._visible(topic, update.rows)
        left = {
            key: row for key, row in self._visible(topic, update.before).items() if key not in rows
        }
        return Update(rows, self._visible(topic, update.gone) | left)

    def _visible(self, topic: Topic, rows: Rows) -> Rows:
        return {
            key: seen
            for key, row in rows.items()
            if (seen := as_seen(self.sight, topic.name, key, row)) is not None
        }

    def notice(self, message: str) -> None:
        if len(self._notices) >= MOST_NOTICES:
            self.close(TOO_MUCH)
        elif (
            message not in self._notices
        ):  # one heartbeat is as good as ten to a reader that is behind
            self._notices.append(message)
        self._wake.set()

    @property
    def waiting(self) -> int:
        """How many messages are still to be written."""
        return len(self._notices) + len(self._updates)

    def refuse(self, topic: str, message: str) -> None:
        self.notice(json.dumps({"type": "refused", "topic": topic, "message": message}))

    def close(self, code: int) -> None:
        self._close_code = code
        self._wake.set()

    async def write(self) -> None:
        """Send what is queued as fast as this one socket takes it, until it is gone."""
        while self._close_code is None:
            await self._wake.wait()
            self._wake.clear()
            while self.waiting and self._close_code is None:
                await self._write_next()
        await self._send({"type": "websocket.close", "code": self._close_code})

    async def _write_next(self) -> None:
        if self._notices:
            await self._send({"type": "websocket.send", "text": self._notices.pop(0)})
            return
        name = next(iter(self._updates))
        topic, update, tail = self._updates.pop(name)
        if name in self.topics:  # not unsubscribed meanwhile
            await self._send({"type": "websocket.send", "text": self._message(topic, update, tail)})

    def _message(self, topic: Topic, update: Update, tail: str | None) -> str:
        self.topics[topic.name] = sequence = self.topics[topic.name] + 1
        kind = "snapshot" if update.whole else "delta"
        rest = (
            self._whole(topic)
            if update.whole
            else tail or encode_tail(update.rows.values(), update.gone)
        )
        return f'{{"type":"{kind}","topic":{json.dumps(topic.name)},"seq":{sequence},{rest}'

    def _whole(self, topic: Topic) -> str:
        if self.sight is None:
            return topic.snapshot_tail()
        return encode_tail(self._visible(topic, topic.rows or {}).values(), ())


async def _lasting(work: Callable[[], Awaitable[None]]) -> None:
    """Begin again after a surprise: open pages must not go quiet because of one bad message."""
    while True:
        try:
            await work()
        except Exception:
            logger.exception("Live news stumbled and goes on.")
            await asyncio.sleep(1)


class Hub:
    """All clients of one event loop. Starts working with the first one and rests when the last one has left."""

    _hubs: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, Hub]] = WeakKeyDictionary()

    def __init__(self) -> None:
        self.clients: set[Client] = set()
        self.topics: dict[str, Topic] = {}
        self._dirty: set[str] = set()
        self._wake = asyncio.Event()
        self._access_changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._thread = ThreadPoolExecutor(
            1, "live"
        )  # readings follow one another and keep one database connection
        self._in_order = (
            False  # whether the last reading succeeded: only then is a heartbeat the truth
        )

    @classmethod
    def of_this_loop(cls) -> Hub:
        loop = asyncio.get_running_loop()
        if loop not in cls._hubs:
            cls._hubs[loop] = cls()
        return cls._hubs[loop]

    def join(self, client: Client) -> None:
        self.clients.add(client)
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(_lasting(work))
                for work in (
                    self._hear,
                    self._read,
                    self._beat,
                    self._check_access,
                    self._watch_redis,
                )
            ]

    def leave(self, client: Client) -> None:
        self.clients.discard(client)
        for name in list(client.topics):
            self._unsubscribe(client, name)
        if not self.clients:
            self._rest()

    def _rest(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = []
        self._in_order = False
        set_away(None)  # nobody asks any more
        self._thread.submit(connections.close_all)

    async def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await database_sync_to_async(
            function, thread_sensitive=False, executor=self._thread
        )(*arguments)

    def subscribe(self, client: Client, name: str) -> None:
        topic = self.topics.setdefault(name, Topic(name))
        client.topics.setdefault(name, 0)
        topic.clients.add(client)
        self.resync(client, name)

    def resync(self, client: Client, name: str) -> None:
        """Send the topic whole: at once if it is known, else as soon as it has been read."""
        topic = self.topics.get(name)
        if topic is None or client not in topic.clients:
            client.refuse(name, "Subscribe to this topic first.")
        elif topic.rows is None:
            self._mark({name})
        else:
            client.tell(topic, Update(whole=True), None)

    def _unsubscribe(self, client: Client, name: str) -> None:
        client.topics.pop(name, None)
        topic = self.topics.get(name)
        if topic is not None:
            topic.clients.discard(client)
            if not topic.clients:
                del self.topics[name]

    def _mark(self, names: Iterable[str]) -> None:
        self._dirty.update(names)
        if self._dirty:
            self._wake.set()

    async def _hear(self) -> None:
        """Mark what the news is about. The channel layer subscribes again by itself when Redis comes back."""
        layer = get_channel_layer()
        channel = await self._tune_in(layer)
        self._mark(self.topics)  # what happened before we listened
        try:
            while True:
                message = await layer.receive(channel)
                if "access" in message["changed"]:
                    self._access_changed.set()
                self._mark(topics_touched(message["changed"], self.topics))
        finally:
            with contextlib.suppress(
                Exception
            ):  # Redis may be away: then there is nothing to leave
                await layer.group_discard(NEWS_GROUP, channel)

    async def _tune_in(self, layer: Any) -> str:
        while True:
            try:
                channel: str = await layer.new_channel("live")
                await layer.group_add(NEWS_GROUP, channel)
            except Exception as problem:
                logger.warning(
                    "Redis does not answer (%s); looking every %g s instead, and trying again.",
                    problem,
                    SWEEP_SECONDS,
                )
                await asyncio.sleep(1)
            else:
                return channel

    async def _read(self) -> None:
        """Read what is marked, and everything once in a while, and spread what is different."""
        while True:
            await self._until_something_to_read()
            names, self._dirty = self._dirty & self.topics.keys(), set()
            try:
                fresh = await self._in_thread(read_topics, names)
            except Exception as problem:
                self._in_order = False
                self._dirty |= names
                logger.warning(
                    "The database could not be read for open pages: %s. Trying again.", problem
                )
                await asyncio.sleep(1)
            else:
                self._in_order = True
                for name, rows in fresh.items():
                    self._spread(name, rows)
                await asyncio.sleep(COALESCE_SECONDS)

    async def _until_something_to_read(self) -> None:
        try:
            async with asyncio.timeout(SWEEP_SECONDS):
                await self._wake.wait()
        except TimeoutError:
            self._dirty.update(self.topics)
        self._wake.clear()

    def _spread(self, name: str, rows: Rows) -> None:
        topic = self.topics.get(name)
        if topic is None:  # the last follower left while it was read
            return
        update = topic.take(rows)
        if update is None:
            return
        tail = None if update.whole else encode_tail(update.rows.values(), update.gone)
        for client in topic.clients:
            client.tell(topic, update, tail)

    async def _beat(self) -> None:
        """A heartbeat says: the rows you have are true. So there is none while the database can not be read."""
        while True:
            if self._in_order:
                for client in self.clients:
                    client.notice('{"type":"heartbeat"}')
            await asyncio.sleep(HEARTBEAT_SECONDS)

    async def _watch_redis(self) -> None:
        """While Redis is away every page says so: changes come late then, and sessions not at all."""
        watch = RedisWatch()
        while True:
            if await watch.differs():
                self._mark({"cluster"} & self.topics.keys())
            await watch.pause()

    async def _check_access(self) -> None:
        """Close the sockets of people who signed out or were switched off, and follow what they may see."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ACCESS_CHECK_SECONDS):
                    await self._access_changed.wait()
            self._access_changed.clear()  # before looking: what changes meanwhile is looked at again
            await self._look_at_access()
            await asyncio.sleep(ACCESS_PAUSE_SECONDS)

    async def _look_at_access(self) -> None:
        clients = list(self.clients)
        try:
            valid, sights = await self._in_thread(_look_again, clients)
        except Exception as problem:
            logger.warning("Sessions of open pages could not be checked: %s", problem)
            return
        for client in clients:
            sight = sights.get(client.user.pk, NOTHING)
            if client.session_key and client.session_key not in valid:
                client.close(SIGNED_OUT)
            elif client.sight != sight:
                self._see_anew(client, sight)

    def _see_anew(self, client: Client, sight: Sight) -> None:
        client.sight = sight
        for name in list(client.topics):
            if may_follow(sight, name):
                self.resync(client, name)
            else:
                self._unsubscribe(client, name)
                client.refuse(name, "You may no longer follow this topic.")


def _look_again(clients: list[Client]) -> tuple[set[str], dict[Any, Sight]]:
    """Which sessions are still good, and what each user may see now."""
    users = get_user_model().objects.in_bulk(
        {client.user.pk for client in clients}
    )  # anew: roles are not all that may have changed
    keys = {client.session_key for client in clients if client.session_key}
    return set(signed_in(keys)), sights_of(users.values())
