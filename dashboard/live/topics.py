"""What an open page can follow: each topic's rows, who may see them, and which news touches them."""

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
from scheduler.selectors.cluster.summary import cluster_facts
from scheduler.selectors.queues.listing import queue_rows
from scheduler.selectors.queues.page import waiting_by_reason_and_queue

Rows = dict[str, str]  # key of the row -> the row as JSON text

_NAME = r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
_TOPIC = re.compile(rf"queues|jobs|nodes|cluster|queue:{_NAME}|job:{_NAME}/{_NAME}")

# News of the one touches topics of the others: a job that comes or goes changes its queue's counts.
_TOUCHES = {
    "queues": ("queues", "queue"),
    "jobs": ("jobs", "job", "queues", "queue"),
    "nodes": ("nodes", "cluster"),
    "cluster": ("cluster",),
}


def split(topic: str) -> tuple[str, str]:
    """Its kind and the name after the colon, if there is one."""
    kind, _, name = topic.partition(":")
    return kind, name


Sight = frozenset[str] | None  # the names of the queues somebody may see; None for all


def may_follow(sight: Sight, topic: str) -> bool:
    """Whether who sees these queues may follow the topic. Where a topic has rows of many queues, the rows are filtered instead."""
    kind, name = split(topic)
    if not _TOPIC.fullmatch(topic):
        return False
    if sight is None or kind not in ("queue", "nodes"):
        return True
    return (
        name in sight if kind == "queue" else bool(sight)
    )  # machines belong to no queue: whoever sees any queue sees them


def as_seen(sight: Sight, topic: str, key: str, row: str) -> str | None:
    """A row of the topic, given as its text, as it is for these eyes; None where it is not."""
    kind = split(topic)[0]
    if sight is None or kind == "nodes":
        return row
    if kind == "cluster":
        told = json.loads(row)
        return encode({**told, "notices": notices_for(sight, told["notices"])})
    queue = json.loads(row).get("queue") if kind in ("jobs", "job") else key
    return row if queue in sight else None


def topics_touched(changed: Mapping[str, Iterable[str]], followed: Iterable[str]) -> set[str]:
    """Of the topics that are followed, those that the news may have changed."""
    kinds = {kind for news in changed for kind in _TOUCHES.get(news, ())}
    jobs = set(changed.get("jobs", (EVERYTHING,)))
    return {
        topic
        for topic in followed
        if split(topic)[0] in kinds and (EVERYTHING in jobs or _concerns(topic, jobs))
    }


def _concerns(topic: str, jobs: set[str]) -> bool:
    kind, name = split(topic)
    return kind != "job" or name in jobs


def encode(row: Mapping[str, Any]) -> str:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False)


def _encoded(row: PresentedRow) -> str:
    if row.encoded is None:
        row.encoded = encode(row)
    return row.encoded


def read_topics(names: Iterable[str]) -> dict[str, Rows]:
    """The rows of all these topics, each kind read once. Runs in a thread of its own."""
    asked = {name for name in names if _TOPIC.fullmatch(name)}
    by_reader: dict[Callable[[set[str]], dict[str, Rows]], set[str]] = {}
    for topic in asked:
        reader = READERS.get(split(topic)[0])
        if reader:
            by_reader.setdefault(reader, set()).add(topic)
    return {
        topic: rows
        for reader, topics in by_reader.items()
        for topic, rows in reader(topics).items()
    }


def _read_queues(topics: set[str]) -> dict[str, Rows]:
    presented = present_queues(queue_rows())
    rows = {name: _encoded(row) for name, row in presented.items()}
    found = {"queues": rows} if "queues" in topics else {}
    if topics - found.keys():
        reasons = waiting_by_reason_and_queue()
        found |= {
            topic: _one_queue(presented, split(topic)[1], reasons)
            for topic in topics - found.keys()
        }
    return found


def _one_queue(
    presented: Mapping[str, PresentedRow], name: str, reasons: Mapping[str, dict[str, int]]
) -> Rows:
    """The queue's row, and why its gangs wait: its page shows more of it than the tree does."""
    return (
        {name: encode({**presented[name], "reasons": reasons.get(name, {})})}
        if name in presented
        else {}
    )


def _read_cluster(topics: set[str]) -> dict[str, Rows]:
    facts = cluster_facts()
    row = {
        "key": "cluster",
        "name": facts.name,
        "paused": facts.paused,
        "lastSession": facts.last_session,
        "lastSessionAt": facts.last_session_at.isoformat() if facts.last_session_at else None,
        "periodSeconds": facts.period_seconds,
        "isRedisAway": away_since() is not None,
        "notices": site_notices(facts),
    }
    encoded = {"cluster": encode(row)}
    return dict.fromkeys(topics, encoded)


def _read_jobs(topics: set[str]) -> dict[str, Rows]:
    rows = {key: encode(row) for key, row in present_live_jobs().items()}
    return dict.fromkeys(topics, rows)


def _read_job(topics: set[str]) -> dict[str, Rows]:
    presented = present_jobs({split(topic)[1] for topic in topics})
    return {
        topic: {key: encode(presented[key])} if (key := split(topic)[1]) in presented else {}
        for topic in topics
    }


def _read_nodes(topics: set[str]) -> dict[str, Rows]:
    rows = {key: encode(row) for key, row in present_live_nodes().items()}
    return dict.fromkeys(topics, rows)


READERS: dict[str, Callable[[set[str]], dict[str, Rows]]] = {
    "queues": _read_queues,
    "queue": _read_queues,
    "cluster": _read_cluster,
    "jobs": _read_jobs,
    "job": _read_job,
    "nodes": _read_nodes,
}
