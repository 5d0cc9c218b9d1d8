"""Notices as a message: a subject, a text for people, and JSON for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from scheduler.conf import conf
from scheduler.domain.notices import KIND_COUNTED, NoticeKind
from scheduler.models import Notice

MOST_LINES: Final = 50
MOST_OBJECTS: Final = 200


def subject_of(notices: Sequence[Notice]) -> str:
    if len(notices) == 1:
        return " ".join(notices[0].title.split())  # a header has one line
    counts = Counter(notice.kind for notice in notices)
    parts = [f"{number} {KIND_COUNTED[NoticeKind(kind)]}" for kind, number in counts.items()]
    return f"{len(notices)} notices: {', '.join(parts)}"


def text_of(notices: Sequence[Notice]) -> str:
    lines: list[str] = []
    for notice in notices[:MOST_LINES]:
        lines.append(notice.title)
        if notice.message:
            lines.append(f"  {notice.message}")
        if link := link_to(notice.path):
            lines.append(f"  {link}")
    more = len(notices) - MOST_LINES
    if more > 0:
        lines.append(f"… and {more} more.")
    if inbox := link_to("/account/notices/"):
        lines += ["", f"All notices, and what you are told of: {inbox}"]
    return "\n".join(lines)


def body_of(notices: Sequence[Notice], created_at: datetime, *, is_test: bool = False) -> bytes:
    """What a webhook gets. It is the same whenever it is sent again."""
    objects = [_object(notice) for notice in notices[:MOST_OBJECTS]]
    kind = "notices.test" if is_test else "notices"
    data = {"count": len(notices), "leftOut": len(notices) - len(objects), "notices": objects}
    whole = {"type": kind, "timestamp": created_at.isoformat(), "data": data}
    return json.dumps(whole, separators=(",", ":")).encode()


def _object(notice: Notice) -> dict[str, Any]:
    return {
        "id": str(notice.uid),
        "kind": notice.kind,
        "title": notice.title,
        "message": notice.message,
        "queue": notice.queue.name if notice.queue else "",
        "namespace": notice.namespace,
        "name": notice.name,
        "at": notice.at.isoformat(),
        "url": link_to(notice.path),
    }


def link_to(path: str) -> str:
    """Empty where nobody has said where the pages are."""
    base = conf().notices.public_url
    if not base:
        return ""
    return base + path
