"""What the form of a queue shows when somebody else changed the queue meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.http import HttpRequest, HttpResponse

from dashboard.forms.queue import QueueForm, differences
from dashboard.forms.queue_input import form_from_manifest
from dashboard.forms.queue_words import field_words
from dashboard.views.queue_form_page import render_form
from dashboard.views.queue_typed import full_verdict
from scheduler.admission.reading.queue import queue_manifest
from scheduler.domain.three_way import FieldChange
from scheduler.selectors.queues.facts import queue_tree, spec_of
from scheduler.services.queues.create_update import (
    EditConflict,
    StaleVersion,
)
from scheduler.yaml_texts import to_yaml

Context = dict[str, Any]


def conflict_page(
    request: HttpRequest,
    name: str,
    context: Context,
    conflict: EditConflict,
) -> HttpResponse:
    """Two users changed the same field.

    The form has what is stored now, with this user's input over it. Sent again, only that is
    written.
    """
    merged = conflict.merged
    shown = {
        "conflict": conflict.queue,
        "both": [_three_values(change) for change in merged.both],
        "kept": [_three_values(change) for change in merged.kept],
        "form": form_from_manifest(merged.value),
        "yaml": to_yaml(merged.value),
        "manifest": merged.value,
        "opened": queue_manifest(spec_of(conflict.queue)),
        "version": conflict.queue.resource_version,
        "verdict": full_verdict(request, name, QueueForm(), merged.value),
    }
    return render_form(request, name, context | shown, 412)


def conflict_without_base(
    request: HttpRequest,
    name: str,
    context: Context,
    manifest: object,
    conflict: StaleVersion,
) -> HttpResponse:
    """Where it is not known what the reader started with, both versions are shown.

    Sent again, what was typed replaces what is stored.
    """
    theirs = queue_manifest(queue_tree()[name])
    mine: Context = {}
    if isinstance(manifest, dict):
        mine = manifest
    both = []
    for line in differences(mine, theirs):
        both.append({**line, "field": field_words(line["field"]), "base": "not known"})
    shown = {
        "conflict": conflict.queue,
        "both": both,
        "opened": theirs,
        "version": conflict.queue.resource_version,
    }
    return render_form(request, name, context | shown, 412)


def _three_values(change: FieldChange) -> Context:
    return {
        "field": field_words(change.field),
        "base": _value_words(change.base),
        "mine": _value_words(change.mine),
        "theirs": _value_words(change.theirs),
    }


def changes_in_words(changes: Iterable[FieldChange]) -> str:
    words = []
    for change in changes:
        field = field_words(change.field)
        words.append(f"{field} from {_value_words(change.base)} to {_value_words(change.theirs)}")
    return ", ".join(words)


def _value_words(value: object) -> str:
    if value is None:
        return "unset"
    return str(value)
