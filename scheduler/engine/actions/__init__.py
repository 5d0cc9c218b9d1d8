"""The steps of a session, by the name that a policy uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from scheduler.engine.actions.allocate import allocate
from scheduler.engine.actions.backfill import backfill
from scheduler.engine.actions.enqueue import enqueue
from scheduler.engine.actions.preempt import preempt
from scheduler.engine.actions.reclaim import reclaim
from scheduler.engine.actions.shed import shed
from scheduler.engine.session import Session

Action = Callable[[Session], None]

ACTIONS: Final[dict[str, Action]] = {
    "enqueue": enqueue,
    "allocate": allocate,
    "preempt": preempt,
    "reclaim": reclaim,
    "shed": shed,
    "backfill": backfill,
}
