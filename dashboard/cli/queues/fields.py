"""The texts and limits of a queue's `spec` that `vcctl` sets and shows.

The server's own table is `scheduler/domain/queue_fields.py`, which `vcctl` must not import; a test
compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from dashboard.cli.commands import Options


@dataclass(frozen=True, slots=True)
class TextField:
    """`key` is its place in `spec`. Only `has_option` can be set by an option of its own."""

    key: str
    label: str
    help: str = ""
    has_option: bool = True
    is_wide: bool = False  # a column of `queue list -o wide`


TEXT_FIELDS = (
    TextField("type", "Type", has_option=False),
    TextField("owner", "Owner", "The team or person to ask about it.", is_wide=True),
    TextField("description", "Description", "What it is for, at most 2000 characters."),
    TextField(
        "namespaces",
        "Takes work from",
        "Namespaces whose work may come here and below, with commas between them.",
    ),
)


@dataclass(frozen=True, slots=True)
class LimitField:
    key: str
    label: str
    help: str

    @property
    def name(self) -> str:
        """As the option's variable is called."""
        return "".join(f"_{each.lower()}" if each.isupper() else each for each in self.key)

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"


LIMIT_FIELDS = (
    LimitField(
        "maxWaitingJobs",
        "Waiting jobs",
        "Jobs that may wait here and below, all users together.",
    ),
    LimitField(
        "maxWaitingPods",
        "Waiting pods",
        "Pods that may wait here and below, all users together.",
    ),
    LimitField(
        "maxWaitingJobsPerUser",
        "Waiting jobs of each user",
        "Jobs of one user that may wait here and below.",
    ),
    LimitField(
        "maxWaitingPodsPerUser",
        "Waiting pods of each user",
        "Pods of one user that may wait here and below.",
    ),
    LimitField(
        "maxPodsPerJob",
        "Pods of one job",
        "Pods that one job here or below may have, all its tasks together.",
    ),
    LimitField(
        "maxRunSeconds",
        "Longest running time",
        "Seconds that a job may run here or below. Then it is ended.",
    ),
)


def limit_options() -> Options:
    """An option for each: None where it is not given, "" to take the limit away."""
    options = {}
    for field in LIMIT_FIELDS:
        option = typer.Option(
            field.flag, metavar="NUMBER", help=f"{field.help} Empty: no limit.", show_default=False
        )
        options[field.name] = (Annotated[str | None, option], None)
    return options


def given_numbers(given: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The part of a `spec` that options for whole numbers stand for: `names` is by key.

    "" takes the number away. A text that is no number is for the server to refuse.
    """
    found: dict[str, Any] = {}
    for key, name in names.items():
        typed = given[name]
        if typed is None:
            continue
        if typed.isascii() and typed.isdigit():
            found[key] = int(typed)
        else:
            found[key] = typed or None
    return found


def shown_limits(queue: str, limits: Sequence[Mapping[str, Any]]) -> Iterable[tuple[str, str]]:
    """Each that applies, with the queue that sets it."""
    labels = {field.key: field.label for field in LIMIT_FIELDS}
    for limit in limits:
        source = ""
        if limit["queue"] != queue:
            source = f", inherited from {limit['queue']}"
        unit = ""
        if limit["field"] == "maxRunSeconds":
            unit = " s"
        label = labels.get(limit["field"], limit["field"]).lower()
        yield "Limit", f"{label}, at most {limit['limit']:,}{unit}{source}"


def text_options() -> Options:
    """An option for each: None where it is not given, "" to take the text away."""
    options = {}
    for field in TEXT_FIELDS:
        if field.has_option:
            options[field.key] = (_option(field), None)
    return options


def _option(field: TextField) -> Any:
    option = typer.Option(
        f"--{field.key}", metavar="TEXT", help=f"{field.help} Empty: none.", show_default=False
    )
    return Annotated[str | None, option]


def given_texts(given: Mapping[str, Any]) -> dict[str, str]:
    """The part of a `spec` that the options stand for."""
    found = {}
    for field in TEXT_FIELDS:
        text = given.get(field.key)
        if field.has_option and text is not None:
            found[field.key] = text
    return found


def shown_texts(spec: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Label and text of each that is set, on one line; an older server may not know all of them."""
    for field in TEXT_FIELDS:
        text = spec.get(field.key)
        if isinstance(text, list):
            text = ", ".join(text)
        if text:
            yield field.label, " ".join(text.split())


WIDE_COLUMNS = tuple(field.label for field in TEXT_FIELDS if field.is_wide)


def wide_texts(spec: Mapping[str, Any]) -> list[str]:
    texts: list[str] = []
    for field in TEXT_FIELDS:
        if field.is_wide:
            texts.append(spec.get(field.key, ""))
    return texts
