"""What a reader typed into the form of a queue, and what they started with."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest

from dashboard.forms.queue import QueueForm, judge
from dashboard.forms.queue_input import (
    MOST_YAML,
    form_from_manifest,
    form_from_post,
    manifest_from_yaml,
)
from dashboard.views.common import actor
from scheduler.admission.reading.queue import queue_manifest, read_queue
from scheduler.admission.violations import Rejected, Verdict, Violation
from scheduler.domain.queues import QueueSpec
from scheduler.selectors.queues.facts import admission_scene, queue_tree
from scheduler.services.queues.create_update import merged_edit


def given_queue(request: HttpRequest, name: str) -> tuple[QueueForm, object, str]:
    """The form as typed, its manifest, and why there is no manifest."""
    if request.POST.get("as") == "yaml":
        manifest, problem = manifest_from_yaml(request.POST.get("yaml", ""))
        return QueueForm(name=name), manifest, problem
    base = _manifest_to_change(request, name)
    if base:
        start = form_from_manifest(base)
    else:
        start = QueueForm()
    form = form_from_post(request.POST, start)
    return form, form.manifest(base), ""


def _manifest_to_change(request: HttpRequest, name: str) -> Any:
    """The queue as the reader started with it, or as it is stored; None for a new one."""
    if not name:
        return None
    opened = opened_manifest(request)
    if opened:
        return opened
    tree = queue_tree()
    if name not in tree:
        return None
    return queue_manifest(tree[name])


def opened_manifest(request: HttpRequest) -> dict[str, Any] | None:
    """None where the form did not carry it along, or it is not a queue."""
    try:
        opened = json.loads(request.POST.get("opened", "")[:MOST_YAML])
    except (ValueError, RecursionError):
        return None
    reading = read_queue(opened)
    if reading.value is None or reading.violations:
        return None
    return opened  # type: ignore[no-any-return]


def over_theirs(request: HttpRequest, manifest: object, stored: QueueSpec) -> object:
    """What saving would write: this reader's changes over what is stored now.

    As typed, where that cannot be read.
    """
    opened = opened_manifest(request)
    if opened is None:
        return manifest
    try:
        return merged_edit(opened, manifest, queue_manifest(stored)).value
    except Rejected:
        return manifest


def unreadable(problem: str) -> Verdict:
    return Verdict((Violation("unreadable", "", "yaml", problem, "correct the text"),))


def full_verdict(request: HttpRequest, name: str, form: QueueForm, manifest: object) -> Verdict:
    """What the form finds wrong, and what the rules say."""
    tree, facts = admission_scene()
    stored_name = ""
    if name in tree:
        stored_name = name
    verdict = judge(manifest, tree, facts, stored_name, actor(request))
    return Verdict(form.problems()) + verdict
