"""Logs as the API server gives them: with times, since a time, the last lines, and only so much."""

from __future__ import annotations

from collections.abc import Mapping

_BEGAN = "2026-11-18T04:00:{:02}.000000000Z"
_STAMP_LENGTH = len(_BEGAN.format(0))


def log_answer(written: str, question: Mapping[str, str]) -> str:
    """A line that does not begin with a time was written a second after the one before it."""
    lines = [_stamped(number, line) for number, line in enumerate(written.splitlines())]
    if since := question.get("sinceTime"):
        lines = [line for line in lines if line[:19] >= since[:19]]
    if last := question.get("tailLines"):
        lines = lines[-int(last) :]
    if question.get("timestamps") != "true":
        lines = [line[_STAMP_LENGTH + 1 :] for line in lines]
    text = "".join(f"{line}\n" for line in lines)
    return text.encode()[: int(question.get("limitBytes", len(text) + 1))].decode(errors="ignore")


def _stamped(number: int, line: str) -> str:
    if line[:4].isdigit() and line[4:5] == "-":
        return line
    return f"{_BEGAN.format(number % 60)} {line}"
