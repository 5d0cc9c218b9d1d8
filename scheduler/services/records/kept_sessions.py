"""Sessions that can be run again are thinned out with age, and to the bytes that they may take."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q
from django.db.models.functions import Length

from scheduler.conf import conf
from scheduler.domain.kept_sessions import KeptSession, thinned_out
from scheduler.models import SavedScenario


def thin_out_kept_sessions(now: datetime, usual: timedelta, for_long: timedelta) -> None:
    """`for_long` is for how long those stay that evicted something or were asked for."""
    SavedScenario.objects.filter(
        Q(stays=False, created_at__lt=now - usual) | Q(created_at__lt=now - for_long)
    ).delete()
    rows = SavedScenario.objects.order_by().values_list(
        "session_number", "created_at", Length("content"), "stays"
    )
    kept = [KeptSession(*row) for row in rows]
    gone = thinned_out(kept, now, conf().replay_megabytes * 2**20)
    SavedScenario.objects.filter(session_number__in=gone).delete()
