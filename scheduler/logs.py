"""What a line of a log says beside its message: which request, task and session it belongs to.

`LOG_FORMAT=json` gives each line as one JSON object, `plain` as a sentence with the same ids behind
it. The ids go from a request to the tasks that it asks for, and from them to the tasks that these
ask for (`dashboard/worker/log.py`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Final

from structlog.contextvars import (
    bind_contextvars,
    bound_contextvars,
    clear_contextvars,
    get_contextvars,
)

PASSED_ON: Final = ("request_id", "session")
"""What a task takes over from whoever asked for it."""

REQUESTS: Final = "fumarole.requests"
SESSIONS: Final = "fumarole.sessions"
"""The loggers with a line for each request, and for each session that decided something."""


def known_as(**ids: object) -> AbstractContextManager[None]:
    """Lines that are logged inside of this block carry these ids."""
    return bound_contextvars(**ids)


def ids_to_pass_on() -> dict[str, object]:
    found = get_contextvars()
    return {name: found[name] for name in PASSED_ON if name in found}


def begin_with(ids: Mapping[str, object]) -> None:
    """Forgets all ids and takes these: for a process that does one thing after the other."""
    clear_contextvars()
    bind_contextvars(**ids)


class PlainLines(logging.Formatter):
    """`WARNING scheduler.tasks: The database does not answer. [request_id=…]`"""

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s%(ids)s")

    def format(self, record: logging.LogRecord) -> str:
        record.ids = self._ids()
        return super().format(record)

    @staticmethod
    def _ids() -> str:
        ids = get_contextvars()
        if not ids:
            return ""
        said = " ".join(f"{name}={value}" for name, value in sorted(ids.items()))
        return f" [{said}]"


class JsonLines(logging.Formatter):
    """One JSON object a line. Fields of a record are those given as `extra={"fields": {…}}`."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
        }
        entry.update(get_contextvars())
        entry.update(getattr(record, "fields", {}))
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str, ensure_ascii=False)
