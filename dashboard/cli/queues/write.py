"""`vcctl queue create|update|delete`: making, changing and removing queues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from dashboard.cli import amounts, output
from dashboard.cli.asking import DryRun, Reason, Yes, confirm
from dashboard.cli.client import api, path
from dashboard.cli.commands import Options, command
from dashboard.cli.names import QueueArgument, QueueOption, complete_queue, queue_name
from dashboard.cli.output import Format, Output
from dashboard.cli.problems import usage
from dashboard.cli.queues.fields import (
    LIMIT_FIELDS,
    given_numbers,
    given_texts,
    limit_options,
    text_options,
)
from dashboard.cli.queues.read import app

VERSION = "scheduling.volcano.sh/v1beta1"


Weight = Annotated[
    int | None,
    typer.Option(
        "--weight", "-w", help="Its share, compared with its siblings' weights.", show_default=False
    ),
]
State = Annotated[
    str,
    typer.Option(
        "--state",
        "-S",
        metavar="STATE",
        help="Open, Closed or Suspended.",
        show_default=False,
    ),
]
Parent = Annotated[
    str,
    typer.Option(
        "--parent",
        "-p",
        metavar="QUEUE",
        help="The parent queue.",
        autocompletion=complete_queue,
        show_default=False,
    ),
]
Capability = Annotated[
    list[str] | None,
    typer.Option(
        "--capability",
        metavar="cpu=8,memory=16Gi",
        help="The most it may ever use.",
        show_default=False,
    ),
]
Deserved = Annotated[
    list[str] | None,
    typer.Option(
        "--deserved",
        metavar="cpu=8,memory=16Gi",
        help="What it can claim back when others use it.",
        show_default=False,
    ),
]
Guarantee = Annotated[
    list[str] | None,
    typer.Option(
        "--guarantee",
        metavar="cpu=8,memory=16Gi",
        help="What is kept free for it.",
        show_default=False,
    ),
]
Reclaimable = Annotated[
    bool | None,
    typer.Option(
        "--reclaimable/--no-reclaimable",
        help="Whether others may claim back what it borrowed.",
        show_default=False,
    ),
]
Priority = Annotated[
    int | None,
    typer.Option("--priority", help="Who comes first among siblings.", show_default=False),
]
MinRunSeconds = Annotated[
    str | None,
    typer.Option(
        "--min-run-seconds",
        metavar="SECONDS",
        help="How long a pod runs before reclaim and preempt may evict it. 0: none. Empty: as the "
        "queue above it.",
        show_default=False,
    ),
]
Strategy = Annotated[
    str,
    typer.Option(
        "--dequeue-strategy",
        metavar="STRATEGY",
        help="traverse (skip what does not fit) or fifo.",
        show_default=False,
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label", metavar="KEY=VALUE", help="A label; may be given again.", show_default=False
    ),
]
Annotations = Annotated[
    list[str] | None,
    typer.Option(
        "--annotation",
        metavar="KEY=VALUE",
        help="An annotation; may be given again.",
        show_default=False,
    ),
]


_SETTINGS: Options = {
    "weight": (Weight, None),
    "state": (State, ""),
    "parent": (Parent, ""),
    "capability": (Capability, None),
    "deserved": (Deserved, None),
    "guarantee": (Guarantee, None),
    "reclaimable": (Reclaimable, None),
    "priority": (Priority, None),
    "strategy": (Strategy, ""),
    "min_run_seconds": (MinRunSeconds, None),
    **limit_options(),
    **text_options(),
    "labels": (Labels, None),
    "annotations": (Annotations, None),
    "dry_run": (DryRun, False),
    "form": (Output, Format.TABLE),
}


_NUMBERS = {
    "minRunSeconds": "min_run_seconds",
    **{field.key: field.name for field in LIMIT_FIELDS},
}


def _spec(given: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of a manifest from the options; what was not given is left out."""
    spec: dict[str, Any] = {}
    for name in ("weight", "reclaimable", "priority"):
        if given[name] is not None:
            spec[name] = given[name]
    words = {
        "state": _state(given["state"]),
        "parent": given["parent"],
        "dequeueStrategy": given["strategy"],
    }
    for key, word in words.items():
        if word:
            spec[key] = word
    spec |= given_numbers(given, _NUMBERS)
    for name in ("capability", "deserved", "guarantee"):
        if given[name]:
            spec[name] = amounts.parse_pairs(given[name], f"--{name}")
    if "guarantee" in spec:
        spec["guarantee"] = {"resource": spec["guarantee"]}
    return {**spec, **given_texts(given)}


def _state(text: str) -> str:
    """States are written as Volcano's; any case is read."""
    if text.lower() in ("open", "closed", "suspended", "closing", "unknown"):
        return text.capitalize()
    return text


def _metadata(given: Mapping[str, Any]) -> dict[str, Any]:
    labels = amounts.parse_pairs(given["labels"], "--label", "team=a")
    annotations = amounts.parse_pairs(given["annotations"], "--annotation", "owner=ml-platform")
    metadata = {}
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    return metadata


def _show_saved(saved: Mapping[str, Any], done: str, dry_run: bool, form: Format) -> None:
    output.warn(saved.get("warnings") or ())
    if form in output.PLAIN_FORMATS:
        output.show_saved(saved, form)
        return
    output.done(f"queue/{saved['metadata']['name']} {done}", dry_run)


@command(
    app,
    "create",
    "vcctl queue create --name myqueue --weight 10",
    "vcctl queue create train --parent team-a --deserved cpu=64,nvidia.com/gpu=8 --guarantee "
    "nvidia.com/gpu=2",
    "vcctl queue create later --state Suspended --dry-run -o yaml",
    options={**_SETTINGS, "weight": (Weight, 1)},
)
def create_queue(name: QueueArgument = "", option: QueueOption = "", **given: Any) -> None:
    """Create a queue: below root if you give no --parent, and Open if you give no --state."""
    wanted = queue_name(name, option, "create")
    manifest = {
        "apiVersion": VERSION,
        "kind": "Queue",
        "metadata": {"name": wanted, **_metadata(given)},
        "spec": _spec(given),
    }
    saved = api().post("queues/", manifest, dry_run=given["dry_run"])
    _show_saved(saved, "created", given["dry_run"], given["form"])


@command(
    app,
    "update",
    "vcctl queue update myqueue --weight 20",
    "vcctl queue update myqueue --state Closed",
    "vcctl queue update train --parent team-b --capability cpu=128 --dry-run",
    options=_SETTINGS,
)
def update_queue(name: QueueArgument = "", option: QueueOption = "", **given: Any) -> None:
    """Change only what you name; of a quota, only the resources that you name.

    `cpu=` takes one away.
    """
    wanted = queue_name(name, option, "update")
    patch = {"spec": _without_empty(_spec(given)), "metadata": _metadata(given)}
    update_with(wanted, patch, given["dry_run"], given["form"])


def _without_empty(value: Any) -> Any:
    """In a merge patch null takes a key away."""
    if isinstance(value, dict):
        filled = {}
        for key, inner in value.items():
            filled[key] = _without_empty(inner)
        return filled
    if value == "":
        return None
    return value


def update_with(
    name: str,
    patch: Mapping[str, Any],
    dry_run: bool,
    form: Format = Format.TABLE,
) -> None:
    wanted = {}
    for key, part in patch.items():
        if part:
            wanted[key] = part
    if not wanted:
        raise usage(
            f"Say what to change of {name}. Give at least one of --weight, --state, --parent, "
            "--deserved and so on."
        )
    saved = api().patch(path("queues", name), wanted, dry_run=dry_run)
    done = "unchanged"
    if saved.get("changed"):
        done = "updated"
    _show_saved(saved, done, dry_run, form)


@command(
    app,
    "delete",
    "vcctl queue delete myqueue",
    "vcctl queue delete -n myqueue --yes",
    "# with everything below it, children first",
    "vcctl queue delete team-a --cascade --dry-run",
    "# close it now, delete it when it has drained",
    'vcctl queue delete team-a --close-first --cascade --reason "moved" --yes',
)
def delete_queue(
    name: QueueArgument = "",
    option: QueueOption = "",
    cascade: Annotated[
        bool,
        typer.Option(
            "--cascade", help="Delete everything below it too, children first, or nothing."
        ),
    ] = False,
    close_first: Annotated[
        bool,
        typer.Option("--close-first", help="Close it, and delete it when what is in it has ended."),
    ] = False,
    reason: Reason = "",
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Remove a queue that is Closed.

    The records of its jobs stay. Asks first, unless you give --yes.
    """
    wanted = queue_name(name, option, "delete")
    where = path("queues", wanted)
    cascading = ""
    if cascade:
        cascading = "true"
    if close_first:
        how = {"close_first": "true", "cascade": cascading, "reason": reason}
        _close_first(where, how, dry_run, yes)
        return
    would = api().delete(where, dry_run=True, cascade=cascading)
    if dry_run:
        output.line(f"{_gone(would)} would be deleted (dry run).{_aftermath(would)}")
        return
    confirm(f"Delete {_gone(would)}?{_aftermath(would)} This cannot be undone.", yes)
    shown = ",".join(would["deleted"])
    done = api().delete(where, cascade=cascading, reason=reason, shown=shown)
    for gone in done["deleted"]:
        output.line(f"queue/{gone} deleted")


def _close_first(where: str, how: dict[str, Any], dry_run: bool, yes: bool) -> None:
    would = api().delete(where, dry_run=True, **how)
    output.warn(would["closing"]["warnings"])
    if dry_run:
        output.line(f"{would['message']} (dry run)")
        return
    shown = would["planned"] or would["deleted"]
    names = ", ".join(shown)
    if would["planned"]:
        gangs = would["closing"]["podgroups"]
        load = f"{output.counted(gangs['running'], 'gang')} running, {gangs['waiting']} waiting"
        question = f"Close, and delete when drained, {names} ({load})?{_aftermath(would)}"
    else:
        question = (
            f"Delete {names} now, there is nothing to drain?{_aftermath(would)} This cannot be "
            "undone."
        )
    confirm(question, yes)
    done = api().delete(where, **how, shown=",".join(shown))
    output.line(done["message"])


@command(app, "keep", "vcctl queue keep team-a", "vcctl queue keep -n team-a --dry-run")
def keep_queue(name: QueueArgument = "", option: QueueOption = "", dry_run: DryRun = False) -> None:
    """Take back `delete --close-first` while the queue still drains; it stays closed."""
    kept = api().delete(
        path("queues", queue_name(name, option, "keep"), "deletion"), dry_run=dry_run
    )
    output.done(kept["message"], dry_run)


def _gone(answer: Mapping[str, Any]) -> str:
    names = answer["deleted"]
    if len(names) == 1:
        return f"the queue {names[0]}"
    return f"{len(names)} queues: {', '.join(names)}"


def _aftermath(answer: Mapping[str, Any]) -> str:
    """What happens to what belongs to the queues. What there is none of is not mentioned."""
    jobs = answer.get("jobs", 0)
    suspended = answer.get("suspendedJobs", 0)
    grants = answer.get("grants", 0)
    words = ""
    if jobs:
        words += f" {output.counted(jobs, 'job record')} {_verb('stay', jobs)}."
    if suspended:
        words += f" {output.counted(suspended, 'suspended job')} cannot be resumed any more."
    if grants:
        words += f" {output.counted(grants, 'role')} granted there {_verb('go', grants)} too."
    return words


def _verb(plural: str, number: int) -> str:
    """ "1 record stays", "2 records stay"."""
    if number > 1:
        return plural
    return {"stay": "stays", "go": "goes"}[plural]
