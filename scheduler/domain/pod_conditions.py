"""Why each pod of a waiting gang has no place, kept once for all that have the same to say.

A gang may have thousands of pods that wait for the same reason. Its podgroup keeps one entry for
each reason and sentence, with the pods it is about as ranges of their ids; which of them a pod has
is found when somebody looks at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

POD = "{pod}"
"""Stands in a sentence for the name of the pod that it is about."""


def general(message: str, key: str) -> str:
    """The sentence without the name of the pod ("namespace/name")."""
    return message.replace(key, POD)


def packed(told: Iterable[tuple[int, str, str, str]], at: str) -> list[dict[str, Any]]:
    """From (pod id, its key, reason, message) of every pod of one gang.

    `at` is the moment it was told.
    """
    ids: dict[tuple[str, str], list[int]] = {}
    for pod_id, key, reason, message in told:
        ids.setdefault((reason, general(message, key)), []).append(pod_id)
    entries = []
    for (reason, message), found in sorted(ids.items()):
        pods = _to_ranges(sorted(found))
        entries.append({"reason": reason, "message": message, "pods": pods, "at": at})
    return entries


def _to_ranges(ids: Sequence[int]) -> list[list[int]]:
    ranges: list[list[int]] = []
    for pod_id in ids:
        if ranges and ranges[-1][1] == pod_id - 1:
            ranges[-1][1] = pod_id
        else:
            ranges.append([pod_id, pod_id])
    return ranges


def unpacked(stored: Iterable[Mapping[str, Any]], pod_id: int, key: str) -> dict[str, str] | None:
    """What was told of this pod: `reason`, `message`, `at`. None if nothing was."""
    for entry in stored:
        if any(first <= pod_id <= last for first, last in entry["pods"]):
            return {
                "reason": entry["reason"],
                "message": entry["message"].replace(POD, key),
                "at": entry["at"],
            }
    return None


def in_words(stored: Iterable[Mapping[str, Any]]) -> str:
    """ "2 more of its pods wait: ...", for each thing that was told; empty if nothing was."""
    sentences = []
    for entry in stored:
        count = sum(last - first + 1 for first, last in entry["pods"])
        wait, each = "of its pods wait", "each"
        if count == 1:
            wait, each = "pod waits", "it"
        message = entry["message"].replace(f"pod {POD}", each)
        sentences.append(f"{count} more {wait}: {message}")
    return " ".join(sentences)
