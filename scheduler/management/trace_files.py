"""Files of recorded loads, as commands take them: CSV or SWF, plain or compressed with gzip."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import TextIO

from scheduler.domain.swf import read_swf
from scheduler.domain.traces import TraceError, TraceJob, read_trace


def read_trace_file(path: str) -> list[TraceJob]:
    """Jobs in the order of their coming.

    Raises `TraceError`, whose message names the file and what is wrong with it.
    """
    try:
        with _open_text(path) as lines:
            if ".swf" in Path(path).suffixes:
                return read_swf(lines, path)
            return read_trace(lines, path)
    except UnicodeDecodeError:
        raise TraceError(f"{path} cannot be read: it is not a text in UTF-8.") from None
    except (gzip.BadGzipFile, zlib.error, EOFError):
        raise TraceError(f"{path} cannot be read: it is not a whole gzip file.") from None
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}.") from None


def _open_text(path: str) -> TextIO:
    if path.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return Path(path).open(encoding="utf-8-sig", newline="")
