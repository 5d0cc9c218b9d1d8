"""Volcano's older hierarchy, in two annotations.

One holds a path such as root/science/dev, the other a weight for each of its parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from scheduler.admission.defaults import HIERARCHY, HIERARCHY_WEIGHTS
from scheduler.admission.violations import Violation
from scheduler.domain.plans import counted
from scheduler.domain.queues import ROOT, QueueSpec, QueueTree

_FIELD = "metadata.annotations"


def check_hierarchy_annotations(proposed: QueueSpec, tree: QueueTree) -> Iterator[Violation]:
    path = proposed.annotations.get(HIERARCHY, "")
    weights = proposed.annotations.get(HIERARCHY_WEIGHTS, "")
    if not path and not weights:
        return
    yield from _check_both_there(proposed.name, path, weights)
    yield from _check_lengths(proposed.name, path, weights)
    yield from _check_weights(proposed.name, weights)
    yield from _check_other_paths(proposed.name, path, tree)


def _check_both_there(name: str, path: str, weights: str) -> Iterator[Violation]:
    if not path or not weights:
        if path:
            missing = HIERARCHY_WEIGHTS
        else:
            missing = HIERARCHY
        message = (
            f"{HIERARCHY} and {HIERARCHY_WEIGHTS} must be given together; {missing} is missing."
        )
        yield Violation(
            "hierarchy_annotations_incomplete",
            name,
            _FIELD,
            message,
            f"add {missing}, or leave both out",
        )


def _check_lengths(name: str, path: str, weights: str) -> Iterator[Violation]:
    parts = len(path.split("/"))
    numbers = len(weights.split("/"))
    if parts != numbers:
        message = (
            f"{HIERARCHY} {path} has {counted(parts, 'part')}, {HIERARCHY_WEIGHTS} {weights} has "
            f"{numbers}; they must have as many."
        )
        yield Violation(
            "hierarchy_weights_length_mismatch",
            name,
            _FIELD,
            message,
            f"give {counted(parts, 'weight')}",
        )


def _check_weights(name: str, weights: str) -> Iterator[Violation]:
    for part in weights.split("/"):
        weight = _read_number(part)
        if weight is None:
            message = f"{part or 'an empty part'} in {HIERARCHY_WEIGHTS} {weights} is not a number."
            yield Violation(
                "hierarchy_weight_not_a_number", name, _FIELD, message, "write a number above 0"
            )
        elif weight <= 0:
            message = f"{part} in {HIERARCHY_WEIGHTS} {weights} must be above 0."
            yield Violation(
                "hierarchy_weight_not_positive", name, _FIELD, message, "write a number above 0"
            )


def _read_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    if math.isfinite(number):
        return number
    return None


def _check_other_paths(name: str, path: str, tree: QueueTree) -> Iterator[Violation]:
    """A path that other queues continue is not a leaf.

    Whole parts count, so root/node does not lead to root/node1.
    """
    for other in tree:
        continued = other.annotations.get(HIERARCHY, "")
        if path and other.name != name and continued.startswith(path + "/"):
            message = (
                f"{HIERARCHY} {path} leads to {continued} of queue {other.name}; a queue cannot "
                "be on the path of another."
            )
            yield Violation(
                "hierarchy_path_conflict",
                name,
                _FIELD,
                message,
                "choose a path that no other queue continues",
            )


def check_tree_of_annotations(proposed: QueueSpec, old: QueueSpec | None) -> Iterator[Violation]:
    """Refuse a path in an annotation where parents alone make the tree.

    The queue would silently be put below root.

    One that was there before stays, and one that goes with a parent is only a note.
    """
    path = proposed.annotations.get(HIERARCHY, "")
    weights = proposed.annotations.get(HIERARCHY_WEIGHTS, "")
    parts = path.split("/")
    numbers = weights.split("/")
    if (
        not path
        or (old is not None and old.annotations.get(HIERARCHY) == path)
        or proposed.parent not in ("", ROOT)
    ):
        return
    if len(parts) != len(numbers) or (len(parts) <= 2 and numbers[-1] == str(proposed.weight)):
        return
    message = (
        f"The place of {proposed.name} in {HIERARCHY} ({path}) is not read; it would be a queue "
        f"below root with weight {proposed.weight}."
    )
    yield Violation(
        "hierarchy_annotations_not_read",
        proposed.name,
        _FIELD,
        message,
        _as_parents(parts, numbers),
    )


def _as_parents(parts: list[str], numbers: list[str]) -> str:
    """The same tree, in the words that are read."""
    between = []
    for above, name, weight in zip(parts, parts[1:-1], numbers[1:-1], strict=False):
        between.append(f"create the queue {name} with parent {above} and weight {weight}")
    if len(parts) > 1:
        own = f"write spec.parent: {parts[-2]}, spec.weight: {numbers[-1]} here"
    else:
        own = f"write spec.weight: {numbers[-1]} here"
    return ", ".join([*between, own]) + ", and leave the annotations out"
