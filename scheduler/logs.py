"""What a line of a log says beside its message: which request, task and session it belongs to.

`LOG_FORMAT=json` gives each line as one JSON object, `plain` as a sentence with the same ids behind
it. The ids go from a request to the tasks that it asks for, and from them to the tasks that these
ask for (`dashboard/worker/log.py`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

PASSED_ON: Final = ("request_id", "session")
"""What a task takes over from whoever asked for it."""

REQUESTS: Final = "fumarole.requests"
SESSIONS: Final = "fumarole.sessions"
"""The loggers with a line for each request, and for each session that decided something."""


_ids: ContextVar[Mapping[str, object]] = ContextVar("ids", default=MappingProxyType({}))


@contextmanager
def known_as(**ids: object) -> Iterator[None]:
    """Lines that are logged inside of this block carry these ids."""
    token = _ids.set({**_ids.get(), **ids})
    try:
        yield
    finally:
        _ids.reset(token)


def known_ids() -> Mapping[str, object]:
    """The ids of the line that would be logged here."""
    return _ids.get()


def ids_to_pass_on() -> dict[str, object]:
    found = _ids.get()
    return {name: found[name] for name in PASSED_ON if name in found}


def begin_with(ids: Mapping[str, object]) -> None:
    """Forgets all ids and takes these: for a process that does one thing after the other."""
    _ids.set(dict(ids))


class PlainLines(logging.Formatter):
    """`WARNING scheduler.tasks: The database does not answer. [request_id=…]`"""

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s%(ids)s")

    def format(self, record: logging.LogRecord) -> str:
        record.ids = self._ids()
        return super().format(record)

    @staticmethod
    def _ids() -> str:
        ids = known_ids()
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
        entry.update(known_ids())
        entry.update(getattr(record, "fields", {}))
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str, ensure_ascii=False)
