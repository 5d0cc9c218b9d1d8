"""What the server refused, in the words of the command that was typed.

Options are named instead of the fields and parameters of the API.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

_SEGMENT: Final = re.compile(r"[.\[\]]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# What the API calls otherwise than the command line does.
_OTHER_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "label": ("--label-selector", "--selector", "--label"),
    "labels": ("--label",),
    "annotations": ("--annotation",),
    "minAvailable": ("--min",),
    "priorityClassName": ("--priority-class",),
    "schedulerName": ("--scheduler",),
    "page_size": ("--limit",),
    "timeZone": ("--zone",),
    "lostNodes": ("--lose",),
    "beginsAt": ("--at",),
    "changeSet": ("--changes",),
}
_PARAMETERS: Final[Mapping[str, str]] = {
    "cascade=true": "--cascade",
    "close_first=true": "--close-first",
    "dry_run=true": "--dry-run",
}
# What else a command can do about it.
_MORE_WAYS: Final[Mapping[str, tuple[str, str]]] = {
    "queue_not_closed": ("--close-first", "or say --close-first"),
}


def sentence(violation: Mapping[str, str], options: Collection[str] = ()) -> str:
    """What is wrong, where, and what to do: `The weight is 0; … (--weight). Fix: write …`."""
    field = violation.get("field", "")
    option = option_for(field, options)
    message = violation["message"].rstrip()
    if option:
        message = _with_option(message, field, option)
    place = option or field
    if place and place not in message:
        where = f" ({place})"
    else:
        where = ""
    words = f"{message.rstrip('.')}{where}."
    fix = _fix_text(violation, options)
    if fix:
        return f"{words} Fix: {fix}."
    return words


def _with_option(message: str, field: str, option: str) -> str:
    """A field such as `end` is also a word of sentences: it names the field only in front."""
    if not (field.isalpha() and field.islower()):
        return message.replace(field, option)
    if message.startswith(f"{field} "):
        return option + message.removeprefix(field)
    return message


def option_for(field: str, options: Collection[str]) -> str:
    """The option of this command that sets the field, "" where none does."""
    for part in reversed(_SEGMENT.split(field)):
        kebab = "--" + _HUMP.sub("-", part).replace("_", "-").lower()
        for option in (kebab, *_OTHER_NAMES.get(part, ())):
            if option in options:
                return option
    return ""


def _fix_text(violation: Mapping[str, str], options: Collection[str]) -> str:
    fix = violation.get("fix", "").rstrip(".")
    for parameter, option in _PARAMETERS.items():
        if option in options:
            fix = fix.replace(parameter, option)
    option, way = _MORE_WAYS.get(violation.get("ruleId", ""), ("", ""))
    if option and option in options and fix:
        return f"{fix}, {way}"
    return fix
