"""Kubernetes quantities, as far as a terminal needs them.

They are read for bars, joined for tables, and taken from options such as `cpu=2,memory=4Gi`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from dashboard.cli.problems import usage

_SUFFIXES = {
    "": 1.0,
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    **{letter: 10.0 ** (3 * power) for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", 1)},
}
_QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([numkKMGTPE]?i?)")
_FIRST = ("cpu", "memory")  # then the rest by name, pods last: nobody looks for them first
_LAST = ("pods",)
_PIECES = ("pods", "count/")
_BYTES = ("memory", "ephemeral-storage", "storage", "hugepages-")
_BYTE_UNITS = tuple((f"{letter}i", 1024**power) for power, letter in enumerate("KMGTPE", 1))
_SHORT = {"memory": "mem", "ephemeral-storage": "disk"}


def value(quantity: object) -> float:
    """A quantity as a number; 0 for what is none, since this is only for drawing."""
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None or match[2] not in _SUFFIXES:
        return 0.0
    try:
        return float(match[1]) * _SUFFIXES[match[2]]
    except ValueError:
        return 0.0


def written(resource: str, base_units: int) -> str:
    """A figure of the API in base units, as people write it: 16Gi, 500m, 3.

    Bytes are rounded to three digits. The exact figure is in the output as JSON.
    """
    if resource.startswith(_BYTES):
        return _written_bytes(base_units)
    if resource.startswith(_PIECES):
        return str(base_units)
    if base_units % 1000:
        return f"{base_units}m"
    return str(base_units // 1000)


def _written_bytes(amount: int) -> str:
    for suffix, size in reversed(_BYTE_UNITS):
        if abs(amount) >= size:
            return f"{_rounded(amount / size)}{suffix}"
    return str(amount)


def _rounded(number: float) -> str:
    if abs(number) >= 100:
        return f"{number:.0f}"
    return f"{number:.3g}"


def in_order(names: Iterable[str]) -> list[str]:
    """The usual resources first, those of little interest last, the others by name."""
    return sorted(names, key=lambda name: (_rank(name), name))


def _rank(name: str) -> int:
    if name in _FIRST:
        return _FIRST.index(name)
    if name in _LAST:
        return 9
    return 5


def joined(amounts: Mapping[str, object] | None, nothing: str = "-") -> str:
    """`cpu=4,memory=8Gi`, in the form that the options take too."""
    if amounts:
        return ",".join(f"{name}={amounts[name]}" for name in in_order(amounts))
    return nothing


def short_name(resource: str) -> str:
    return _SHORT.get(resource, resource.rpartition("/")[2])


def parse_pairs(
    texts: Iterable[str] | None,
    option: str,
    example: str = "cpu=8,memory=16Gi",
) -> dict[str, str]:
    """`["cpu=2,memory=4Gi", "nvidia.com/gpu=1"]` as a mapping.

    What the amounts may be, the server knows.
    """
    found: dict[str, str] = {}
    for part in ",".join(texts or ()).split(","):
        pair = part.strip()
        if not pair:
            continue
        name, equals, amount = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise usage(f"{option} has “{pair}”, which is not a pair; write it as {example}.")
        if name in found:
            raise usage(f"{option} names {name} twice; write it once.")
        found[name] = amount.strip()
    return found
