"""`vcctl notices …`: your inbox, what you are told of, and where it is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from dashboard.cli import output
from dashboard.cli.asking import DryRun
from dashboard.cli.client import api, path
from dashboard.cli.commands import command, new_app
from dashboard.cli.output import Format, Output
from dashboard.cli.problems import ExitCode, Problem
from dashboard.cli.tables import Table

app = new_app("Notices: your inbox, what you are told of, and where it is sent.")
Item = Mapping[str, Any]
Unread = Annotated[bool, typer.Option("--unread", help="Only those that are not read.")]
Numbers = Annotated[
    list[str] | None, typer.Argument(metavar="[NUMBER]...", help="Notices. Without one: all.")
]
Kind = Annotated[
    str, typer.Argument(metavar="KIND", help="Such as JobFailed or QueueQuotaChanged.")
]
RuleQueue = Annotated[
    str, typer.Option("--queue", metavar="NAME", help="Only in this queue and below it.")
]
Times = Annotated[
    float,
    typer.Option("--times", metavar="N", help="Of JobWaitsLong: so many times the usual wait."),
]
Channels = Annotated[
    list[str] | None,
    typer.Option("--channel", metavar="NAME", help="Send it there, too. Can be repeated."),
]


class OnOff(StrEnum):
    ON = "on"
    OFF = "off"


_GIVEN: Final = {OnOff.ON: True, OnOff.OFF: False}
OnOrOff = Annotated[OnOff, typer.Argument(metavar="on|off")]
ChannelKind = Annotated[
    str, typer.Argument(metavar="KIND", help="Email, Webhook or Chat, as the API calls them.")
]
ChannelName = Annotated[str, typer.Argument(metavar="NAME", help="What you call it.")]
Target = Annotated[
    str, typer.Argument(metavar="ADDRESS", help="Of e-mail, of a web server, or as apprise has it.")
]


@command(app, "list", "vcctl notices list", "vcctl notices list --unread -o json")
def list_notices(unread: Unread = False, form: Output = Format.TABLE) -> None:
    """Your inbox, newest first."""
    only = "true" if unread else ""
    output.show(api().all("notices/", unread=only), form, _inbox_table)


def _inbox_table(notices: Sequence[Item], _wide: bool) -> Table:
    rows = []
    for notice in notices:
        status = notice["status"]
        read = "yes" if notice["spec"]["read"] else "no"
        age = output.age(notice["metadata"]["creationTimestamp"])
        rows.append([notice["metadata"]["name"], status["kind"], status["title"], read, age])
    return Table(["Number", "Kind", "Title", "Read", "Age"], rows)


@command(app, "read", "vcctl notices read")
def mark_read(numbers: Numbers = None, dry_run: DryRun = False) -> None:
    """Mark notices as read: those that you name, or all."""
    if not numbers:
        answer = api().patch("inbox/", {"read": True}, dry_run=dry_run)
        output.done(answer["message"], dry_run)
        return
    for number in numbers:
        notice = api().patch(path("notices", number), {"read": True}, dry_run=dry_run)
        output.done(f"{notice['status']['title']}: read.", dry_run)


@command(app, "rules", "vcctl notices rules")
def list_rules(form: Output = Format.TABLE) -> None:
    """What you are told of."""
    output.show(api().all("noticerules/"), form, _rules_table)


def _rules_table(rules: Sequence[Item], _wide: bool) -> Table:
    rows = []
    for rule in rules:
        spec = rule["spec"]
        places = ", ".join(["inbox", *spec["channels"]])
        rows.append([spec["kind"], rule["status"]["about"], places])
    return Table(["Kind", "About", "Sent to"], rows)


@command(
    app,
    "watch",
    "vcctl notices watch JobFailed",
    "# everything in a queue and those below it",
    "vcctl notices watch JobEvicted --queue team-a",
    "vcctl notices watch JobWaitsLong --times 3",
)
def add_rule(
    kind: Kind,
    queue: RuleQueue = "",
    times: Times = 2.0,
    channels: Channels = None,
    dry_run: DryRun = False,
    form: Output = Format.TABLE,
) -> None:
    """Be told of something. A rule for the same kind and queue is replaced."""
    body = {"kind": kind, "queue": queue, "timesUsual": times, "channels": channels or []}
    rule = api().post("noticerules/", body, dry_run=dry_run)
    if form in output.PLAIN_FORMATS:
        output.show_value(rule, form)
    else:
        output.done(f"You are told: {kind} {rule['status']['about']}.", dry_run)


@command(app, "unwatch", "vcctl notices unwatch JobFailed")
def delete_rule(kind: Kind, queue: RuleQueue = "", dry_run: DryRun = False) -> None:
    """Delete a rule."""
    for rule in api().all("noticerules/"):
        if (rule["spec"]["kind"], rule["spec"]["queue"]) == (kind, queue):
            place = path("noticerules", rule["metadata"]["name"])
            output.done(api().delete(place, dry_run=dry_run)["message"], dry_run)
            return
    where = f" in {queue}" if queue else ""
    raise Problem(
        f"You have no rule for {kind}{where}. See vcctl notices rules.", ExitCode.NOT_FOUND
    )


@command(app, "calendar", "vcctl notices calendar off", "vcctl notices calendar on")
def tell_calendar(wanted: OnOrOff, dry_run: DryRun = False) -> None:
    """Whether planned changes of yours come to your inbox without a rule."""
    given = _GIVEN[wanted]
    api().patch("users/~/preferences/", {"calendarNotices": given}, dry_run=dry_run)
    if given:
        output.done("Planned changes of yours come to your inbox.", dry_run)
    else:
        output.done("Planned changes come to your inbox only if a rule asks for it.", dry_run)


@command(app, "channels", "vcctl notices channels")
def list_channels(form: Output = Format.TABLE) -> None:
    """Where notices are sent, besides the inbox."""
    output.show(api().all("noticechannels/"), form, _channels_table)


def _channels_table(channels: Sequence[Item], _wide: bool) -> Table:
    rows = []
    for channel in channels:
        spec = channel["spec"]
        stopped = channel["status"]["stopped"] or "-"
        rows.append([spec["name"], spec["kind"], spec["target"], stopped])
    return Table(["Name", "Kind", "Address", "Stopped"], rows)


@command(
    app,
    "add-channel",
    "vcctl notices add-channel Webhook room https://example.com/hook",
)
def add_channel(
    kind: ChannelKind,
    name: ChannelName,
    target: Target,
    dry_run: DryRun = False,
    form: Output = Format.TABLE,
) -> None:
    """Add a channel. The secret of a webhook is shown only this once."""
    body = {"kind": kind, "name": name, "target": target}
    _tell_secret(api().post("noticechannels/", body, dry_run=dry_run), "added", form, dry_run)


@command(app, "rotate", "vcctl notices rotate room")
def rotate_secret(name: ChannelName, dry_run: DryRun = False, form: Output = Format.TABLE) -> None:
    """A new secret for a webhook. For a day messages are signed with the old one, too."""
    changed = api().post(_channel_path(name, "rotate"), {}, dry_run=dry_run)
    _tell_secret(changed, "changed", form, dry_run)


def _tell_secret(channel: Item, deed: str, form: Format, dry_run: bool) -> None:
    if form in output.PLAIN_FORMATS:
        output.show_value(channel, form)
        return
    output.done(f"The channel {channel['spec']['name']} was {deed}.", dry_run)
    if channel["secret"]:
        output.line(f"Secret: {channel['secret']}")


@command(app, "test", "vcctl notices test room --dry-run")
def send_test(name: ChannelName, dry_run: DryRun = False) -> None:
    """Send a test to a channel, and say what came of it."""
    answer = api().post(_channel_path(name, "test"), {}, dry_run=dry_run)
    if not answer["worked"] and not dry_run:
        raise Problem(f"The test did not reach {name}. {answer['message']}")
    output.done(answer["message"], dry_run)


@command(app, "remove-channel", "vcctl notices remove-channel room")
def delete_channel(name: ChannelName, dry_run: DryRun = False) -> None:
    """Delete a channel."""
    output.done(api().delete(_channel_path(name), dry_run=dry_run)["message"], dry_run)


def _channel_path(name: str, *verb: str) -> str:
    for channel in api().all("noticechannels/"):
        if channel["spec"]["name"] == name:
            return path("noticechannels", channel["metadata"]["name"], *verb)
    raise Problem(f"You have no channel {name}. See vcctl notices channels.", ExitCode.NOT_FOUND)


@command(app, "sent", "vcctl notices sent", "vcctl notices sent -o json")
def list_sent(form: Output = Format.TABLE) -> None:
    """What was sent to your channels, newest first."""
    output.show(api().all("noticedeliveries/"), form, _sent_table)


def _sent_table(deliveries: Sequence[Item], _wide: bool) -> Table:
    rows = []
    for delivery in deliveries:
        status = delivery["status"]
        tries = status["tries"]
        last = tries[-1]["message"] if tries else "-"
        age = output.age(delivery["metadata"]["creationTimestamp"])
        rows.append([delivery["spec"]["channel"], status["state"], len(tries), last, age])
    return Table(["Channel", "State", "Tries", "Last", "Age"], rows)
