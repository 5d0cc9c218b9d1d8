"""Amounts as people read them: "3.5", "12 Gi", "22 GPU"; and the order of resources on a page."""

from __future__ import annotations

import re
from collections.abc import Iterable

from scheduler.domain.resources import is_accelerator, is_bytes, units_per_one

_BYTE_UNITS = (
    ("Ei", 2**60),
    ("Pi", 2**50),
    ("Ti", 2**40),
    ("Gi", 2**30),
    ("Mi", 2**20),
    ("Ki", 2**10),
)
_NAMES = {
    "cpu": "CPU",
    "memory": "Memory",
    "ephemeral-storage": "Scratch disk",
    "storage": "Storage",
    "pods": "Pods",
}
_UNITS = {"cpu": "CPU", "pods": "pods"}


def resource_choices(resources: Iterable[str]) -> list[dict[str, str]]:
    """Resources to choose from, with the names that they are shown by."""
    return [{"name": resource, "title": short_name(resource)} for resource in resources]


def short_name(resource: str) -> str:
    """ "GPU" for nvidia.com/gpu, "CPU" for cpu; an unknown one by what follows its vendor."""
    if resource in _NAMES:
        return _NAMES[resource]
    last = resource.rpartition("/")[2]
    if len(last) <= 4:
        return last.upper()
    return last


def unit(resource: str) -> str:
    """What is written behind a figure; bytes carry their unit in the figure itself."""
    if is_bytes(resource):
        return ""
    return _UNITS.get(resource, short_name(resource))


def shown(resource: str, amount: int) -> str:
    """The figure without its resource's name: "180", "0.5", "12.5 Gi".

    Three digits are enough for a page; the exact figure is in the YAML.
    """
    if is_bytes(resource):
        return _shown_bytes(amount)
    return _trimmed(amount, units_per_one(resource))


def with_unit(resource: str, amount: int) -> str:
    return f"{shown(resource, amount)} {unit(resource)}".rstrip()


def _shown_bytes(amount: int) -> str:
    for suffix, size in _BYTE_UNITS:
        if abs(amount) >= size:
            return f"{_trimmed(amount, size)} {suffix}"
    if amount == 0:
        return "0"
    return f"{amount} B"


def _trimmed(amount: int, per_one: int) -> str:
    """A narrow space groups digits, as in every language."""
    if amount % per_one == 0:
        return f"{amount // per_one:,}".replace(",", " ")
    value = amount / per_one
    digits = 3  # a thousandth of a CPU is not nothing
    if abs(value) >= 10:
        digits = 1
    elif abs(value) >= 1:
        digits = 2
    return f"{value:,.{digits}f}".rstrip("0").rstrip(".").replace(",", " ")


_GROUPED = re.compile(r"(?<=\d)\s(?=\d{3}(?!\d))")
_BEFORE_UNIT = re.compile(r"(?<=\d)\s+(?=[A-Za-z]{1,2}$)")


def as_typed(text: str) -> str:
    """The quantity of a figure as pages show it: "1600" of "1 600", "12.5Gi" of "12.5 Gi".

    Other texts stay as they are, for the rules to check.
    """
    return _BEFORE_UNIT.sub("", _GROUPED.sub("", text.strip()))


def in_page_order(resources: Iterable[str]) -> list[str]:
    """Accelerators first, then cpu, memory, and the others. Pods are counted elsewhere on pages."""
    return sorted(set(resources) - {"pods"}, key=lambda name: (_rank(name), name))


_FIRST = {"cpu": 1, "memory": 2}


def _rank(resource: str) -> int:
    if is_accelerator(resource):
        return 0
    if resource in _FIRST:
        return _FIRST[resource]
    if "/" in resource:
        return 4
    return 3
