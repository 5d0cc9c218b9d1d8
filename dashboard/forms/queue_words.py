"""Violations and notices in the words of the queue form."""

from __future__ import annotations

from dataclasses import replace

from dashboard.forms.queue import QUOTA_TITLES, QUOTAS
from dashboard.present.amounts import short_name
from scheduler.admission.violations import Notice, Verdict, Violation
from scheduler.domain.queue_fields import (
    QUEUE_FIELDS,
)

_LABELS = {"metadata.name": "Name"} | {field.path: field.label for field in QUEUE_FIELDS}


def quota_words(field: str) -> str:
    """An input of the form by its place in the manifest; "" where it is no quota.

    "spec.guarantee.resource.cpu" is "guarantee CPU".
    """
    for quota, path in QUOTAS.items():
        resource = field.removeprefix(f"{path}.")
        if resource != field:
            return f"{QUOTA_TITLES[quota].lower()} {short_name(resource)}"
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
