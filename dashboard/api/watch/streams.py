"""One reader of a list: what is still to be written to it, and when it ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Final

from django.db import DatabaseError
from django.http import StreamingHttpResponse

from dashboard.api.watch import handover
from dashboard.api.watch.events import ADDED, BEGINNING, STILL_HERE, bookmark, ending, event
from dashboard.api.watch.views import (
    MOST_OBJECTS,
    Item,
    Question,
    State,
    TooMany,
    View,
    catching_up,
)
from dashboard.http.log_stream import EVENT_STREAM
from dashboard.live.readers import Reader, access_now
from scheduler.domain.access import Access, Forbidden

MOST_SECONDS: Final = 3600.0
QUIET_SECONDS: Final = 15.0
SLOW_SECONDS: Final = 30.0
"""A reader that takes nothing for so long, while something waits for it, is cut off."""
MOST_WAITING: Final = 30_000
PAUSE_SECONDS: Final = 1.0
_PIECE: Final = 32_768

TIME = ending("time", "It was followed for 60 minutes, the longest at once. Connect again.")
RIGHTS = ending("rights", "You may no longer follow this list.")
AWAY = ending("away", "The database does not answer just now. Connect again in a moment.")
TOO_MANY = ending(
    "too-many", f"The list has more than {MOST_OBJECTS:,} objects by now. Follow a part of it."
)


class Stream:
    """What is to be said to one reader. `state` is what it knows already, None for nothing."""

    def __init__(self, question: Question, reader: Reader, state: State | None) -> None:
        self.question = question
        self.reader = reader
        self.state = state
        self.view: View | None = None
        self._waiting: list[str] = []
        self._waits_since = 0.0
        self._is_ended = False
        self._wake = asyncio.Event()
        self._cut = asyncio.Event()

    def begin(self, view: View) -> None:
        """From what the reader knows to what the view has."""
        self.view = view
        if self.state is None:
            self._say([*initial_events(view.items.values()), bookmark(view.version)])
        else:
            self._say([*catching_up(self.state, view), bookmark(view.version)])
        self.state = None

    def leave_view(self) -> None:
        """Remember what was said, to go on in another view."""
        if self.view is not None:
            self.state = self.view.state_at(self.view.number)
            self.view = None

    def tell(self, events: list[str]) -> None:
        if self._is_slow():
            self._cut.set()
        else:
            self._say(events)

    def _say(self, events: Iterable[str]) -> None:
        if not self._waiting:
            self._waits_since = time.monotonic()
        self._waiting.extend(events)
        self._wake.set()

    def _is_slow(self) -> bool:
        if not self._waiting:
            return False
        too_long = time.monotonic() - self._waits_since > SLOW_SECONDS
        return too_long or len(self._waiting) > MOST_WAITING

    def cut_if_slow(self) -> None:
        if self._is_slow():
            self._cut.set()

    def end(self, words: str) -> None:
        """Nothing more comes after these words."""
        self._is_ended = True
        self._waiting = [words]
        self._wake.set()

    async def until_cut(self) -> None:
        await self._cut.wait()

    async def pieces(self, find_hub: Callable[[], Any]) -> AsyncIterator[str]:
        """`find_hub` finds the hub of the event loop that this runs in."""
        ends_at = time.monotonic() + MOST_SECONDS
        hub = find_hub()
        hub.join(self)
        try:
            yield BEGINNING
            while True:
                patience = min(QUIET_SECONDS, ends_at - time.monotonic())
                if patience <= 0:
                    yield TIME
                    return
                if not await self._woken(patience):
                    yield STILL_HERE
                    continue
                while self._waiting:
                    yield self._next_piece()
                if self._is_ended:
                    return
        finally:
            hub.leave(self)

    async def _woken(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return False
        self._wake.clear()
        return True

    def _next_piece(self) -> str:
        size = 0
        count = 0
        for text in self._waiting:
            size += len(text)
            count += 1
            if size > _PIECE:
                break
        piece = "".join(self._waiting[:count])
        del self._waiting[:count]
        self._waits_since = time.monotonic()
        return piece


def initial_events(items: Iterable[Item]) -> Iterator[str]:
    for item in items:
        yield event(ADDED, item.text)


def without_a_loop(question: Question, reader: Reader, state: State | None) -> Iterator[str]:
    """The same for a server without an event loop: it reads again and again in its thread."""
    yield BEGINNING
    view: View | None = None
    ends_at = time.monotonic() + MOST_SECONDS
    try:
        while time.monotonic() < ends_at:
            words = ""
            try:
                allowed = allowed_question(question, access_now([reader]).get(reader))
                if allowed is None:
                    yield RIGHTS
                    return
                if view is None or view.question.key != allowed.key:
                    if view is not None:
                        state = view.state_at(view.number)
                    view = View(allowed)
                    words = _first_words(view, state)
                else:
                    words = "".join(view.take(view.read()))
            except DatabaseError:
                words = AWAY
            except TooMany:
                words = TOO_MANY
            yield words or STILL_HERE
            if words in (AWAY, TOO_MANY):
                return
            time.sleep(PAUSE_SECONDS)
        yield TIME
    finally:
        if view is not None:
            view.left_at = time.monotonic()
            handover.keep(view)


def _first_words(view: View, state: State | None) -> str:
    view.take(view.read())
    if state is None:
        events: Iterable[str] = initial_events(view.items.values())
    else:
        events = catching_up(state, view)
    return "".join((*events, bookmark(view.version)))


def allowed_question(question: Question, access: Access | None) -> Question | None:
    """The same question with the rights of now; None where it may not be asked any more."""
    if access is None:
        return None
    try:
        question.endpoint.rules["list"](access)
    except Forbidden:
        return None
    if (access.visible, access.readable) == (question.access.visible, question.access.readable):
        return question
    return question.with_access(access)


class WatchResponse(StreamingHttpResponse):
    """Ends with its reader, or when the reader is too slow."""

    def __init__(self, content: Any, stream: Stream | None = None) -> None:
        super().__init__(
            content,
            content_type=f"{EVENT_STREAM}; charset=utf-8",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
        self.stream = stream

    async def until_cut(self) -> None:
        if self.stream is None:
            await asyncio.Event().wait()
        else:
            await self.stream.until_cut()
