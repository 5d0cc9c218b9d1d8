"""`vcctl pause` and `vcctl unpause`: the scheduler as a whole."""

from __future__ import annotations

import typer

from dashboard.cli import output
from dashboard.cli.asking import DryRun, Reason, Yes, confirm_if_watched, reason_body
from dashboard.cli.client import api
from dashboard.cli.commands import command


def register(app: typer.Typer) -> None:
    command(app, "pause", "vcctl pause", 'vcctl pause --reason "moving the racks"')(pause)
    command(app, "unpause", "vcctl unpause")(unpause)


def pause(reason: Reason = "", dry_run: DryRun = False, yes: Yes = False) -> None:
    """Start nothing in the cluster until vcctl unpause. New jobs wait; running ones continue."""
    if not dry_run:
        confirm_if_watched(lambda: "Pause scheduling in the whole cluster?", yes)
    _give_order("pause", reason, dry_run)


def unpause(reason: Reason = "", dry_run: DryRun = False) -> None:
    """Let the scheduler work again."""
    _give_order("resume", reason, dry_run)


def _give_order(verb: str, reason: str, dry_run: bool) -> None:
    answer = api().post(f"cluster/{verb}/", reason_body(reason), dry_run=dry_run)
    output.done(answer["message"], dry_run)
