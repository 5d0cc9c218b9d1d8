"""What an open page can follow: the rows of each topic, who sees them, what changes touch it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dashboard.live.job_topics import present_jobs, present_live_jobs, present_live_nodes
from dashboard.live.notices import notices_for, site_notices
from dashboard.live.redis_watch import away_since
from dashboard.present.queues import PresentedRow, present_queues
from scheduler.notify import EVERYTHING
from scheduler.selectors.cluster.mirror import mirror_facts
from scheduler.selectors.cluster.summary import cluster_facts
from scheduler.selectors.queues.listing import queue_rows
from scheduler.selectors.queues.page import waiting_by_reason_and_queue

Rows = dict[str, str]
"""The key of a row -> the row as JSON."""
VisibleQueues = frozenset[str] | None
"""The names of the queues that somebody may see; None for all."""

_NAME = r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
_TOPIC = re.compile(rf"queues|jobs|nodes|cluster|queue:{_NAME}|job:{_NAME}/{_NAME}")

# A change of the one touches topics of the others: a new job changes its queue's counts.
_TOUCHES = {
    "queues": ("queues", "queue"),
    "jobs": ("jobs", "job", "queues", "queue"),
    "nodes": ("nodes", "cluster"),
    "cluster": ("cluster",),
}


def subject_of(topic: str) -> str:
    """What stands before the colon: "queue" of "queue:team-a"."""
    return topic.partition(":")[0]


def name_in(topic: str) -> str:
    """What stands behind the colon, "" where there is none."""
    return topic.partition(":")[2]


def may_follow(visible: VisibleQueues, topic: str) -> bool:
    """Whether somebody who sees these queues may follow the topic.

    Of topics with rows of many queues, the rows are filtered instead.
    """
    if not _TOPIC.fullmatch(topic):
        return False
    if visible is None:
        return True
    if subject_of(topic) == "queue":
        return name_in(topic) in visible
    if subject_of(topic) == "nodes":
        return bool(visible)  # nodes belong to no queue: whoever sees any queue sees them
    return True


def as_seen(visible: VisibleQueues, topic: str, key: str, row: str) -> str | None:
    """A row of the topic as somebody who sees these queues may read it; None where they may not."""
    subject = subject_of(topic)
    if visible is None or subject == "nodes":
        return row
    if subject == "cluster":
        content = json.loads(row)
        return encode({**content, "notices": notices_for(visible, content["notices"])})
    queue = key
    if subject in ("jobs", "job"):
        queue = json.loads(row).get("queue")
    if queue not in visible:
        return None
    return row


def topics_touched(changed: Mapping[str, Iterable[str]], followed: Iterable[str]) -> set[str]:
    """Of the topics that are followed, those that may have changed."""
    subjects: set[str] = set()
    for subject in changed:
        subjects.update(_TOUCHES.get(subject, ()))
    jobs = set(changed.get("jobs", (EVERYTHING,)))
    touched = set()
    for topic in followed:
        if subject_of(topic) in subjects and _concerns(topic, jobs):
            touched.add(topic)
    return touched


def _concerns(topic: str, jobs: set[str]) -> bool:
    if EVERYTHING in jobs or subject_of(topic) != "job":
        return True
    return name_in(topic) in jobs


def encode(row: Mapping[str, Any]) -> str:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False)


def _encode_once(row: PresentedRow) -> str:
    if row.encoded is None:
        row.encoded = encode(row)
    return row.encoded


def read_topics(names: Iterable[str]) -> dict[str, Rows]:
    """The rows of all these topics; each table is read once. Runs in a thread of its own."""
    by_reader: dict[Callable[[set[str]], dict[str, Rows]], set[str]] = {}
    for topic in names:
        reader = READERS.get(subject_of(topic))
        if reader and _TOPIC.fullmatch(topic):
            by_reader.setdefault(reader, set()).add(topic)
    found: dict[str, Rows] = {}
    for reader, topics in by_reader.items():
        found.update(reader(topics))
    return found


def _read_queues(topics: set[str]) -> dict[str, Rows]:
    presented = present_queues(queue_rows())
    rows = {name: _encode_once(row) for name, row in presented.items()}
    single = topics - {"queues"}
    found: dict[str, Rows] = {}
    if "queues" in topics:
        found["queues"] = rows
    if single:
        reasons = waiting_by_reason_and_queue()
        for topic in single:
            found[topic] = _queue_with_reasons(presented, name_in(topic), reasons)
    return found


def _queue_with_reasons(
    presented: Mapping[str, PresentedRow],
    name: str,
    reasons: Mapping[str, dict[str, int]],
) -> Rows:
    """The queue's row, and why its gangs wait: its page shows more than the tree does."""
    if name not in presented:
        return {}
    return {name: encode({**presented[name], "reasons": reasons.get(name, {})})}


def _read_cluster(topics: set[str]) -> dict[str, Rows]:
    facts = cluster_facts()
    last = facts.last_session_at
    row = {
        "key": "cluster",
        "name": facts.name,
        "paused": facts.paused,
        "lastSession": facts.last_session,
        "lastSessionAt": last.isoformat() if last else None,
        "periodSeconds": facts.period_seconds,
        "isRedisAway": away_since() is not None,
        "silentSince": _silent_since(),
        "notices": site_notices(facts),
    }
    rows = {"cluster": encode(row)}
    return dict.fromkeys(topics, rows)


def _silent_since() -> str | None:
    """Since when a real cluster was not heard."""
    facts = mirror_facts()
    if facts is None or facts.is_heard or facts.heard_at is None:
        return None
    return facts.heard_at.isoformat()


def _read_jobs(topics: set[str]) -> dict[str, Rows]:
    rows = {key: encode(row) for key, row in present_live_jobs().items()}
    return dict.fromkeys(topics, rows)


def _read_single_jobs(topics: set[str]) -> dict[str, Rows]:
    presented = present_jobs({name_in(topic) for topic in topics})
    found: dict[str, Rows] = {}
    for topic in topics:
        key = name_in(topic)
        found[topic] = {}
        if key in presented:
            found[topic][key] = encode(presented[key])
    return found


def _read_nodes(topics: set[str]) -> dict[str, Rows]:
    rows = {key: encode(row) for key, row in present_live_nodes().items()}
    return dict.fromkeys(topics, rows)


READERS: dict[str, Callable[[set[str]], dict[str, Rows]]] = {
    "queues": _read_queues,
    "queue": _read_queues,
    "cluster": _read_cluster,
    "jobs": _read_jobs,
    "job": _read_single_jobs,
    "nodes": _read_nodes,
}
