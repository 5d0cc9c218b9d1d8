"""`vcctl sign-on …`: which groups of the sign-on provider have which role on which queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from dashboard.cli import output
from dashboard.cli.asking import DryRun
from dashboard.cli.client import api, path
from dashboard.cli.commands import command, new_app
from dashboard.cli.output import Format, Output
from dashboard.cli.problems import ExitCode, Problem
from dashboard.cli.tables import Table

app = new_app("Single sign-on: roles on queues for groups of the provider.")
Item = Mapping[str, Any]
ProviderGroup = Annotated[
    str, typer.Argument(metavar="GROUP", help="A group, as the provider sends its name.")
]
GivenRole = Annotated[
    str, typer.Option("--role", metavar="ROLE", help="viewer, submitter or admin.")
]
MappedQueue = Annotated[
    str, typer.Option("--queue", metavar="NAME", help="On this queue and below it.")
]


@command(app, "list", "vcctl sign-on list", "vcctl sign-on list -o yaml")
def list_mappings(form: Output = Format.TABLE) -> None:
    """The groups that have roles, and how many people hold each."""
    output.show(api().all("groupmappings/"), form, _mappings_table)


def _mappings_table(mappings: Sequence[Item], _wide: bool) -> Table:
    rows = []
    for mapping in mappings:
        spec = mapping["spec"]
        held = mapping["status"]["grants"]
        rows.append([spec["providerGroup"], spec["role"], spec["queue"], str(held)])
    return Table(["Group", "Role", "Queue", "Held by"], rows, empty="No group has a role.")


@command(app, "map", "vcctl sign-on map researchers --role submitter --queue team-a")
def map_group(
    group: ProviderGroup,
    role: GivenRole = "viewer",
    queue: MappedQueue = "root",
    dry_run: DryRun = False,
    form: Output = Format.TABLE,
) -> None:
    """Give a group a role. Its members have it from their next sign-on."""
    body = {"providerGroup": group, "role": role, "queue": queue}
    mapping = api().post("groupmappings/", body, dry_run=dry_run)
    if form in output.PLAIN_FORMATS:
        output.show_value(mapping, form)
    else:
        output.done(f"The group {group} is {role} on {queue} and below.", dry_run)


@command(app, "unmap", "vcctl sign-on unmap researchers --role submitter --queue team-a")
def unmap_group(
    group: ProviderGroup,
    role: GivenRole = "viewer",
    queue: MappedQueue = "root",
    dry_run: DryRun = False,
) -> None:
    """Take a role from a group. Its members lose it at once."""
    wanted = {"providerGroup": group, "role": role, "queue": queue}
    for mapping in api().all("groupmappings/"):
        if mapping["spec"] == wanted:
            place = path("groupmappings", mapping["metadata"]["name"])
            output.done(api().delete(place, dry_run=dry_run)["message"], dry_run)
            return
    raise Problem(
        f"The group {group} is not {role} on {queue}. See vcctl sign-on list.", ExitCode.NOT_FOUND
    )
