"""Who opens a socket. Questions that come at the same time are asked of the database together.

Hundreds of pages may come back at once.
"""

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

from dashboard.live.topics import VisibleQueues
from scheduler.selectors.accounts.access import sights_of


class Visitor(NamedTuple):
    user: Any
    visible: VisibleQueues


def signed_in(keys: Iterable[str]) -> dict[str, Any]:
    """The users of these browser sessions.

    A session is left out where it has run out, its user is not active, or their password changed.
    """
    sessions = Session.objects.filter(session_key__in=list(keys), expire_date__gt=timezone.now())
    contents = {}
    for session in sessions:
        contents[session.session_key] = session.get_decoded()
    accounts = _active_accounts(contents.values())
    hashes = {pk: _password_hashes(user) for pk, user in accounts.items()}
    found = {}
    for key, data in contents.items():
        pk = data.get(SESSION_KEY, "")
        if data.get(HASH_SESSION_KEY) in hashes.get(pk, ()):
            found[key] = accounts[pk]
    return found


def _active_accounts(contents: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The accounts that these sessions name, by primary key as text."""
    named = set()
    for data in contents:
        if SESSION_KEY in data:
            named.add(data[SESSION_KEY])
    users = get_user_model().objects.filter(pk__in=named, is_active=True)
    return {str(user.pk): user for user in users}


def _password_hashes(user: Any) -> list[str]:
    """The session's hash of their password, made with the site's key and with its older keys."""
    return [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]


def visitors(keys: Iterable[str]) -> dict[str, Visitor]:
    """Who is behind these browser sessions, in a few queries for all of them together."""
    users = signed_in(keys)
    once_each = {user.pk: user for user in users.values()}
    visible = sights_of(once_each.values())
    found: dict[str, Visitor] = {}
    for key, user in users.items():
        found[key] = Visitor(user, visible[user.pk])
    return found


_Answer = asyncio.Future[Visitor | None]


class Identification:
    """Finds out who opens a socket. There is one for each event loop."""

    _by_loop: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, Identification]] = (
        WeakKeyDictionary()
    )

    def __init__(self) -> None:
        self._waiting: list[tuple[str, _Answer]] = []
        self._asking: asyncio.Task[None] | None = None
        thread = ThreadPoolExecutor(1, "identity")
        self._find = database_sync_to_async(
            self._find_visitors, thread_sensitive=False, executor=thread
        )

    @classmethod
    def of_this_loop(cls) -> Identification:
        loop = asyncio.get_running_loop()
        if loop not in cls._by_loop:
            cls._by_loop[loop] = cls()
        return cls._by_loop[loop]

    async def visitor_of(self, session_key: str) -> Visitor | None:
        """None where the session is not valid. Raises what the database raises."""
        answer: _Answer = asyncio.get_running_loop().create_future()
        self._waiting.append((session_key, answer))
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._answer_waiting())
        return await answer

    def _find_visitors(self, keys: set[str]) -> dict[str, Visitor]:
        return visitors(keys)

    async def _answer_waiting(self) -> None:
        while self._waiting:
            asked = self._waiting
            self._waiting = []
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
