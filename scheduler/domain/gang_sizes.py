"""How large a gang is, in a few classes: gangs of one class run and wait about alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from scheduler.domain.resources import is_accelerator

ONE: Final = 1000  # base units of one CPU or one device
NO_SIZE: Final = ""

_GPU_STEPS: Final = ((1, "gpu-1"), (4, "gpu-4"), (8, "gpu-8"), (32, "gpu-32"))
_CPU_STEPS: Final = ((1, "cpu-1"), (8, "cpu-8"), (64, "cpu-64"))

SIZE_WORDS: Final = {
    "gpu-1": "1 GPU",
    "gpu-4": "2 to 4 GPUs",
    "gpu-8": "5 to 8 GPUs",
    "gpu-32": "9 to 32 GPUs",
    "gpu-more": "more than 32 GPUs",
    "cpu-1": "up to 1 CPU",
    "cpu-8": "up to 8 CPUs",
    "cpu-64": "up to 64 CPUs",
    "cpu-more": "more than 64 CPUs",
    NO_SIZE: "size not known",
}
"""Every class, in the order of tables."""
_RANKS: Final = {name: rank for rank, name in enumerate(SIZE_WORDS)}


def rank_of_size(name: str) -> int:
    """Its place in tables; what nobody knows comes last."""
    return _RANKS.get(name, len(_RANKS))


def size_of(amounts: Iterable[tuple[str, int]]) -> str:
    """The class of a gang that asks for these amounts in base units, all its needed pods together.

    Accelerators of any kind count as GPUs; without them, CPUs count.
    """
    devices = 0
    cpu = 0
    for name, amount in amounts:
        if is_accelerator(name):
            devices += amount
        elif name == "cpu":
            cpu = amount
    if devices > 0:
        return _step(devices, _GPU_STEPS, "gpu-more")
    if cpu > 0:
        return _step(cpu, _CPU_STEPS, "cpu-more")
    return NO_SIZE


def _step(amount: int, steps: Iterable[tuple[int, str]], more: str) -> str:
    for limit, name in steps:
        if amount <= limit * ONE:
            return name
    return more
