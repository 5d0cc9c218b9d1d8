"""Measuring that survives a noisy machine: repetitions of all contestants in turn, medians with
their spread, ratios within one run.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time
from typing import TypeVar

Work = Callable[[], object]
Prepared = TypeVar("Prepared")


@dataclass(frozen=True)
class Timing:
    """Seconds of each repetition, by the clock and of the processor.

    A busy machine stretches the first, hardly the second.
    """

    wall: tuple[float, ...]
    processor: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.wall)

    @property
    def cpu(self) -> float:
        return median(self.processor)

    def as_json(self) -> dict[str, object]:
        return {
            "medianMs": round(self.median * 1000, 2),
            "minMs": round(min(self.wall) * 1000, 2),
            "maxMs": round(max(self.wall) * 1000, 2),
            "cpuMs": round(self.cpu * 1000, 2),
            "cpuMinMs": round(min(self.processor) * 1000, 2),
            "cpuMaxMs": round(max(self.processor) * 1000, 2),
            "repetitions": len(self.wall),
        }


def times(these: Sequence[float], those: Sequence[float]) -> dict[str, float]:
    """How many times those these are, pair by pair: the median, the least and the most."""
    ratios = [this / that for this, that in zip(these, those, strict=True)]
    return {
        "ratio": round(median(ratios), 2),
        "ratioMin": round(min(ratios), 2),
        "ratioMax": round(max(ratios), 2),
    }


def interleaved(contestants: Mapping[str, Work], repetitions: int) -> dict[str, Timing]:
    """Each contestant once unmeasured, then all of them in turn, so that a slow moment of the
    machine hits everybody.
    """
    for work in contestants.values():
        work()
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    for _ in range(repetitions):
        for name, work in contestants.items():
            seconds[name].append(_once(work))
    return {name: Timing(*zip(*found, strict=True)) for name, found in seconds.items()}


def after(
    prepare: Callable[[], Prepared], work: Callable[[Prepared], object], repetitions: int
) -> Timing:
    """Only `work` is measured, each time on something prepared anew."""
    found = []
    for _ in range(repetitions + 1):
        ready = prepare()
        found.append(_once(lambda ready=ready: work(ready)))
    return Timing(*zip(*found[1:], strict=True))


def _once(work: Work) -> tuple[float, float]:
    gc.collect()
    gc.disable()
    try:
        wall = perf_counter()
        processor = process_time()
        work()
        return perf_counter() - wall, process_time() - processor
    finally:
        gc.enable()


def peak_memory(work: Work) -> int:
    """The most bytes that were held at once beyond what was there before."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
