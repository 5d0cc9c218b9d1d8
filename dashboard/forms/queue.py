"""The queue form, and the manifest that it stands for.

An empty input is unset, and 0 is zero. An empty capability is that of the queue above.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.http import QueryDict
from django.utils.safestring import SafeString

from dashboard.forms.typed import number_or_text
from dashboard.present.amounts import as_typed, in_page_order, short_name
from dashboard.present.bars import BAR_WIDTH, Span, bar_html, rectangles, scaled
from scheduler.admission.facts import Facts
from scheduler.admission.reading.queue import SCHEDULING_VERSIONS, queue_manifest, read_queue
from scheduler.admission.rules.queues import verdict_on
from scheduler.admission.violations import Notice, Rejected, Verdict, Violation
from scheduler.documents import DocumentError, read_documents
from scheduler.domain.queue_fields import (
    AMOUNT_FIELDS,
    QUEUE_FIELDS,
    SECONDS_FIELDS,
    TEXT_FIELDS,
    FieldKind,
)
from scheduler.domain.queues import ROOT, QueueSpec, QueueTree
from scheduler.domain.resources import Resources, format_quantity
from scheduler.services.accounts.access import (
    Forbidden,
    access_for,
    require_queue_change,
    require_to_create_queue,
)
from scheduler.services.accounts.actors import SYSTEM, Actor

_QUOTA_FIELDS = tuple(reversed(AMOUNT_FIELDS))  # from what is kept free to what it may have at most
QUOTAS = {field.name: field.path for field in _QUOTA_FIELDS}
_TITLES = {field.name: field.label for field in _QUOTA_FIELDS}
_LABELS = {"metadata.name": "Name"} | {field.path: field.label for field in QUEUE_FIELDS}
_WHEN_EMPTY = {"guarantee": "unset", "deserved": "unset", "capability": "inherited"}
PODS = "pods"  # no line of its own, unless the queue has a quota of it
NEW_RESOURCE = "new-resource"  # the input for a resource's name in the last line
_MOST_RESOURCES = 40
MOST_YAML = 200_000
_TICK = 6  # the width of the mark in a bar, in its own units


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
    seconds: dict[str, str] = field(default_factory=dict)  # by the name of the field
    texts: dict[str, str] = field(default_factory=dict)  # the same
    amounts: dict[str, dict[str, str]] = field(default_factory=dict)  # resource -> quota -> text
    # quota -> text, typed in the last line without a resource's name
    unnamed: dict[str, str] = field(default_factory=dict)
    # resources that the last line names although they have a line of their own, with another amount
    doubled: tuple[str, ...] = ()

    def seconds_inputs(self) -> list[dict[str, Any]]:
        inputs = []
        for seconds in SECONDS_FIELDS:
            inputs.append(
                {
                    "name": seconds.name,
                    "label": seconds.label,
                    "help": seconds.help,
                    "field": seconds.path,
                    "value": self.seconds.get(seconds.name, ""),
                }
            )
        return inputs

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
                    "label": _TITLES[quota],
                    "value": self.unnamed.get(quota, ""),
                }
            )
        return found

    def _cell(self, resource: str, quota: str) -> dict[str, str]:
        return {
            "input": f"{quota}:{resource}",
            "field": f"{QUOTAS[quota]}.{resource}",
            "label": _TITLES[quota],
            "title": f"{_TITLES[quota]} of {short_name(resource)}",
            "empty": _WHEN_EMPTY[quota],
            "value": self.amounts.get(resource, {}).get(quota, ""),
        }

    def problems(self) -> tuple[Violation, ...]:
        """What is typed that no manifest can say: it is refused, not left out without a word."""
        unnamed = (self._unnamed(quota, text) for quota, text in self.unnamed.items() if text)
        return (*unnamed, *(self._doubled(resource) for resource in self.doubled))

    def _unnamed(self, quota: str, text: str) -> Violation:
        message = f"{_TITLES[quota]} {text[:40]} has no resource: the name beside it is empty."
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
        for seconds in SECONDS_FIELDS:
            typed = self.seconds.get(seconds.name, "")
            if typed:
                spec[seconds.key] = number_or_text(typed)
        for text in TEXT_FIELDS:
            spec[text.key] = self.texts.get(text.name, "")
        for quota in QUOTAS:
            spec[quota] = self._quota_manifest(quota)
        if base is None:
            head = {
                "apiVersion": SCHEDULING_VERSIONS[0],
                "kind": "Queue",
                "metadata": {"name": self.name},
            }
            return {**head, "spec": spec | {"state": self.state}}
        shown = {*spec, *(seconds.key for seconds in SECONDS_FIELDS)}
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


def quota_words(field: str) -> str:
    """An input of the form by its place in the manifest; "" where it is no quota.

    "spec.guarantee.resource.cpu" is "guarantee CPU".
    """
    for quota, path in QUOTAS.items():
        resource = field.removeprefix(f"{path}.")
        if resource != field:
            return f"{_TITLES[quota].lower()} {short_name(resource)}"
    return ""


def in_form_words(verdict: Verdict) -> Verdict:
    """The same, with each input named by its label and not by its place in the manifest."""
    violations = tuple(replace(item, message=_in_form_words(item)) for item in verdict.violations)
    notices = tuple(replace(item, message=_in_form_words(item)) for item in verdict.notices)
    return Verdict(violations, notices)


def _in_form_words(item: Violation | Notice) -> str:
    label = _label(item.field)
    if not label or not item.message.startswith(item.field):
        return item.message
    return label + item.message.removeprefix(item.field)


def field_words(field: str) -> str:
    """A field by its label in the form; by its path where it has none."""
    return _label(field) or field


def _label(field: str) -> str:
    if field in _LABELS:
        return _LABELS[field]
    words = quota_words(field)
    return words[:1].upper() + words[1:]


def form_from_post(data: QueryDict, stored: QueueForm) -> QueueForm:
    """As typed; what has no input, or one that cannot be used, is as it is stored.

    A stored queue keeps its name.
    """
    texts = {}
    for text in TEXT_FIELDS:
        texts[text.name] = data.get(text.name, stored.texts.get(text.name, ""))
    seconds = {}
    for number in SECONDS_FIELDS:
        typed = data.get(number.name, stored.seconds.get(number.name, ""))
        seconds[number.name] = as_typed(typed)
    return QueueForm(
        name=stored.name or data.get("name", "").strip(),
        parent=data.get("parent", stored.parent),
        weight=as_typed(data.get("weight", stored.weight)),
        priority=as_typed(data.get("priority", stored.priority)),
        reclaimable=data.get("reclaimable") == "on",
        dequeue_strategy=data.get("dequeue_strategy", stored.dequeue_strategy),
        state=data.get("state", stored.state),
        seconds=seconds,
        texts=texts,
        **_posted_amounts(data),
    )


def _posted_amounts(data: QueryDict) -> dict[str, Any]:
    """Inputs are named "deserved:cpu".

    "deserved:+" belongs to the resource that is typed in the last line.
    """
    amounts: dict[str, dict[str, str]] = {}
    last_line: dict[str, str] = {}
    for key in list(data)[: 3 * _MOST_RESOURCES + 40]:
        quota, _, resource = key.partition(":")
        if quota not in QUOTAS or not resource:
            continue
        text = as_typed(str(data[key]))
        if resource == "+":
            last_line[quota] = text
        else:
            amounts.setdefault(resource, {})[quota] = text
    added = str(data.get(NEW_RESOURCE, "")).strip()
    if not added:
        return {"amounts": amounts, "unnamed": last_line}
    return {"amounts": amounts, "doubled": _add_line(amounts, added, last_line)}


def _add_line(
    amounts: dict[str, dict[str, str]], resource: str, texts: dict[str, str]
) -> tuple[str, ...]:
    """The last line, among the others.

    The resource's name if it has a line already that says something else.
    """
    own = amounts.setdefault(resource, {})
    for quota, text in texts.items():
        if text and own.get(quota, "") not in ("", text):
            return (resource,)
        own[quota] = text or own.get(quota, "")
    return ()


def form_from_manifest(manifest: Mapping[str, Any]) -> QueueForm:
    spec = manifest["spec"]
    amounts: dict[str, dict[str, str]] = {}
    for quota in QUOTAS:
        given = spec.get(quota) or {}
        if quota == "guarantee":
            given = given.get("resource", {})
        for resource, text in given.items():
            amounts.setdefault(resource, {})[quota] = str(text)
    return QueueForm(
        name=manifest["metadata"]["name"],
        parent=spec["parent"],
        weight=str(spec["weight"]),
        priority=str(spec["priority"]),
        reclaimable=spec["reclaimable"],
        dequeue_strategy=spec["dequeueStrategy"],
        state=spec["state"],
        seconds={field.name: str(spec.get(field.key, "")) for field in SECONDS_FIELDS},
        texts={text.name: spec[text.key] for text in TEXT_FIELDS},
        amounts=amounts,
    )


def form_of_reading(
    manifest: object, old: QueueSpec | None
) -> tuple[QueueForm | None, tuple[Violation, ...]]:
    """The form that says the same as the manifest, or why there is none.

    There is none where the manifest cannot be read, or has a field that the form does not have.
    """
    reading = read_queue(manifest, old)
    if reading.violations or reading.value is None:
        return None, reading.violations
    whole = queue_manifest(reading.value.spec)
    form = form_from_manifest(whole)
    base = None
    if old:
        base = queue_manifest(old)
    elsewhere = differences(whole, form.manifest(base))
    if elsewhere:
        return None, tuple(_no_place(line["field"]) for line in elsewhere)
    return form, ()


def _no_place(field: str) -> Violation:
    message = f"The form has no place for {field}, which is changed here."
    return Violation(
        "not_in_the_form", "", field, message, "save it as YAML, or leave that field as it is"
    )


def manifest_from_yaml(text: str) -> tuple[object, str]:
    """The one object in the text, and what is wrong with the text if it cannot be read."""
    if len(text) > MOST_YAML:
        return None, "This is too long for one queue."
    try:
        documents = [document for document in read_documents(text) if document is not None]
    except DocumentError as problem:
        place, is_no_yaml, why = str(problem).partition(": this is not YAML: ")
        if is_no_yaml:
            return None, f"This is not YAML in {place}: {why}."
        return None, f"This cannot be read: {problem}."
    if len(documents) != 1:
        return None, f"There are {len(documents)} documents here; this page takes one queue."
    return documents[0], ""


def judge(
    manifest: object, tree: QueueTree, facts: Facts, name: str, by: Actor = SYSTEM
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


def family(
    form: QueueForm, tree: QueueTree, total: Resources | None = None
) -> list[dict[str, Any]]:
    """Per resource, what the parent has and how its children divide it with this queue among them.

    For the panel beside the form.

    Root sets nothing itself: its children divide the cluster, of which `total` is known.
    """
    if form.parent not in tree:
        return []
    parent = tree[form.parent]
    siblings = []
    for child in tree.children(form.parent):
        if child.name != form.name:
            siblings.append(child)
    lines = []
    for resource in in_page_order(form.amounts):
        for quota in ("deserved", "guarantee"):
            mine = _amount(resource, form.amounts[resource].get(quota, ""))
            if mine is None:
                continue
            whose = parent.name
            has = getattr(parent, quota)
            if form.parent == ROOT and total is not None:
                whose = "the cluster"
                has = total
            others = {}
            for child in siblings:
                others[child.name] = getattr(child, quota).amount(resource)
            lines.append(_line(resource, quota, whose, has, others, mine))
    return lines


def _amount(resource: str, text: str) -> int | None:
    """None where nothing is typed, or no amount."""
    if not text:
        return None
    try:
        return Resources.parse({resource: text})[resource]
    except ValueError:
        return None


def _line(
    resource: str, quota: str, parent: str, has: Resources, others: dict[str, int], mine: int
) -> dict[str, Any]:
    together = sum(others.values()) + mine
    limit = has.get(resource)
    limit_words = ""
    over = ""
    if limit is not None:
        limit_words = format_quantity(resource, limit)
        if together > limit:
            over = format_quantity(resource, together - limit)
    parts = []
    for name, amount in others.items():
        if amount:
            parts.append(f"{name} {format_quantity(resource, amount)}")
    return {
        "title": f"{_TITLES[quota]} {short_name(resource)}",
        "together": format_quantity(resource, together),
        "parent": parent,
        "has": limit_words,
        "over": over,
        "others": ", ".join(parts),
        "mine": format_quantity(resource, mine),
        "bar": _family_bar(sum(others.values()), mine, limit),
    }


def _family_bar(others: int, mine: int, limit: int | None) -> SafeString:
    """The siblings, this queue, and a tick where the parent's own figure is."""
    whole = max(others + mine, limit or 0)
    is_over = limit is not None and others + mine > limit
    siblings = scaled(others, whole)
    own_style = "use"
    if is_over:
        own_style = "over"
    tick_at = min(BAR_WIDTH - _TICK, scaled(limit or 0, whole))
    spans = [
        Span("ask-solid", 0, siblings),
        Span(own_style, siblings, scaled(mine, whole)),
        Span("deserved", tick_at, _TICK),
    ]
    return bar_html(rectangles(spans))


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
