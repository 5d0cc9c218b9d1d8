"""`manage.py kubernetes`: what it was asked, read into values, and what was done, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.credentials import load_credentials
from scheduler.clusters.kubernetes.installer import Step, install, status, uninstall
from scheduler.clusters.kubernetes.manifests import (
    Wanted,
    Webhooks,
    definitions,
    everything_but_definitions,
    name_of,
    rights,
    webhook_configurations,
)
from scheduler.clusters.kubernetes.take_over import (
    give_back,
    policies_for,
    read_taken_over,
    take_over,
)
from scheduler.conf import conf
from scheduler.domain.taken_over import TakenOver
from scheduler.yaml_texts import to_yaml

TAKE_OVER = "take-over"
GIVE_BACK = "give-back"


class BadOption(Exception):
    """Options that do not fit together; the text is for the terminal."""


def wanted_by(options: dict[str, Any]) -> Wanted:
    """Raises BadOption."""
    return Wanted(schedules=options["mode"] == "schedule", webhooks=_webhooks_in(options))


def steps_of(options: dict[str, Any]) -> Iterator[Step]:
    """Do what was asked. Raises ApiError, CredentialsError or BadOption."""
    client = Client(load_credentials(options["kubeconfig"], options["context"]))
    try:
        if options["action"] == "install":
            wanted = wanted_by(options)
            yield from install(client, wanted, replace_definitions=options["replace_crds"])
        elif options["action"] == "uninstall":
            yield from uninstall(client)
        else:
            yield from status(client)
    finally:
        client.close()


def lines_of(options: dict[str, Any]) -> Iterator[str]:
    """Do what was asked, and say each step. Raises what `steps_of` does, and CannotTakeOver."""
    if options["action"] in (TAKE_OVER, GIVE_BACK):
        yield _change_what_is_taken_over(options)
        return
    for step in steps_of(options):
        yield in_words(step)
    if options["action"] == "status":
        yield _what_is_taken_over(options)


def _change_what_is_taken_over(options: dict[str, Any]) -> str:
    named = _named_in(options)
    client = Client(load_credentials(options["kubeconfig"], options["context"]))
    try:
        if options["action"] == TAKE_OVER:
            return f"Fumarole's from now on: new work of {take_over(client, named).in_words()}."
        left = give_back(client, named)
    finally:
        client.close()
    return f"Given back. Still taken over: {left.in_words()}."


def _what_is_taken_over(options: dict[str, Any]) -> str:
    client = Client(load_credentials(options["kubeconfig"], options["context"]))
    try:
        return f"taken over: {read_taken_over(client).in_words()}"
    finally:
        client.close()


def _named_in(options: dict[str, Any]) -> TakenOver:
    named = TakenOver(tuple(options["namespace"]), tuple(options["queue"]))
    if options["action"] == TAKE_OVER and not named:
        raise BadOption("Name what to take over: --namespace NAME or --queue NAME.")
    return named


def dry_run(options: dict[str, Any]) -> str:
    """What would be sent, without asking the cluster: YAML that kubectl can apply or delete."""
    if options["action"] in (TAKE_OVER, GIVE_BACK):
        return _as_yaml(policies_for(_named_in(options)))
    if options["action"] == "uninstall":
        return _as_yaml(everything_but_definitions())
    wanted = wanted_by(options)
    manifests = [*definitions(), *rights(wanted)]
    if wanted.webhooks is not None:
        manifests += webhook_configurations(wanted.webhooks)
    return _as_yaml(manifests)


def in_words(step: Step) -> str:
    """One line, such as "applied   ClusterRole fumarole-watch"."""
    line = f"{step.done.value:<9} {step.what}"
    if step.why:
        line += f": {step.why}"
    return line


def _webhooks_in(options: dict[str, Any]) -> Webhooks | None:
    address = options["webhooks"]
    authority = options["ca"]
    if not address:
        return None
    if not address.startswith("https://"):
        raise BadOption(
            "--webhooks must be an address with https://: the API server asks no other."
        )
    if not authority:
        raise BadOption("--webhooks also needs --ca, the authority that signed its certificate.")
    try:
        certificate = Path(authority).read_bytes()
    except OSError as error:
        raise BadOption(f"--ca: {error}") from error
    return Webhooks(
        address,
        certificate,
        required=not options["ignore_failures"],
        scheduler_names=conf().kubernetes.scheduler_names,
    )


def _as_yaml(manifests: Iterable[dict[str, Any]]) -> str:
    texts = []
    for manifest in manifests:
        texts.append(f"# {name_of(manifest)}\n{to_yaml(manifest)}")
    return "---\n".join(texts)
