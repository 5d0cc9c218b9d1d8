"""Learns who opens a socket. Those who come while it asks the database are asked for together: hundreds may come back at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.sessions.models import Session
from django.utils import timezone

from dashboard.live.topics import Sight
from scheduler.selectors.accounts.access import sights_of


class Visitor(NamedTuple):
    user: Any
    sight: Sight


def signed_in(keys: Iterable[str]) -> dict[str, Any]:
    """The users of these browser sessions, where a session has not run out, and its user may still sign in, with the same password."""
    sessions = Session.objects.filter(session_key__in=list(keys), expire_date__gt=timezone.now())
    contents = {session.session_key: session.get_decoded() for session in sessions}
    named = {data[SESSION_KEY] for data in contents.values() if SESSION_KEY in data}
    accounts = {
        str(user.pk): user for user in get_user_model().objects.filter(pk__in=named, is_active=True)
    }
    hashes = {pk: _hashes(user) for pk, user in accounts.items()}
    found = {}
    for key, data in contents.items():
        pk = data.get(SESSION_KEY, "")
        if data.get(HASH_SESSION_KEY) in hashes.get(pk, ()):
            found[key] = accounts[pk]
    return found


def _hashes(user: Any) -> list[str]:
    """That of his password, and those that it had under older keys of the site."""
    return [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]


def visitors(keys: Iterable[str]) -> dict[str, Visitor]:
    """Who is behind these browser sessions, in a few queries for all of them together."""
    users = signed_in(keys)
    sights = sights_of({user.pk: user for user in users.values()}.values())
    return {key: Visitor(user, sights[user.pk]) for key, user in users.items()}


_Answer = asyncio.Future[Visitor | None]


class Door:
    """One for each event loop."""

    _doors: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, Door]] = WeakKeyDictionary()

    def __init__(self) -> None:
        self._waiting: list[tuple[str, _Answer]] = []
        self._asking: asyncio.Task[None] | None = None
        self._find = database_sync_to_async(
            self._look, thread_sensitive=False, executor=ThreadPoolExecutor(1, "door")
        )

    @classmethod
    def of_this_loop(cls) -> Door:
        loop = asyncio.get_running_loop()
        if loop not in cls._doors:
            cls._doors[loop] = cls()
        return cls._doors[loop]

    async def visitor(self, session_key: str) -> Visitor | None:
        """None for a session that is none, or no longer. Raises what the database raises."""
        answer: _Answer = asyncio.get_running_loop().create_future()
        self._waiting.append((session_key, answer))
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        return await answer

    def _look(self, keys: set[str]) -> dict[str, Visitor]:
        return visitors(keys)

    async def _ask(self) -> None:
        while self._waiting:
            asked, self._waiting = self._waiting, []
            try:
                found = await self._find({key for key, _ in asked})
            except Exception as problem:
                for _, answer in asked:
                    if not answer.done():
                        answer.set_exception(problem)
            else:
                for key, answer in asked:
                    if not answer.done():
                        answer.set_result(found.get(key))
