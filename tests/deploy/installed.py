"""Which installed packages a list of requirements needs here, those that others need too."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def needed(wanted: list[Requirement]) -> set[str]:
    return set(_walk(wanted))


def _walk(wanted: list[Requirement]) -> Iterator[str]:
    waiting = list(wanted)
    seen: set[tuple[str, str]] = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) in seen or not applies(requirement):
                continue
            seen.add((name, extra))
            yield name
            waiting += [inner for inner in _requirements_of(name) if applies(inner, extra)]


def applies(requirement: Requirement, extra: str = "") -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _requirements_of(name: str) -> list[Requirement]:
    try:
        return [Requirement(text) for text in distribution(name).requires or ()]
    except PackageNotFoundError:  # whoever asks finds its version missing
        return []
