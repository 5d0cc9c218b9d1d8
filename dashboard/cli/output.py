"""Where text goes: results to standard output, remarks to standard error.

Results have the form that was asked for. There is colour on a terminal only.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from dashboard.cli.problems import usage

if TYPE_CHECKING:
    from rich.console import Console

    from dashboard.cli.tables import Table


class Format(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


def read_form(text: str) -> Format:
    """What `-o` says. A form of one's own stands where JSON stands."""
    if text in tuple(Format):
        return Format(text)
    from dashboard.cli.forms import own_form

    form = own_form(text)
    if form is None:
        raise usage(
            f"-o is “{text[:40]}”; write table, wide, json, yaml, name, jsonpath=TEMPLATE, "
            "jsonpath-file=FILE, custom-columns=TITLE:PATH,… or custom-columns-file=FILE."
        )
    return cast(Format, form)


def _complete_forms(incomplete: str) -> list[str]:
    known = [*Format, "jsonpath=", "jsonpath-file=", "custom-columns=", "custom-columns-file="]
    return [str(form) for form in known if form.startswith(incomplete)]


Output = Annotated[
    Format,
    typer.Option(
        "--output",
        "-o",
        parser=read_form,
        autocompletion=_complete_forms,
        metavar="FORM",
        help="table, wide, json, yaml, name, jsonpath=… or custom-columns=… (also from a FILE).",
    ),
]
PLAIN_FORMATS = (Format.JSON, Format.YAML, Format.NAME)

STATE_STYLES = {
    "Open": "green",
    "Closing": "yellow",
    "Closed": "red",
    "Suspended": "magenta",
    "Unknown": "dim",
    "Running": "green",
    "Pending": "yellow",
    "Inqueue": "yellow",
    "Completed": "cyan",
    "Completing": "cyan",
    "Failed": "red",
    "Aborted": "red",
    "Aborting": "yellow",
    "Restarting": "yellow",
    "Terminating": "yellow",
    "Terminated": "red",
    "Succeeded": "cyan",
    "Releasing": "yellow",
    "Ready": "green",
    "NotReady": "red",
    "Cordoned": "magenta",
}


def on_terminal() -> bool:
    return sys.stdout.isatty()


def console(stderr: bool = False, at_least: int = 0) -> Console:
    """For terminals: rich finds out about its colours and its width.

    One that is narrower than `at_least` breaks the lines itself.
    """
    from rich.console import Console

    colours: Any = "auto"
    if os.environ.get("NO_COLOR"):
        colours = None
    own = Console(stderr=stderr, highlight=False, soft_wrap=False, color_system=colours)
    if own.width < at_least:
        own.width = at_least
    return own


# What a terminal would obey instead of showing it: others may have written it into a reason or an
# annotation.
_OBEYED = {code: "?" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"}


def harmless(text: str) -> str:
    return text.translate(_OBEYED)


def counted(number: int, one: str) -> str:
    """ "1 gang", "3 gangs"."""
    if number == 1:
        return f"1 {one}"
    return f"{number} {one}s"


def line(text: str = "") -> None:
    typer.echo(harmless(text))


def done(message: str, dry_run: bool) -> None:
    """What a command did, or would have done."""
    if dry_run:
        message += " (dry run)"
    line(message)


def remark(text: str) -> None:
    """A word beside the result: never in the way of a script that reads it."""
    typer.echo(harmless(text), err=True)


def warn(warnings: Iterable[Mapping[str, Any]]) -> None:
    for warning in warnings:
        remark(f"Warning: {warning.get('message', '')}")


def show(
    objects: Sequence[Mapping[str, Any]],
    form: Format,
    table: Callable[[Sequence[Mapping[str, Any]], bool], Table],
) -> None:
    """A list of objects in the form asked for. `table(objects, wide)` makes the table."""
    if form == Format.JSON:
        show_value({"apiVersion": "v1", "kind": "List", "items": list(objects)}, form)
    elif form is Format.YAML:
        line(yaml_documents(objects).rstrip("\n"))
    elif form is Format.NAME:
        for found in objects:
            line(name_of(found))
    else:
        table(objects, form is Format.WIDE).print()


def show_saved(saved: Mapping[str, Any], form: Format) -> None:
    """An object as it was stored, without what was only said about storing it."""
    shown = dict(saved)
    shown.pop("warnings", None)
    shown.pop("changed", None)
    show_value(shown, form)


def show_value(value: Any, form: Format) -> None:
    """One value as JSON or YAML; with `-o name` its kind and name."""
    if hasattr(form, "text_for"):
        typer.echo(harmless(form.text_for(value)), nl=False)
    elif form is Format.NAME:
        line(name_of(value))
    elif form is Format.YAML:
        line(to_yaml(value).rstrip("\n"))
    else:
        line(json.dumps(value, indent=2, ensure_ascii=False))


def name_of(found: Mapping[str, Any]) -> str:
    """`queue/team-a`, `job/default/train`."""
    metadata = found["metadata"]
    parts = [found["kind"].lower(), metadata.get("namespace", ""), metadata["name"]]
    return "/".join(part for part in parts if part)


_NUMBER = re.compile(
    r"^(?:0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)$"
)
"""What YAML 1.2 reads as a number, and so kubectl does: a name like 1e3 must be quoted."""


def to_yaml(value: Any) -> str:
    import yaml

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, _data: Any) -> bool:
            return True

    Plain.add_representer(str, _yaml_text)
    Plain.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-+.0123456789"))
    return yaml.dump(
        value,
        Dumper=Plain,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=120,
    )


def _yaml_text(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


def yaml_documents(objects: Iterable[Any]) -> str:
    return "---\n".join(to_yaml(found) for found in objects)


def moment(text: str | None) -> datetime | None:
    if text:
        return datetime.fromisoformat(text)
    return None


def age(text: str | None, now: datetime | None = None) -> str:
    """`45s`, `12m`, `3h12m`, `5d3h`: as kubectl writes ages."""
    then = moment(text)
    if then is None:
        return "-"
    seconds = max(0, int(((now or datetime.now(UTC)) - then).total_seconds()))
    days = seconds // 86400
    hours = seconds // 3600
    minutes = seconds // 60
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 120:
        return f"{minutes}m"
    if hours < 48:
        if hours < 8 and minutes % 60:
            return f"{hours}h{minutes % 60}m"
        return f"{hours}h"
    if days < 8 and hours % 24:
        return f"{days}d{hours % 24}h"
    return f"{days}d"


def clock(text: str | None) -> str:
    """A moment in the user's own time zone, which is named."""
    then = moment(text)
    if then:
        return then.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
    return "-"


def takes_boxes() -> bool:
    """Whether the output can carry the characters of trees and bars."""
    try:
        "├─█".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """A spinner while something takes its time; nothing where nobody looks.

    Whoever works may say how far it is.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda _progress: None
        return
    with console(stderr=True).status(what) as status:
        yield lambda progress: status.update(f"{what} {progress}")
