"""Who asks, and through which door: goes with every write."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from scheduler.domain.access import Access


class Door(StrEnum):
    UI = "UI"
    API = "API"
    CLI = "CLI"
    WEBHOOK = "webhook"
    MANIFEST = "manifest"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Actor:
    """`user` is the account's row, None for the system itself.

    `scopes` are those of the token that was used, None for a person.

    `access` is what this caller may do, where the one who built the actor has just read it; None
    where nobody has. `reason` is why, in the caller's own words: it stands in the audit log with
    whatever is done. `token` is the row of the token that was used.
    """

    name: str = "system"
    door: Door = Door.SYSTEM
    user: Any = None
    address: str = ""
    request_id: str = ""
    scopes: frozenset[str] | None = None
    access: Access | None = None
    reason: str = ""
    token: Any = None

    @property
    def token_ends_at(self) -> datetime | None:
        """When the token in use ends; None without a token, and for one without an end."""
        if self.token is None:
            return None
        ends_at: datetime | None = self.token.expires_at
        return ends_at


SYSTEM = Actor()


def submitter(by: Actor) -> str:
    """Whose work it will be, for the limits of each user; the system itself has none."""
    if by.user is None and by.name == SYSTEM.name:
        return ""
    return by.name
