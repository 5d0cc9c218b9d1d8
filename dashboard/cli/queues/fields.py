"""The texts of a queue's `spec` that `vcctl` sets and shows.

The server's own table is `scheduler/domain/queue_fields.py`, which `vcctl` must not import; a test
compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
)


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
        if text:
            yield field.label, " ".join(text.split())


WIDE_COLUMNS = tuple(field.label for field in TEXT_FIELDS if field.is_wide)


def wide_texts(spec: Mapping[str, Any]) -> list[str]:
    texts: list[str] = []
    for field in TEXT_FIELDS:
        if field.is_wide:
            texts.append(spec.get(field.key, ""))
    return texts
