"""One open socket's outbox. A slow client gets its updates later and merged, but never fewer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from dashboard.live.topics import VisibleQueues, as_seen
from dashboard.live.updates import Rows, Topic, Update, encode_tail

Send = Callable[[dict[str, Any]], Awaitable[None]]

TOO_MANY_NOTICES = 1008
MOST_NOTICES = 256
"""More wait only for a client that keeps asking and does not read the answers."""


class _Waiting(NamedTuple):
    """An update that is still to be written. `tail` is its ready encoding, where there is one."""

    topic: Topic
    update: Update
    tail: str | None


class Client:
    """At most one entry for each topic waits, so that a slow client holds up nobody.

    Sequence numbers count the messages of a topic on this socket: a merged message leaves no gap.
    """

    def __init__(
        self,
        user: Any,
        session_key: str | None,
        send: Send,
        visible: VisibleQueues = None,
        token: int | None = None,
    ) -> None:
        """A page has the key of its session, a program the number of its token."""
        self.token = token
        self.user = user
        self.session_key = session_key
        self.visible = visible
        self.topics: dict[str, int] = {}  # topic -> the last sequence number written
        self._send = send
        self._updates: dict[str, _Waiting] = {}
        self._notices: list[str] = []
        self._close_code: int | None = None
        self._wake = asyncio.Event()

    def queue_update(self, topic: Topic, update: Update, tail: str | None) -> None:
        """Queue an update.

        `tail` is its ready encoding. It is used unless rows are merged into the update or hidden
        from this client.
        """
        if self.visible is not None and not update.whole:
            update = self._visible_part(topic, update)
            tail = None
            if not update.rows and not update.gone:
                return
        waiting = self._updates.get(topic.name)
        if waiting is not None:
            merged = waiting.update.copy()  # the first one is shared with the other clients
            merged.absorb(update)
            update = merged
            tail = None
        self._updates[topic.name] = _Waiting(topic, update, tail)
        self._wake.set()

    def _visible_part(self, topic: Topic, update: Update) -> Update:
        """A row that the client could see before and may not see now is gone."""
        rows = self._visible_rows(topic, update.rows)
        gone = self._visible_rows(topic, update.gone)
        for key, row in self._visible_rows(topic, update.before).items():
            if key not in rows:
                gone[key] = row
        return Update(rows, gone)

    def _visible_rows(self, topic: Topic, rows: Rows) -> Rows:
        visible: Rows = {}
        for key, row in rows.items():
            seen = as_seen(self.visible, topic.name, key, row)
            if seen is not None:
                visible[key] = seen
        return visible

    def queue_notice(self, message: str) -> None:
        if len(self._notices) >= MOST_NOTICES:
            self.close(TOO_MANY_NOTICES)
        elif message not in self._notices:  # a client that is behind needs one heartbeat, not ten
            self._notices.append(message)
        self._wake.set()

    @property
    def waiting(self) -> int:
        """How many messages are still to be written."""
        return len(self._notices) + len(self._updates)

    def refuse_topic(self, topic: str, message: str) -> None:
        self.queue_notice(json.dumps({"type": "refused", "topic": topic, "message": message}))

    def close(self, code: int) -> None:
        self._close_code = code
        self._wake.set()

    async def write_messages(self) -> None:
        """Send what is queued as fast as this socket takes it, until the client is closed."""
        while self._close_code is None:
            await self._wake.wait()
            self._wake.clear()
            while self.waiting and self._close_code is None:
                await self._write_next()
        await self._send({"type": "websocket.close", "code": self._close_code})

    async def _write_next(self) -> None:
        if self._notices:
            await self._send_text(self._notices.pop(0))
            return
        name = next(iter(self._updates))
        waiting = self._updates.pop(name)
        if name in self.topics:  # not unsubscribed meanwhile
            await self._send_text(self._message(waiting))

    async def _send_text(self, text: str) -> None:
        await self._send({"type": "websocket.send", "text": text})

    def _message(self, waiting: _Waiting) -> str:
        name = waiting.topic.name
        self.topics[name] += 1
        message_type = "delta"
        if waiting.update.whole:
            message_type = "snapshot"
        start = f'"type":"{message_type}","topic":{json.dumps(name)},"seq":{self.topics[name]}'
        return f"{{{start},{self._tail_of(waiting)}"

    def _tail_of(self, waiting: _Waiting) -> str:
        if waiting.update.whole:
            return self._snapshot_tail(waiting.topic)
        if waiting.tail is not None:
            return waiting.tail
        return encode_tail(waiting.update.rows.values(), waiting.update.gone)

    def _snapshot_tail(self, topic: Topic) -> str:
        if self.visible is None:
            return topic.snapshot_tail()
        return encode_tail(self._visible_rows(topic, topic.rows or {}).values(), ())
