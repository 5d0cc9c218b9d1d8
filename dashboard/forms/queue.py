"""The queue form, and the manifest that it stands for.

An empty input is unset, and 0 is zero. An empty capability is that of the queue above.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dashboard.forms.typed import number_or_text
from dashboard.present.amounts import in_page_order, short_name
from scheduler.admission.facts import Facts
from scheduler.admission.reading.queue import SCHEDULING_VERSIONS, read_queue
from scheduler.admission.rules.queues import verdict_on
from scheduler.admission.violations import Rejected, Verdict, Violation
from scheduler.domain.queue_fields import (
    AMOUNT_FIELDS,
    LIMIT_FIELDS,
    OPTIONAL_NUMBERS,
    SECONDS_FIELDS,
    TEXT_FIELDS,
    FieldKind,
    QueueField,
)
from scheduler.domain.queues import ROOT, QueueSpec, QueueTree
from scheduler.services.accounts.access import (
    Forbidden,
    access_for,
    require_queue_change,
    require_to_create_queue,
)
from scheduler.services.accounts.actors import SYSTEM, Actor

_QUOTA_FIELDS = tuple(reversed(AMOUNT_FIELDS))  # from what is kept free to what it may have at most
QUOTAS = {field.name: field.path for field in _QUOTA_FIELDS}
QUOTA_TITLES = {field.name: field.label for field in _QUOTA_FIELDS}
_WHEN_EMPTY = {"guarantee": "unset", "deserved": "unset", "capability": "inherited"}
PODS = "pods"  # no line of its own, unless the queue has a quota of it
NEW_RESOURCE = "new-resource"  # the input for a resource's name in the last line


@dataclass(slots=True)
class QueueForm:
    """What is in the form, as text, right or wrong: it is shown again as it was typed."""

    name: str = ""
    parent: str = "root"
    weight: str = "1"
    priority: str = "0"
    reclaimable: bool = True
    dequeue_strategy: str = "traverse"
    state: str = "Open"
    numbers: dict[str, str] = field(default_factory=dict)  # optional ones, by the field's name
    texts: dict[str, str] = field(default_factory=dict)  # the same
    amounts: dict[str, dict[str, str]] = field(default_factory=dict)  # resource -> quota -> text
    # quota -> text, typed in the last line without a resource's name
    unnamed: dict[str, str] = field(default_factory=dict)
    # resources that the last line names although they have a line of their own, with another amount
    doubled: tuple[str, ...] = ()

    def seconds_inputs(self) -> list[dict[str, Any]]:
        return [self._number_input(field) for field in SECONDS_FIELDS]

    def limit_inputs(self) -> list[dict[str, Any]]:
        return [self._number_input(field) for field in LIMIT_FIELDS]

    def has_limits(self) -> bool:
        return any(self.numbers.get(field.name) for field in LIMIT_FIELDS)

    def _number_input(self, field: QueueField) -> dict[str, Any]:
        return {
            "name": field.name,
            "label": field.label,
            "help": field.help,
            "field": field.path,
            "value": self.numbers.get(field.name, ""),
        }

    def text_inputs(self) -> list[dict[str, Any]]:
        inputs: list[dict[str, Any]] = []
        for text in TEXT_FIELDS:
            inputs.append(
                {
                    "name": text.name,
                    "label": text.label,
                    "help": text.help,
                    "field": text.path,
                    "value": self.texts.get(text.name, ""),
                    "most": text.most,
                    "is_long": text.kind is FieldKind.PARAGRAPH,
                }
            )
        return inputs

    def rows(self, known: Iterable[str]) -> list[dict[str, Any]]:
        """One line of the table per resource, with its three inputs."""
        resources = list(in_page_order({*known, *self.amounts}))
        if PODS in self.amounts:
            resources.append(PODS)
        rows = []
        for name in resources:
            cells = [self._cell(name, quota) for quota in QUOTAS]
            rows.append({"resource": name, "title": short_name(name), "cells": cells})
        return rows

    def last_line(self) -> list[dict[str, str]]:
        """The inputs for a resource that has no name yet.

        What was typed there without a name is shown again.
        """
        found: list[dict[str, str]] = []
        for quota in QUOTAS:
            found.append(
                {
                    "input": f"{quota}:+",
                    "label": QUOTA_TITLES[quota],
                    "value": self.unnamed.get(quota, ""),
                }
            )
        return found

    def _cell(self, resource: str, quota: str) -> dict[str, str]:
        return {
            "input": f"{quota}:{resource}",
            "field": f"{QUOTAS[quota]}.{resource}",
            "label": QUOTA_TITLES[quota],
            "title": f"{QUOTA_TITLES[quota]} of {short_name(resource)}",
            "empty": _WHEN_EMPTY[quota],
            "value": self.amounts.get(resource, {}).get(quota, ""),
        }

    def problems(self) -> tuple[Violation, ...]:
        """What is typed that no manifest can say: it is refused, not left out without a word."""
        found = []
        for quota, text in self.unnamed.items():
            if text:
                found.append(self._unnamed(quota, text))
        for resource in self.doubled:
            found.append(self._doubled(resource))
        return tuple(found)

    def _unnamed(self, quota: str, text: str) -> Violation:
        message = f"{QUOTA_TITLES[quota]} {text[:40]} has no resource: the name beside it is empty."
        return Violation(
            "resource_name_missing",
            self.name,
            NEW_RESOURCE,
            message,
            "name the resource, or clear the amount",
        )

    def _doubled(self, resource: str) -> Violation:
        message = f"{resource} is typed twice, with different amounts."
        return Violation(
            "resource_named_twice",
            self.name,
            NEW_RESOURCE,
            message,
            "clear the last line, and change the resource's own",
        )

    def manifest(self, base: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """As the API would be sent it.

        `base` is the stored manifest: what the form does not show stays.
        """
        spec: dict[str, Any] = {
            "weight": number_or_text(self.weight),
            "priority": number_or_text(self.priority),
            "reclaimable": self.reclaimable,
            "dequeueStrategy": self.dequeue_strategy,
            "parent": self.parent,
        }
        for number in OPTIONAL_NUMBERS:
            typed = self.numbers.get(number.name, "")
            if typed:
                spec[number.key] = number_or_text(typed)
        for text in TEXT_FIELDS:
            typed = self.texts.get(text.name, "")
            if text.kind is not FieldKind.NAMES:
                spec[text.key] = typed
            elif typed.strip():
                spec[text.key] = typed.replace(",", " ").split()
        for quota in QUOTAS:
            spec[quota] = self._quota_manifest(quota)
        if base is None:
            head = {
                "apiVersion": SCHEDULING_VERSIONS[0],
                "kind": "Queue",
                "metadata": {"name": self.name},
            }
            return {**head, "spec": spec | {"state": self.state}}
        shown = {*spec, *(field.key for field in (*OPTIONAL_NUMBERS, *TEXT_FIELDS))}
        kept = {}
        for key, value in base["spec"].items():
            if key not in shown:
                kept[key] = value
        return {**base, "spec": kept | spec}

    def _quota_manifest(self, quota: str) -> dict[str, Any]:
        """Volcano has the amounts of a guarantee one level deeper."""
        amounts = {}
        for name, texts in self.amounts.items():
            if texts.get(quota, "") != "":
                amounts[name] = texts[quota]
        if quota == "guarantee":
            return {"resource": amounts}
        return amounts

    def mended(self, remedy: str) -> QueueForm:
        """With one value as a remedy says, "spec.deserved.cpu=24".

        One that is of no input of this form changes nothing.
        """
        field, _, value = remedy.rpartition("=")
        for quota, path in QUOTAS.items():
            resource = field.removeprefix(f"{path}.")
            if resource != field and resource in self.amounts:
                amounts = {**self.amounts, resource: {**self.amounts[resource], quota: value}}
                return replace(self, amounts=amounts)
        return self


def judge(
    manifest: object,
    tree: QueueTree,
    facts: Facts,
    name: str,
    by: Actor = SYSTEM,
) -> Verdict:
    """By the rules of every door, without touching anything.

    Who may not do it hears no more than that: the rules name the neighbours.
    """
    old = None
    if name:
        old = tree[name]
    reading = read_queue(manifest, old)
    wanted = None
    if reading.value:
        wanted = reading.value.spec
    refusal = _not_permitted(wanted, old, by)
    return refusal or verdict_on(reading, tree, facts, old)


def _not_permitted(wanted: QueueSpec | None, old: QueueSpec | None, by: Actor) -> Verdict | None:
    try:
        if old is None:
            _require_to_create(by, wanted)
        elif wanted is not None:
            require_queue_change(access_for(by), old, wanted)
    except Forbidden as missing:
        field = ""
        if old is None:
            field = "spec.parent"
        return Verdict((Violation("permission_missing", missing.queue, field, str(missing)),))
    except Rejected as refusal:
        return Verdict(tuple(refusal.violations))
    return None


def _require_to_create(by: Actor, wanted: QueueSpec | None) -> None:
    if wanted is None:
        require_to_create_queue(by, ROOT)
    else:
        require_to_create_queue(by, wanted.parent)


def differences(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[dict[str, str]]:
    """What the reader typed against what is stored now, field by field."""
    flat_mine = _flat(mine)
    flat_theirs = _flat(theirs)
    lines = []
    for path in {**flat_mine, **flat_theirs}:
        own = flat_mine.get(path, "unset")
        stored = flat_theirs.get(path, "unset")
        if own != stored:
            lines.append({"field": path, "mine": own, "theirs": stored})
    return lines


def _flat(value: Any, path: str = "") -> dict[str, str]:
    """The leaves of a manifest by their path: {"spec.deserved.cpu": "4"}."""
    if not isinstance(value, Mapping):
        return {path: str(value)}
    flat = {}
    for name, inner in value.items():
        inner_path = str(name)
        if path:
            inner_path = f"{path}.{name}"
        flat.update(_flat(inner, inner_path))
    return flat
