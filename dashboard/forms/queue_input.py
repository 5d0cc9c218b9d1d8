"""The queue form filled in: from what was posted, from a manifest, from YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import QueryDict

from dashboard.forms.queue import NEW_RESOURCE, QUOTAS, QueueForm, differences
from dashboard.present.amounts import as_typed
from scheduler.admission.reading.queue import queue_manifest, read_queue
from scheduler.admission.violations import Violation
from scheduler.documents import DocumentError, read_documents
from scheduler.domain.queue_fields import (
    OPTIONAL_NUMBERS,
    TEXT_FIELDS,
)
from scheduler.domain.queues import QueueSpec

_MOST_RESOURCES = 40

MOST_YAML = 200_000


def form_from_post(data: QueryDict, stored: QueueForm) -> QueueForm:
    """As typed; what has no input, or one that cannot be used, is as it is stored.

    A stored queue keeps its name.
    """
    texts = {}
    for text in TEXT_FIELDS:
        texts[text.name] = data.get(text.name, stored.texts.get(text.name, ""))
    numbers = {}
    for number in OPTIONAL_NUMBERS:
        typed = data.get(number.name, stored.numbers.get(number.name, ""))
        numbers[number.name] = as_typed(typed)
    return QueueForm(
        name=stored.name or data.get("name", "").strip(),
        parent=data.get("parent", stored.parent),
        weight=as_typed(data.get("weight", stored.weight)),
        priority=as_typed(data.get("priority", stored.priority)),
        reclaimable=data.get("reclaimable") == "on",
        dequeue_strategy=data.get("dequeue_strategy", stored.dequeue_strategy),
        state=data.get("state", stored.state),
        numbers=numbers,
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
    amounts: dict[str, dict[str, str]],
    resource: str,
    texts: dict[str, str],
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
    numbers = {}
    for field in OPTIONAL_NUMBERS:
        numbers[field.name] = str(spec.get(field.key, ""))
    return QueueForm(
        name=manifest["metadata"]["name"],
        parent=spec["parent"],
        weight=str(spec["weight"]),
        priority=str(spec["priority"]),
        reclaimable=spec["reclaimable"],
        dequeue_strategy=spec["dequeueStrategy"],
        state=spec["state"],
        numbers=numbers,
        texts={text.name: _as_line(spec.get(text.key, "")) for text in TEXT_FIELDS},
        amounts=amounts,
    )


def _as_line(value: object) -> str:
    """Names are typed with commas between them."""
    if isinstance(value, list):
        return ", ".join(value)
    return str(value)


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
