"""Amounts as people read them: "3.5", "12 Gi", "22 GPU"; and the order in which resources stand on a page."""

from __future__ import annotations

import re
from collections.abc import Iterable

from scheduler.domain.resources import is_bytes, units_per_one

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


def short_name(resource: str) -> str:
    """ "GPU" for nvidia.com/gpu, "CPU" for cpu; an unknown one by what follows its vendor."""
    if resource in _NAMES:
        return _NAMES[resource]
    last = resource.rpartition("/")[2]
    return last.upper() if len(last) <= 4 else last


def unit(resource: str) -> str:
    """What is written behind a figure; bytes carry their unit in the figure itself."""
    return "" if is_bytes(resource) else _UNITS.get(resource, short_name(resource))


def shown(resource: str, amount: int) -> str:
    """The figure without its resource's name: "180", "0.5", "12.5 Gi". Three digits are enough for a page; exact ones are in the YAML."""
    if is_bytes(resource):
        return _shown_bytes(amount)
    return _trimmed(amount, units_per_one(resource))


def with_unit(resource: str, amount: int) -> str:
    return f"{shown(resource, amount)} {unit(resource)}".rstrip()


def _shown_bytes(amount: int) -> str:
    for suffix, size in _BYTE_UNITS:
        if abs(amount) >= size:
            return f"{_trimmed(amount, size)} {suffix}"
    return "0" if amount == 0 else f"{amount} B"


def _trimmed(amount: int, per_one: int) -> str:
    if amount % per_one == 0:
        return f"{amount // per_one:,}".replace(
            ",", " "
        )  # a narrow space groups digits in every language
    value = amount / per_one
    digits = (
        1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    )  # a thousandth of a CPU is not nothing
    return f"{value:,.{digits}f}".rstrip("0").rstrip(".").replace(",", " ")


_GROUPED = re.compile(r"(?<=\d)\s(?=\d{3}(?!\d))")
_BEFORE_UNIT = re.compile(r"(?<=\d)\s+(?=[A-Za-z]{1,2}$)")


def as_typed(text: str) -> str:
    """A figure as pages show it, "1 600" or "12.5 Gi", as the quantity it stands for; anything else as it is, for the rules to judge."""
    return _BEFORE_UNIT.sub("", _GROUPED.sub("", text.strip()))


def in_page_order(resources: Iterable[str]) -> list[str]:
    """Accelerators first, then cpu, memory, and at last what else vendors count; pods are counted elsewhere on the page."""
    return sorted(set(resources) - {"pods"}, key=lambda name: (_rank(name), name))


_ACCELERATOR = re.compile(r"gpu|[nthx]pu\b|fpga|neuron|gaudi|ascend|accelerator", re.IGNORECASE)


def _rank(resource: str) -> int:
    if "/" in resource and _ACCELERATOR.search(resource):
        return 0
    return {"cpu": 1, "memory": 2}.get(resource, 4 if "/" in resource else 3)
