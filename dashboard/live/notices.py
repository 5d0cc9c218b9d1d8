"""What everybody should know on every page.

The site is read-only, scheduling is paused, no sessions run, the worker fails, or the queue tree is
not valid.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC

from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from dashboard.http.health import FUTURE_SECONDS, future_words, two_schedulers
from dashboard.live.redis_watch import away_since
from scheduler.conf import is_shadow
from scheduler.selectors.cluster.mirror import MirrorFacts, mirror_facts
from scheduler.selectors.cluster.summary import ClusterFacts, cluster_facts

Notice = dict[str, str]
"""`at` is when it began: the page counts how long ago that is, between `text` and `after`.

`queue` is the queue that the text is about.
"""
WHOLE_CLUSTER = "the whole cluster"
"""What a notice is `about` that can name any queue: only those who see all queues get it."""
_LATE_PERIODS = 10
_NOT_VALID = "The queue tree is not valid"


def site_notices(facts: ClusterFacts | None = None) -> list[Notice]:
    facts = facts or cluster_facts()
    found = [
        _read_only_notice(),
        _paused_notice(facts),
        _redis_notice() or _cluster_notice() or _late_notice(facts),
        _failing_notice(facts),
        _invalid_notice(facts),
    ]
    notices = [notice for notice in found if notice]
    for text in facts.warnings:
        notices.append({"level": "warning", "text": text, "about": WHOLE_CLUSTER})
    return notices


def notices_for(seen: Collection[str] | None, notices: Iterable[Notice]) -> list[Notice]:
    """As somebody who sees these queues may read them; None for all queues.

    Nobody learns of other queues, nor how many there are.
    """
    if seen is None:
        return list(notices)
    shown = []
    for notice in notices:
        if notice.get("about") != WHOLE_CLUSTER:
            shown.append(notice)
    return [_without_unseen_queues(seen, notice) for notice in shown]


def _without_unseen_queues(seen: Collection[str], notice: Notice) -> Notice:
    if "queue" not in notice:
        return notice
    if notice["queue"] in seen:
        return {**notice, "text": f"{_NOT_VALID}: {notice['message']}"}
    return {
        "level": notice["level"],
        "text": f"{_NOT_VALID}. An admin of the cluster has to fix it.",
    }


def _read_only_notice() -> Notice | None:
    if not settings.READ_ONLY:
        return None
    text = (
        "This installation is read-only at the moment: you can look at everything and change "
        "nothing. What was submitted before goes on."
    )
    return {"level": "warning", "text": text}


def _paused_notice(facts: ClusterFacts) -> Notice | None:
    if not facts.paused:
        return None
    who = ""
    if facts.paused_by:
        who = f" by {facts.paused_by}"
    why = ""
    if facts.pause_reason:
        why = f": “{facts.pause_reason}”"
    text = f"Scheduling is paused{who}{why}. Nothing new starts until it is resumed."
    return {"level": "warning", "text": text, "url": reverse("sessions"), "link": "To the sessions"}


def _redis_notice() -> Notice | None:
    """It is why no sessions run, so it is named instead of that."""
    since = away_since()
    if since is None:
        return None
    return {
        "level": "error",
        "text": "Redis does not answer for",
        "at": since.astimezone(UTC).isoformat(),
        "after": (
            "now. No sessions run until it is back, "
            "and changes appear on open pages every few seconds only."
        ),
        "url": "/readyz",
        "link": "What is wrong",
    }


def _cluster_notice() -> Notice | None:
    """A real cluster that is not heard: what pages show of it may be old."""
    facts = mirror_facts()
    if facts is None:
        return None
    if facts.is_heard and facts.synced:
        return _neighbours_notice(facts)
    why = facts.problem or "Is the watcher running?"
    if facts.heard_at is None:
        return _not_ready(f"The cluster has not been heard yet. {why}")
    if not facts.is_heard:
        return {
            **_not_ready("The cluster was not heard for"),
            "at": facts.heard_at.astimezone(UTC).isoformat(),
            "after": f"now; what is shown of it may be old. {why}",
        }
    if facts.problem:
        return _not_ready(f"The cluster cannot be read whole. {facts.problem}")
    notice = _not_ready("The cluster is being read. Sessions begin when all of it is known.")
    return {**notice, "level": "warning"}


def _neighbours_notice(facts: MirrorFacts) -> Notice | None:
    """Two schedulers for the same pods, or none."""
    if facts.rivals:
        return _not_ready(two_schedulers(facts))
    if facts.taken_over and is_shadow():
        return {
            "level": "error",
            "text": (
                f"New pods of {facts.taken_over.in_words()} are for Fumarole, which only watches, "
                "so nobody places them. Start it with KUBERNETES_MODE=schedule, or give them back: "
                "manage.py kubernetes give-back"
            ),
            "about": WHOLE_CLUSTER,
        }
    return None


def _not_ready(text: str) -> Notice:
    return {"level": "error", "text": text, "url": "/readyz", "link": "What is wrong"}


def _late_notice(facts: ClusterFacts) -> Notice | None:
    """The page is up to date, but the scheduler decides nothing."""
    if facts.paused or facts.last_session_at is None:
        return None
    age = (timezone.now() - facts.last_session_at).total_seconds()
    if age < -FUTURE_SECONDS:
        return {
            "level": "error",
            "text": future_words(facts.last_session_at),
            "url": "/readyz",
            "link": "What is wrong",
        }
    if age <= _LATE_PERIODS * facts.period_seconds:
        return None
    return {
        "level": "error",
        "text": "No scheduling for",
        "at": facts.last_session_at.astimezone(UTC).isoformat(),
        "after": f"(normally every {facts.period_seconds:g} s). Is the scheduler worker running?",
        "url": "/readyz",
        "link": "What is wrong",
    }


def _failing_notice(facts: ClusterFacts) -> Notice | None:
    """Sessions go on, but what they decide, or what is asked for, may not be done."""
    if not facts.failing:
        return None
    parts = ", ".join(facts.failing)
    text = f"The worker fails at {parts}, and tries again at each tick. Its log says why."
    return {"level": "error", "text": text, "url": "/readyz", "link": "What is wrong"}


def _invalid_notice(facts: ClusterFacts) -> Notice | None:
    if not facts.invalid:
        return None
    name, message = facts.invalid[0]
    more = ""
    if len(facts.invalid) > 1:
        more = f" ({len(facts.invalid)} queues)"
    return {
        "level": "error",
        "text": f"{_NOT_VALID}{more}: {message}",
        "queue": name,
        "message": message,
        "url": reverse("queue", args=[name]),
        "link": f"Look at {name}",
    }
