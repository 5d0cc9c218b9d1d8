"""How a whole session on PostgreSQL grows with the cluster: ten times of one thing at a time, at
the same change.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time

from tests.bench.clusters import Size, roomy
from tests.bench.database import Bench, Row, a_database, fill, server_seconds
from tests.bench.measuring import times
from tests.bench.server import database_with_tables

BASE = Size(nodes=1_000, pending=200, running=10_000, queues=50)
TEN_TIMES = ("nodes", "queues", "pending", "running")
CHANGED = 100


class World:
    """A database of its own, and a worker that lives in it."""

    def __init__(self, name: str, size: Size) -> None:
        database_with_tables(name)
        self.name = name
        self.enter()
        fill(roomy(size))
        self.bench = Bench()
        self.bench.session()

    def enter(self) -> None:
        """Every statement goes to this database from now on."""
        from django.db import connection

        if connection.settings_dict["NAME"] != self.name:
            connection.close()
            connection.settings_dict["NAME"] = self.name

    def place_everybody(self) -> tuple[float, float]:
        return self._measured(self.bench.undo)

    def change_some(self) -> tuple[float, float]:
        return self._measured(lambda: self.bench.change(CHANGED))

    def _measured(self, before: Callable[[], object]) -> tuple[float, float]:
        """Processor seconds of our process and the server's together, and seconds by the clock, of
        one session after `before`.
        """
        self.enter()
        before()
        wall = perf_counter()
        own = process_time()
        server = server_seconds()
        self.bench.session()
        return process_time() - own + server_seconds() - server, perf_counter() - wall


def database_growth(scale: float, repetitions: int) -> list[Row]:
    """Ratios of processor time, all sizes in turn within one run.

    What is placed is the same but for ten times the pending pods.
    """
    base = BASE if scale == 1 else BASE.times(nodes=scale, pending=scale, running=scale)
    sizes = {"base": base, **{f"10 x {name}": base.times(**{name: 10}) for name in TEN_TIMES}}
    with a_database():
        worlds = {
            name: World(f"fumarole_bench_growth_{number}", size)
            for number, (name, size) in enumerate(sizes.items())
        }
        placed = _in_turn(
            {name: world.place_everybody for name, world in worlds.items()}, repetitions
        )
        for world in worlds.values():
            world.enter()
            world.bench.session()  # what was placed last is read here, not below
        changed = _in_turn(
            {name: world.change_some for name, world in worlds.items()}, 3 * repetitions
        )
    return [
        *_rows("every pending pod placed", placed),
        *_rows(f"{CHANGED} running pods changed", changed),
    ]


def _in_turn(
    works: dict[str, Callable[[], tuple[float, float]]], repetitions: int
) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for number in range(repetitions + 1):
        for name, work in works.items():
            seconds = work()
            if number:  # the first warms up
                found[name].append(seconds)
    return found


def _rows(what: str, found: dict[str, list[tuple[float, float]]]) -> list[Row]:
    cpu = {name: [own for own, _ in seconds] for name, seconds in found.items()}
    return [
        {
            "what": f"{what}, {name}",
            "withServerCpuMs": round(median(cpu[name]) * 1000, 1),
            "withServerCpuMinMs": round(min(cpu[name]) * 1000, 1),
            "withServerCpuMaxMs": round(max(cpu[name]) * 1000, 1),
            "wallMs": round(median(wall for _, wall in seconds) * 1000, 1),
            **times(cpu[name], cpu["base"]),
            "repetitions": len(seconds),
        }
        for name, seconds in found.items()
    ]
