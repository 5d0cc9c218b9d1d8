"""With this folder in PYTHONPATH, the time of day of a Python process is wrong by SKEW_SECONDS.

Python imports this module before anything else. Steady clocks go on as they are.
"""

from __future__ import annotations

import datetime
import os
import time
from typing import Any

_OFFSET = float(os.environ.get("SKEW_SECONDS", "0"))
_real_time = time.time
_real_datetime = datetime.datetime


class _SameInstances(type):
    """Whatever is a datetime is one of these, too."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _real_datetime)


class _SkewedDatetime(_real_datetime, metaclass=_SameInstances):
    def __new__(cls, *given: Any, **named: Any) -> Any:
        return _real_datetime(*given, **named)

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        return _real_datetime.now(tz) + datetime.timedelta(seconds=_OFFSET)

    @classmethod
    def utcnow(cls) -> Any:
        return cls.now(datetime.UTC).replace(tzinfo=None)


if _OFFSET:
    datetime.datetime = _SkewedDatetime  # type: ignore[misc]
    time.time = lambda: _real_time() + _OFFSET
