"""The beginning of the log of changed rows (models/change.py).

It begins with a new database, and with one that was restored elsewhere.
"""

from __future__ import annotations

import logging

from django.db import transaction

from scheduler.models import Change, ChangeHorizon
from scheduler.selectors.sessions.change_log import log_state

logger = logging.getLogger(__name__)


def ensure_own_change_log() -> None:
    """Where the entries belong to another log, begin a new one.

    Whoever has read so far then reads everything once.
    """
    if log_state().is_named:
        return
    with transaction.atomic():
        state = log_state()
        had_another = ChangeHorizon.objects.exclude(log="").exists()
        removed, _ = Change.objects.all().delete()
        ChangeHorizon.objects.update_or_create(
            id=1, defaults={"position": state.here, "log": state.log}
        )
    if removed and had_another:  # the entries of a new database are of its own preparation
        logger.warning(
            "The log of changed rows came from another database. It starts over, and everything is "
            "read once."
        )
