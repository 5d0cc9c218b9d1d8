"""Admission asked from outside: the rules on what is stored now. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scheduler.admission.defaults import Defaults
from scheduler.admission.facts import QUEUE_ANNOTATION, Facts
from scheduler.admission.reviews import Request, review, review_defaults
from scheduler.admission.violations import Verdict
from scheduler.domain.queues import DEFAULT, QueueTree
from scheduler.selectors.queues.backlogs import judged
from scheduler.selectors.queues.facts import admission_scene
from scheduler.selectors.queues.submission import submission_scene


def review_now(kind: str, request: Request) -> Verdict:
    """May this happen? `kind` is queues, jobs, podgroups or pods."""
    return review_in(kind, request, *scene_for(kind, request))


def review_in(kind: str, request: Request, tree: QueueTree, facts: Facts) -> Verdict:
    """The same, of a tree and facts that the caller has."""
    return judged(lambda known: review(kind, request, tree, known), facts)


def defaults_now(kind: str, request: Request) -> tuple[Verdict, Defaults]:
    """What would be filled in; `kind` is queues, jobs or podgroups."""
    if kind == "queues":
        facts = Facts()
    else:
        facts = scene_for(kind, request)[1]
    return review_defaults(kind, request, facts)


def scene_for(kind: str, request: Request) -> tuple[QueueTree, Facts]:
    """What is stored of all that the request is about."""
    if kind == "queues":
        tree, facts = admission_scene()
        # whoever asks here schedules elsewhere
        return tree, replace(facts, reads_hierarchy_annotations=True)
    whole = request.completed().new
    metadata = _mapping_at(whole, "metadata")
    spec = _mapping_at(whole, "spec")
    marks = []
    for part in ("annotations", "labels"):
        marks.append(_mapping_at(metadata, part).get(QUEUE_ANNOTATION))
    names = set()
    for name in (spec.get("queue"), *marks, DEFAULT):
        names.add(_as_text(name))
    scene = submission_scene(names - {""}, _as_text(metadata.get("namespace")), request.user)
    return scene.tree, scene.facts


def _mapping_at(value: object, key: str) -> Mapping[str, object]:
    if isinstance(value, Mapping):
        part = value.get(key)
    else:
        part = None
    if isinstance(part, Mapping):
        return part
    return {}


def _as_text(value: object) -> str:
    """A name as it may be asked of a database: what no database keeps cannot be there."""
    if isinstance(value, str) and value.isprintable():
        return value
    return ""
